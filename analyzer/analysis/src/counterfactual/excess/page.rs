//! The listing of synchronisations as a page for a browser.
//!
//! Owns the page. It needs no script; text of the program is escaped.

use crate::counterfactual::excess::listing::{Listed, Listing, SyncVerdict};
use crate::counterfactual::excess::text::{DEPENDENTS, dependent, heading};
use std::fmt::Write as _;

/// The colours are those of the report (`html.page`); the page follows the browser's theme.
const HEAD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Synchronisations</title><style>\
:root{--back:#fbfbfa;--ink:#1d1f22;--line:#d9dce0;--code:#f2f3f4;--good:#e3f2e8;--some:#f6efdc}\
@media(prefers-color-scheme:dark){:root{--back:#16181b;--ink:#e6e8ea;--line:#383d44;--code:#1f2226;--good:#1d3326;--some:#37301a}}\
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:1180px;padding:16px 20px 60px;background:var(--back);color:var(--ink)}\
h1{font-size:19px}h2{font-size:15px;margin-top:28px}\
table{border-collapse:collapse;width:100%;font-size:13px}td,th{border-bottom:1px solid var(--line);padding:4px 14px 4px 0;text-align:left;vertical-align:top;overflow-wrap:anywhere}\
td:first-child,th:first-child{padding-left:8px}code,pre{font:13px/1.45 ui-monospace,monospace}pre{margin:0;white-space:pre-wrap;background:var(--code);border-radius:6px;padding:6px 10px}\
.nothing{background:var(--good)}.together{background:var(--some)}</style>\n";

/// All of it.
pub fn page(all: &[Listing]) -> String {
    let mut out = HEAD.to_owned();
    for listing in all {
        let _ = writeln!(out, "<h1>{} (PID {})</h1>", escaped(&listing.process), listing.pid);
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
            let _ =
                writeln!(out, "<h2>{}</h2>\n<table><tr><th>#<th>Call<th>Times<th>Why<th>Stack</tr>", heading(verdict));
            listing.of(verdict).for_each(|(number, site)| row(&mut out, number, site));
            out.push_str("</table>\n");
        }
        if !listing.dependents.is_empty() {
            let _ = writeln!(out, "<h2>{DEPENDENTS}</h2>\n<ul>");
            listing.dependents.iter().for_each(|listed| {
                let _ = writeln!(out, "<li>{}", escaped(&dependent(listed)));
            });
            out.push_str("</ul>\n");
        }
    }
    out
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
        assert!(!page(&[listing]).contains("<script"));
    }
}
