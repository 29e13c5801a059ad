//! Which of the programs that were found a hunt runs.
//!
//! Owns the parts of a hunt that several machines share, and the programs that a report of an
//! earlier hunt names as not clean. Does not look for programs.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde_json::Value;
use system::file_name::FileName;
use system::local_files;

use super::target::Target;
use report::program::Checked;

/// One of equal parts, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shard {
    index: usize,
    count: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Self { index, count }),
            _ => Err("two numbers are wanted, such as 1/4 and up to 4/4".to_owned()),
        }
    }
}

impl Shard {
    /// Its programs. Neighbours, which often take equally long, go to different parts.
    pub(crate) fn of(self, targets: Vec<Target>) -> Vec<Target> {
        targets.into_iter().skip(self.index - 1).step_by(self.count).collect()
    }
}

/// The programs of an earlier hunt that were not clean, by name. `report`: what its `--json` wrote.
/// The error is a line for the user.
pub(crate) fn failed(report: &FileName) -> Result<BTreeSet<String>, String> {
    let text = local_files::read_named_text(report).map_err(|error| format!("{report}: {error}"))?;
    let no_report = || format!("{report} is no report of a hunt: 'streamsan hunt --json FILE' writes one");
    let value: Value = serde_json::from_str(&text).map_err(|_| no_report())?;
    let programs = value["programs"].as_array().filter(|programs| !programs.is_empty()).ok_or_else(no_report)?;
    let done = [Checked::Clean, Checked::NoCuda, Checked::Skipped].map(Checked::name);
    let mut names = BTreeSet::new();
    for program in programs {
        let (Some(name), Some(outcome)) = (program["name"].as_str(), program["outcome"].as_str()) else {
            return Err(no_report());
        };
        if !done.contains(&outcome) {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_from_one() {
        assert_eq!("2/3".parse(), Ok(Shard { index: 2, count: 3 }));
        for wrong in ["", "1", "0/3", "4/3", "1/0", "/", "a/b", "1/2/3", "-1/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
