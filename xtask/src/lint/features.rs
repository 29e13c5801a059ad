//! The features that `scripts/build` names reach the simulator.
//!
//! Cargo ignores `sim/driver` for a package that depends on itself for its tests, without a
//! warning: that build of the simulator has no driver. Cargo says which features a build has.

use std::path::Path;

use anyhow::{Context, Result};

use super::Violation;
use crate::{command, workspace};

const SCRIPT: &str = "scripts/build";

/// Asks cargo for the simulator's features under each list of arguments that the script has.
pub fn check() -> Result<Vec<Violation>> {
    let text = std::fs::read_to_string(workspace::root().join(SCRIPT)).context(SCRIPT)?;
    let mut found = Vec::new();
    let lists = lists(&text);
    if lists.is_empty() {
        found.push(Violation::new(Path::new(SCRIPT), 1, "no `features=(...)`: this check looks for it"));
    }
    for (line, arguments) in lists {
        let quick = arguments.contains(&"--no-default-features");
        let wanted: &[&str] = if quick { &["driver"] } else { &["driver", "native"] };
        let tree = ["tree", "--offline", "-p", "sim", "-e", "no-dev", "--depth", "0", "-f", "{f}"];
        let printed = command::output(&mut command::cargo(tree.into_iter().chain(arguments.iter().copied())))?;
        let has: Vec<&str> = printed.trim().split(',').collect();
        for feature in wanted.iter().filter(|feature| !has.contains(feature)) {
            let text = format!("`{}` builds the simulator without `{feature}`", arguments.join(" "));
            found.push(Violation::new(Path::new(SCRIPT), line, text));
        }
    }
    Ok(found)
}

/// The arguments between the parentheses of each `features=(...)`, with its line.
fn lists(text: &str) -> Vec<(usize, Vec<&str>)> {
    let numbered = text.lines().enumerate();
    numbered.filter_map(|(number, line)| Some((number + 1, arguments(line)?))).collect()
}

fn arguments(line: &str) -> Option<Vec<&str>> {
    let (_, rest) = line.split_once("features=(")?;
    let (arguments, _) = rest.split_once(')')?;
    Some(arguments.split_whitespace().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_features_are_found() {
        let text = "a\n  x=1 features=(--features native) ;;\nfeatures=(--no-default-features --features driver)\n";
        let expected =
            vec![(2, vec!["--features", "native"]), (3, vec!["--no-default-features", "--features", "driver"])];
        assert_eq!(lists(text), expected);
    }

    #[test]
    fn the_script_builds_a_driver() {
        let found = check().expect("cargo tree");
        assert!(found.is_empty(), "{:?}", found.iter().map(|violation| &violation.text).collect::<Vec<_>>());
    }
}
