//! The names of the commands that users give.
//!
//! Owns the list, and the guess which of them a word was meant to be. What each command does is in
//! its own file.

use settings::nearest::nearest;

/// The commands, in the order of the help.
pub(crate) const NAMES: [&str; 15] = [
    "run",
    "hunt",
    "record",
    "check",
    "fleet",
    "diff",
    "excess",
    "explain",
    "timeline",
    "memory",
    "dump",
    "coverage",
    "init",
    "doctor",
    "completions",
];

/// The command that a word was perhaps meant to be, for a program that was not found.
pub(crate) fn meant(word: &str) -> Option<String> {
    nearest(word, NAMES.iter().map(|name| (*name).to_owned()))
}

/// Options that one command has for itself, which are not in the table.
pub(crate) const OWN: [(&str, &str); 9] = [
    ("timeout", "hunt"),
    ("jobs", "hunt"),
    ("only", "hunt"),
    ("shard", "hunt"),
    ("rerun-failed", "hunt"),
    ("list", "hunt"),
    ("ci", "init"),
    ("build", "init"),
    ("command", "init"),
];

/// Who takes an option that is not in the table; `None`: nobody.
pub(crate) fn with(option: &str) -> Option<String> {
    let name = option.strip_prefix("--")?;
    OWN.iter().find(|(own, _)| *own == name).map(|(_, command)| format!("{command} does"))
}
