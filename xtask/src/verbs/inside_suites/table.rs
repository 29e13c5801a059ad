//! The committed tables: what a suite says of each program, what the check is to show, and why the
//! two differ where they do (`tests/inside_suites/SUITE.tsv`).

use std::fmt;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// What a run has shown of a program, or is to show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// A race inside a kernel that is `certain` or `likely`.
    Race,
    /// Only races below `likely`.
    Possible,
    /// The programs ended, with nothing to report.
    Silent,
    /// A launch failed: a fault, or threads that wait for ever at a barrier.
    Fault,
    /// The run did not end within the limit.
    Endless,
    /// The program does not compile.
    NoProgram,
}

/// Every variant with its word in the tables.
const WORDS: [(Shown, &str); 6] = [
    (Shown::Race, "race"),
    (Shown::Possible, "possible"),
    (Shown::Silent, "silent"),
    (Shown::Fault, "fault"),
    (Shown::Endless, "endless"),
    (Shown::NoProgram, "no-program"),
];

impl Shown {
    fn parse(word: &str) -> Option<Self> {
        WORDS.iter().find(|(_, known)| *known == word).map(|(shown, _)| *shown)
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(WORDS.iter().find(|(shown, _)| shown == self).map_or("", |(_, word)| word))
    }
}

/// What the suite says of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Says {
    /// It races.
    Racy,
    /// It does not.
    Clean,
    /// It is wrong in another way, or is no program.
    Other,
}

/// A program of a suite.
pub struct Row {
    /// Its name in the suite.
    pub name: String,
    /// The suite's own verdict.
    pub says: Says,
    /// What the check is to show.
    pub expected: Shown,
    /// What to run it with: command line, or values of parameters.
    pub arguments: Vec<String>,
    /// Why `expected` is not what the suite says.
    pub why: String,
}

/// The table of a suite.
pub fn read(suite: &str) -> Result<Vec<Row>> {
    let file = workspace::root().join(format!("tests/inside_suites/{suite}.tsv"));
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    parse(&text).with_context(|| file.display().to_string())
}

fn parse(text: &str) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [name, says, expected, arguments, why] = cells[..] else { bail!("five cells: {line}") };
        let says = match says {
            "racy" => Says::Racy,
            "clean" => Says::Clean,
            "other" => Says::Other,
            _ => bail!("racy, clean or other: {line}"),
        };
        let expected = Shown::parse(expected).with_context(|| format!("no verdict: {line}"))?;
        let agrees = matches!(
            (says, expected),
            (Says::Racy, Shown::Race) | (Says::Clean, Shown::Silent) | (Says::Other, Shown::NoProgram)
        );
        if !agrees && why.is_empty() {
            bail!("the suite says otherwise, and no reason is given: {line}");
        }
        if rows.iter().any(|row| row.name == name) {
            bail!("twice: {line}");
        }
        let arguments = arguments.split_whitespace().map(str::to_owned).collect();
        rows.push(Row { name: name.to_owned(), says, expected, arguments, why: why.to_owned() });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_contradicts_its_suite_needs_a_reason() {
        assert!(parse("a\tracy\tsilent\t\t").is_err());
        assert!(parse("a\tclean\trace\t\t").is_err());
        let rows = parse("# head\na\tracy\tsilent\tx=1 y=2\tone input\nb\tclean\tsilent\t\t").expect("two rows");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].arguments, ["x=1", "y=2"]);
        assert_eq!(rows[1].says, Says::Clean);
    }

    #[test]
    fn rows_are_whole_and_names_are_used_once() {
        assert!(parse("a\tracy\trace\t").is_err());
        assert!(parse("a\tracy\tred\t\t").is_err());
        assert!(parse("a\tmaybe\trace\t\t").is_err());
        assert!(parse("a\tracy\trace\t\t\na\tracy\trace\t\t").is_err());
    }

    #[test]
    fn the_tables_of_the_repository_can_be_read() {
        for suite in ["indigo", "scor", "gpuverify", "hecbench"] {
            let rows = read(suite).unwrap_or_else(|error| panic!("{error:#}"));
            assert!(!rows.is_empty(), "{suite}");
        }
    }
}
