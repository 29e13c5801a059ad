//! Comments in Rust sources end by column 100.
//!
//! rustfmt leaves comments alone unless unstable options are set. Code is rustfmt's; a trailing
//! comment counts with the code before it.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Result, anyhow};
use proc_macro2::{TokenStream, TokenTree};

use super::{COLUMNS, Violation};
use crate::workspace;

/// Finds the comments of a file that are too wide.
pub fn check(file: &Path) -> Result<Vec<Violation>> {
    check_text(file, &std::fs::read_to_string(workspace::root().join(file))?)
}

fn check_text(file: &Path, text: &str) -> Result<Vec<Violation>> {
    let wide: Vec<_> = text.lines().enumerate().filter(|(_, line)| line.chars().count() > COLUMNS).collect();
    if wide.is_empty() {
        return Ok(Vec::new());
    }
    let tokens: TokenStream = text.parse().map_err(|error| anyhow!("{}: {error}", file.display()))?;
    let mut ends = Ends { lines: text.lines().collect(), columns: HashMap::new() };
    ends.read(tokens);
    let found = wide.into_iter().filter(|&(at, line)| ends.is_comment(at + 1) && breaks(line));
    Ok(found
        .map(|(at, line)| {
            Violation::new(file, at + 1, format!("a comment ends at column {}, not {COLUMNS}", line.chars().count()))
        })
        .collect())
}

/// Whether a comment could be broken before the limit: an address cannot.
fn breaks(line: &str) -> bool {
    line.split_whitespace().all(|word| !word.contains("://"))
}

/// Where the code of each line ends.
struct Ends<'a> {
    lines: Vec<&'a str>,
    columns: HashMap<usize, usize>,
}

impl Ends<'_> {
    fn read(&mut self, tokens: TokenStream) {
        for token in tokens {
            if let TokenTree::Group(group) = token {
                // A doc comment is an attribute whose tokens all lie where the comment does.
                if !self.is_doc(group.span_open().start()) {
                    self.end(group.span_open().end());
                    self.read(group.stream());
                    self.end(group.span_close().end());
                }
                continue;
            }
            let (start, end) = (token.span().start(), token.span().end());
            if self.is_doc(start) {
                continue;
            }
            // All of a literal that spans lines is code.
            for line in start.line..end.line {
                self.columns.insert(line, usize::MAX);
            }
            self.end(end);
        }
    }

    fn end(&mut self, at: proc_macro2::LineColumn) {
        let column = self.columns.entry(at.line).or_default();
        *column = (*column).max(at.column);
    }

    fn is_doc(&self, at: proc_macro2::LineColumn) -> bool {
        let mut rest = self.lines[at.line - 1].chars().skip(at.column);
        rest.next() == Some('/') && matches!(rest.next(), Some('/' | '*'))
    }

    fn is_comment(&self, line: usize) -> bool {
        let code = self.columns.get(&line).copied().unwrap_or(0);
        let rest: String = self.lines[line - 1].chars().skip(code).collect();
        // Within a block comment nothing starts on the line.
        !rest.trim().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines with violations.
    fn lines(text: &str) -> Vec<usize> {
        let found = check_text(Path::new("a.rs"), text).expect("it parses");
        found.iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn wide_comments_are_found_wherever_they_stand() {
        let long = "word ".repeat(25);
        assert_eq!(lines(&format!("// {long}\nfn f() {{}}\n")), [1]);
        assert_eq!(lines(&format!("fn f() {{\n    /// {long}\n    fn g() {{}}\n}}\n")), [2]);
        assert_eq!(lines(&format!("//! {long}\n")), [1]);
        assert_eq!(lines(&format!("fn f() {{}} // {long}\n")), [1]);
        assert_eq!(lines(&format!("/*\n{long}\n*/ fn f() {{}}\n")), [2]);
    }

    #[test]
    fn code_literals_and_addresses_may_be_wide() {
        let long = "word ".repeat(25);
        assert_eq!(lines(&format!("const A: &str = \"// {long}\";\n")), [0; 0]);
        assert_eq!(lines(&format!("const A: &str = \"\n// {long}\n\";\n")), [0; 0]);
        assert_eq!(lines(&format!("// see https://example.org/{}\n", "a".repeat(100))), [0; 0]);
        assert_eq!(lines(&format!("fn {}() {{}}\n", "a".repeat(120))), [0; 0]);
    }
}
