//! A program that a hunt is to run.
//!
//! Owns the data only.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use report::program::Checked;

/// A program, and what its test system knows of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    /// Its name, which no other program of the hunt has.
    pub(crate) name: String,
    /// Where it was found: `ctest`, `executable`, `pytest`.
    pub(crate) kind: &'static str,
    /// Program and arguments.
    pub(crate) command: Vec<OsString>,
    /// Options of StreamSan that its test system gives it, beside those of the hunt.
    pub(crate) options: Vec<OsString>,
    /// Its working folder.
    pub(crate) folder: PathBuf,
    /// Variables that it is to have, or not to have.
    pub(crate) environment: Vec<(String, Option<OsString>)>,
    /// The time that it has.
    pub(crate) limit: Option<Duration>,
    /// The exit code by which it says that it has skipped itself.
    pub(crate) skip_code: Option<i32>,
    /// Whether its exit code says nothing about success.
    pub(crate) any_code: bool,
    /// Why it is not run.
    pub(crate) left_out: Option<(Checked, String)>,
}

impl Target {
    /// A program without more to know of it.
    pub(crate) fn new(kind: &'static str, name: String, command: Vec<OsString>, folder: PathBuf) -> Self {
        Self {
            name,
            kind,
            command,
            options: Vec::new(),
            folder,
            environment: Vec::new(),
            limit: None,
            skip_code: None,
            any_code: false,
            left_out: None,
        }
    }

    /// The value of a variable, as far as it is set by now.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        match self.environment.iter().rfind(|(known, _)| known == name) {
            Some((_, value)) => value.clone(),
            None => std::env::var_os(name),
        }
    }

    /// Its command in one line, for people.
    pub(crate) fn shown(&self) -> String {
        let words: Vec<String> = self.command.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }
}

fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=+:,@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Gives each name to one program only, by a number behind the later ones.
pub(crate) fn number(targets: &mut [Target]) {
    for index in 1..targets.len() {
        let (before, rest) = targets.split_at_mut(index);
        let taken = |name: &str| before.iter().any(|target| target.name == name);
        let own = rest[0].name.clone();
        let mut nth = 2;
        while taken(&rest[0].name) {
            rest[0].name = format!("{own} #{nth}");
            nth += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_given_once() {
        let mut list: Vec<Target> =
            ["a", "b", "a", "a"].map(|name| Target::new("ctest", name.into(), Vec::new(), PathBuf::new())).into();
        number(&mut list);
        assert_eq!(list.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["a", "b", "a #2", "a #3"]);
    }

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let words = ["./a b", "--x=1", "", "it's"].map(OsString::from).into();
        assert_eq!(Target::new("ctest", String::new(), words, PathBuf::new()).shown(), "'./a b' --x=1 '' 'it'\\''s'");
    }
}
