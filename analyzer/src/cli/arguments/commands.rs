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
