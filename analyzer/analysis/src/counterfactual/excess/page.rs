//! The listing of synchronisations as a page for a browser.
//!
//! Owns the page. It needs no script; text of the program is escaped.

use crate::counterfactual::excess::listing::{Listed, Listing, SyncVerdict};
use crate::counterfactual::excess::text::heading;
use std::fmt::Write as _;

const HEAD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Synchronisations</title><style>\
body{font:15px/1.4 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em}\
table{border-collapse:collapse;width:100%}td,th{border:1px solid #bbb;padding:.3em .6em;text-align:left;vertical-align:top}\
code,pre{font-size:13px}pre{margin:0}.nothing{background:#e6f4e6}.together{background:#f4f2df}</style>\n";

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
