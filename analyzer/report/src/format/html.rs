//! The report as one self-contained page: every finding with its lanes, stacks, bytes and the
//! missing synchronisation as an arrow.
//!
//! Owns how the data gets into the page: as JSON inside a script element of a type that is not run,
//! with nothing in it that could end the element. The page (`html.page`) draws it, and puts text
//! from the program into text nodes only. Owns, too, the style and the script that all pages share
//! (`page.css`, `page.js`).

use super::json::{Json, fidelity};
use super::{closing, text};
use crate::format::{Event, Reporter};
use crate::words::counted;
use chrono::Utc;
use std::fmt::Write as _;

const PAGE: &str = include_str!("html.page");
/// What all pages share, and where it stands in them.
const SHARED: [(&str, &str); 2] = [("@STYLE@\n", include_str!("page.css")), ("@SCRIPT@\n", include_str!("page.js"))];
const PLACE: &str = "@DATA@";

/// Where the date, the version and the commands stand, where what was checked, and where the report
/// without scripts.
const MADE: &str = "@MADE@";
const SAID: &str = "@SAID@";
const STILL: &str = "@STILL@";
/// How the report without scripts is written: for people.
const STYLE: text::Style = text::Style { color: false, links: false, processes: false, no_machine_lines: true };
/// Findings that are there without scripts.
const MOST_STILL: usize = 50;

/// Processes that are listed.
const MOST_RAN: usize = 20;

/// Writes the page.
#[derive(Default)]
pub struct Html {
    data: Json,
    /// The findings as text, for readers without scripts.
    still: String,
    /// What was checked, as the text report says it.
    said: String,
    /// The commands, of [`MOST_RAN`] processes.
    ran: String,
}

impl Html {
    fn stand(&mut self, text: &str) {
        let _ = write!(self.still, "<article><pre>{}</pre></article>", markup(text));
    }
}

impl Reporter for Html {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Begin(_) => {}
            Event::Finding(..) | Event::Breach(..) if self.still.matches("<article>").count() >= MOST_STILL => {}
            Event::Finding(f, _) => self.stand(&text::finding(f, STYLE)),
            Event::Breach(b, _) => self.stand(&text::breach(b, STYLE)),
            Event::End(report) => {
                let (more, coverage) = (closing::further(report), closing::coverage(report));
                let fidelity = fidelity::line(&report.coverage);
                let said = format!("{more}{coverage}streamsan: FIDELITY: {fidelity}\n{}", closing::summary(report));
                self.said = markup(&said.replace("streamsan: ", ""));
                for process in report.processes.iter().take(MOST_RAN) {
                    let arguments = process.args.get(1..).unwrap_or_default();
                    let command = [std::slice::from_ref(&process.exe), arguments].concat().join(" ");
                    let _ = write!(self.ran, "<code>{}</code>", markup(&command));
                }
                let more = report.processes.len().saturating_sub(MOST_RAN);
                if more > 0 {
                    let _ = write!(self.ran, "and {}", counted(more as u64, "more process", "more processes"));
                }
            }
        }
        self.data.take(event);
    }

    fn finish(&mut self) -> Vec<u8> {
        let data = String::from_utf8_lossy(&self.data.finish()).into_owned();
        let page = with_shared(PAGE).replace(MADE, &format!("{}{}", made(), self.ran));
        let page = page.replace(SAID, &self.said).replace(STILL, &self.still);
        // The last such place is the page's own: a name of the program may hold the word.
        let (before, after) = page.rsplit_once(PLACE).unwrap_or((&page, ""));
        format!("{before}{}{after}", harmless(&data)).into_bytes()
    }
}

/// A page, or a part of one, with the style and the script that all pages share.
pub fn with_shared(page: &str) -> String {
    SHARED.iter().fold(page.to_owned(), |page, (place, shared)| page.replace(place, shared))
}

/// What makes a page, and when.
pub fn made() -> String {
    format!("StreamSan {}, {}", env!("CARGO_PKG_VERSION"), Utc::now().format("%Y-%m-%d %H:%M UTC"))
}

/// Text in which no character has a meaning in HTML.
fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('@', "&#64;")
}

/// JSON in which no character has a meaning in HTML. In JSON these characters occur in strings
/// only, where an escape is equivalent.
fn harmless(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_program_ends_the_script() {
        assert_eq!(markup("</noscript>&@"), "&lt;/noscript&gt;&amp;&#64;");
        let text = harmless(&serde_json::json!({ "k": "</script><img src=x onerror=alert(1)>&\u{2028}" }).to_string());
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["k"], "</script><img src=x onerror=alert(1)>&\u{2028}");
        let page = with_shared(PAGE);
        assert_eq!(page.matches(PLACE).count(), 1);
        assert!(!page.contains("@STYLE@") && !page.contains("@SCRIPT@"));
        assert!(!page.contains("innerHTML") && !page.contains("http://") && !page.contains("https://"));
    }
}
