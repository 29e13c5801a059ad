//! The listing of synchronisations as a page for a browser.
//!
//! Owns the page. Without scripts everything is there but the search; text of the program is
//! escaped.

use crate::counterfactual::excess::listing::{Listed, Listing, SyncVerdict};
use crate::counterfactual::excess::text::{DEPENDENTS, dependent, heading};
use report::format::html::{made, with_shared};
use std::fmt::Write as _;

/// What stands before the listings, in the design of the report (`html.page`).
const HEAD: &str = include_str!("head.page");
/// What stands behind them: the search and the theme.
const TAIL: &str = include_str!("tail.page");
/// Where the version and the date stand.
const MADE: &str = "@MADE@";

/// All of it.
pub fn page(all: &[Listing]) -> String {
    let mut out = with_shared(HEAD).replace(MADE, &made());
    for listing in all {
        let _ = writeln!(out, "<h2>{} (PID {})</h2>", escaped(&listing.process), listing.pid);
        let summary = crate::counterfactual::excess::text::text(std::slice::from_ref(listing));
        let closing = summary.lines().last().unwrap_or_default();
        let _ = writeln!(out, "<p>{}</p>", escaped(closing));
        for note in &listing.notes {
            let _ = writeln!(out, "<p>Note: {}</p>", escaped(note));
        }
        for verdict in SyncVerdict::ALL {
            if listing.of(verdict).next().is_none() {
                continue;
            }
            let head = "<tr><th>#<th>Call<th>Times<th>Why<th>Stack</tr>";
            let _ = writeln!(out, "<h3>{}</h3>\n<div class=\"wide\"><table>{head}", heading(verdict));
            listing.of(verdict).for_each(|(number, site)| row(&mut out, number, site));
            out.push_str("</table></div>\n");
        }
        if !listing.dependents.is_empty() {
            let _ = writeln!(out, "<h3>{DEPENDENTS}</h3>\n<ul>");
            listing.dependents.iter().for_each(|listed| {
                let _ = writeln!(out, "<li>{}", escaped(&dependent(listed)));
            });
            out.push_str("</ul>\n");
        }
    }
    out + &with_shared(TAIL)
}

fn row(out: &mut String, number: usize, site: &Listed) {
    let mut why = Vec::new();
    if let Some(pair) = &site.pair {
        let then = pair.then.as_ref().map_or_else(|| "the host".to_owned(), |end| format!("{} ({})", end.what, end.at));
        why.push(format!("{}: {} ({}), then {then}", pair.why, pair.first.what, pair.first.at));
    }
    why.extend(site.kernels.iter().map(|kernel| format!("not all bytes are known of {kernel}")));
    why.extend(site.partners.iter().map(|at| format!("not together with #{}", at + 1)));
    let _ = writeln!(
        out,
        "<tr class=\"{}\"><td>{}{}<td>{}<br><code>{}</code><td>{}<td>{}<td><pre>{}</pre></tr>",
        site.verdict.word(),
        number + 1,
        if site.can_go { " (can go)" } else { "" },
        escaped(&site.call),
        escaped(&site.at),
        site.count,
        why.iter().map(|line| escaped(line)).collect::<Vec<_>>().join("<br>"),
        escaped(&site.stack.join("\n")),
    );
}

/// Text without a meaning in HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_program_stays_text() {
        assert_eq!(escaped("f<\"a\">&"), "f&lt;&quot;a&quot;&gt;&amp;");
        let listing = Listing { process: "<script>".into(), ..Listing::default() };
        let made = page(&[listing]);
        assert_eq!(made.matches("<script").count(), 1, "the page's own");
        assert!(made.contains("&lt;script&gt; (PID 0)"), "{made}");
    }

    #[test]
    fn a_page_says_what_made_it_and_loads_nothing() {
        let made = page(&[]);
        assert!(made.contains(&format!("StreamSan {}, 2", env!("CARGO_PKG_VERSION"))), "version and year: {made}");
        assert!(made.contains("default-src 'none'") && !made.contains("http:") && !made.contains("https:"));
        // What the script looks for is there.
        for id in ["search", "theme", "count"] {
            let is_there = made.contains(&format!("id=\"{id}\"")) && made.contains(&format!("$(\"{id}\")"));
            assert!(is_there, "{id}");
        }
        assert!(made.contains("aria-pressed") && made.ends_with("</html>\n"));
    }
}
