//! The programs of a hunt as text: the table, and lists of names.
//!
//! Owns the wording. What is wrong with a program is said by itself
//! ([`crate::program::Program::error`]).

use std::fmt::Write as _;

use crate::program::{Checked, Program};
use crate::words::counted;

/// Programs by name, at most a few of them.
pub(crate) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(SHOWN) as u64;
    if more > 0 { format!("{shown} and {}", counted(more, "other program", "other programs")) } else { shown }
}

/// What is wrong with programs besides findings: a line for all that have the same trouble.
pub(crate) fn errors(programs: &[Program]) -> Vec<String> {
    together(programs, Program::trouble)
}

/// Which findings a second run did not settle, and why: a line for all with the same reason.
pub(crate) fn unsettled(programs: &[Program]) -> Vec<String> {
    together(programs, Program::unsettled)
}

/// What is said of programs, those of which the same is said in one line.
fn together(programs: &[Program], said: impl Fn(&Program) -> Option<String>) -> Vec<String> {
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for (name, trouble) in programs.iter().filter_map(|p| Some((p.name.clone(), said(p)?))) {
        match lines.iter_mut().find(|(known, _)| *known == trouble) {
            Some((_, names)) => names.push(name),
            None => lines.push((trouble, vec![name])),
        }
    }
    lines.into_iter().map(|(trouble, names)| format!("{}: {trouble}", listed(&names))).collect()
}

/// The table of a hunt, a row each, and how many came out how; empty without programs.
pub(crate) fn table(programs: &[Program]) -> String {
    let mut out = String::new();
    if programs.is_empty() {
        return out;
    }
    const HEAD: &str = "program";
    let width = programs.iter().map(|p| p.name.chars().count()).chain([HEAD.len()]).max().unwrap_or_default();
    let _ = writeln!(out, "{HEAD:<width$}  outcome      launches  findings  seconds");
    for p in programs {
        let seconds = p.took.as_secs_f64();
        let second = p.second.as_ref().filter(|second| second.made).map(|second| second.settled());
        let second = second.filter(|settled| !settled.is_empty());
        let second = second.map_or_else(String::new, |settled| format!("  second run: {settled}"));
        let _ = writeln!(
            out,
            "{:<width$}  {:<11}  {:>8}  {:>8}  {seconds:>7.1}{second}",
            p.name,
            p.outcome().name(),
            p.launches,
            p.findings
        );
    }
    let _ = writeln!(out, "streamsan: HUNT: {}", tally(programs));
    out
}

/// How many came out how: `3 programs: 1 clean, 2 failed`.
pub(crate) fn tally(programs: &[Program]) -> String {
    let count = |outcome| programs.iter().filter(|p| p.outcome() == outcome).count();
    let counts = Checked::ALL.into_iter().map(|outcome| (count(outcome), outcome)).filter(|(n, _)| *n > 0);
    let with = |outcome| if outcome == Checked::Findings { "with " } else { "" };
    let counts: Vec<String> = counts.map(|(n, outcome)| format!("{n} {}{}", with(outcome), outcome.name())).collect();
    format!("{}: {}", counted(programs.len() as u64, "program", "programs"), counts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_programs_are_listed() {
        let names = |n: u32| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        assert_eq!(listed(&names(2)), "0, 1");
        assert_eq!(listed(&names(9)), "0, 1, 2, 3, 4, 5, 6, 7 and 1 other program");
    }
}
