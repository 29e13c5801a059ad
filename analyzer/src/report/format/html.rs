//! The report as one self-contained page: every finding with its lanes, stacks, bytes and the
//! missing synchronisation as an arrow.
//!
//! Owns how the data gets into the page: as JSON inside a script element of a type that is not run,
//! with nothing in it that could end the element. The page (`html.page`) draws it, and puts text
//! from the program into text nodes only.

use super::json::Json;
use crate::report::format::{Event, Reporter};

const PAGE: &str = include_str!("html.page");
const PLACE: &str = "@DATA@";

/// Writes the page.
#[derive(Default)]
pub struct Html {
    data: Json,
}

impl Reporter for Html {
    fn take(&mut self, event: Event<'_>) {
        self.data.take(event);
    }

    fn finish(&mut self) -> Vec<u8> {
        let data = String::from_utf8_lossy(&self.data.finish()).into_owned();
        let (before, after) = PAGE.split_once(PLACE).unwrap_or((PAGE, ""));
        format!("{before}{}{after}", harmless(&data)).into_bytes()
    }
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
        let text = harmless(&serde_json::json!({ "k": "</script><img src=x onerror=alert(1)>&\u{2028}" }).to_string());
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["k"], "</script><img src=x onerror=alert(1)>&\u{2028}");
        assert_eq!(PAGE.matches(PLACE).count(), 1);
        assert!(!PAGE.contains("innerHTML") && !PAGE.contains("http://") && !PAGE.contains("https://"));
    }
}
