//! Prose in Markdown ends by column 100.
//!
//! Tables, fenced code, front matter and the addresses of links may be wider: they cannot be
//! broken.

use std::path::Path;

use anyhow::Result;

use super::{COLUMNS, Violation};
use crate::workspace;

/// Finds the lines of a file that are too wide.
pub fn check(file: &Path) -> Result<Vec<Violation>> {
    Ok(check_text(file, &std::fs::read_to_string(workspace::root().join(file))?))
}

fn check_text(file: &Path, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut fence = None;
    for (at, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        if mark.is_some() && (fence.is_none() || fence == mark) {
            fence = if fence.is_some() { None } else { mark };
            continue;
        }
        if fence.is_some() || start.starts_with('|') || line.starts_with("    ") {
            continue;
        }
        let columns = without_addresses(line).chars().count();
        if columns > COLUMNS {
            found.push(Violation::new(file, at + 1, format!("prose ends at column {columns}, not {COLUMNS}")));
        }
    }
    found
}

/// A line without what cannot be broken: targets of links, and bare addresses.
fn without_addresses(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        kept.push_str(&rest[..at + 1]);
        let target = &rest[at + 1..];
        rest = target.find(')').map_or("", |end| &target[end + 1..]);
    }
    kept.push_str(rest);
    kept.split(' ').filter(|word| !word.contains("://")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_may_not_be_wide_but_tables_code_and_addresses_may() {
        let long = "word ".repeat(25);
        let lines = |text: &str| -> Vec<usize> {
            check_text(Path::new("a.md"), text).iter().map(|violation| violation.line).collect()
        };
        assert_eq!(lines(&format!("# A\n\n- {long}\n")), [3]);
        assert_eq!(lines(&format!("```\n{long}\n```\n{long}\n")), [4]);
        assert_eq!(lines(&format!("| {long} |\n")), [0; 0]);
        assert_eq!(lines(&format!("See [there](https://example.org/{}).\n", "a".repeat(90))), [0; 0]);
    }
}
