//! Every source file of a folder of tests is a module of some test program. Cargo compiles what the
//! programs' roots name: the tests in a file that none names would never run, and nobody would
//! miss them.
//!
//! Which programs there are is cargo's to say. Files below `src/` are not looked at: without them
//! the product lacks something.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Violation, modules};
use crate::{command, workspace};

/// The roots of all test programs, relative to the repository.
pub fn roots() -> Result<Vec<PathBuf>> {
    let printed = command::output(&mut command::cargo(["metadata", "--no-deps", "--format-version=1", "--offline"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&printed).context("cargo metadata")?;
    let of = |value: &serde_json::Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let targets = of(&metadata, "packages").into_iter().flat_map(|package| of(&package, "targets"));
    let tests = targets.filter(|target| of(target, "kind").iter().any(|kind| kind == "test"));
    let paths = tests.filter_map(|target| Some(PathBuf::from(target["src_path"].as_str()?)));
    let relative = paths.map(|path| path.strip_prefix(workspace::root()).map(Path::to_path_buf).unwrap_or(path));
    Ok(relative.collect())
}

/// Finds the files beside the roots, and below, that no root leads to.
pub fn check(roots: &[PathBuf], files: impl Iterator<Item = PathBuf>) -> Result<Vec<Violation>> {
    let mut reached = BTreeSet::new();
    for root in roots {
        reached.extend(modules::read_root(root)?.files);
    }
    let beside: Vec<&Path> = roots.iter().filter_map(|root| root.parent()).collect();
    let forgotten =
        files.filter(|file| beside.iter().any(|folder| file.starts_with(folder)) && !reached.contains(file));
    Ok(forgotten.map(|file| Violation::new(&file, 1, "no test program has this module: it never runs")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_root_names_is_found() {
        let folder = std::env::temp_dir().join(format!("xtask-forgotten-{}", std::process::id()));
        let texts = [
            ("tests/main.rs", "mod support { pub mod deep; } mod named;"),
            ("tests/named.rs", "mod below; #[test] fn one() {}"),
            ("tests/named/below.rs", ""),
            ("tests/support/deep.rs", ""),
            ("tests/alone/main.rs", ""),
            ("tests/forgotten.rs", "#[test] fn two() {}"),
            ("tests/alone/forgotten.rs", "#[test] fn three() {}"),
            ("src/other.rs", ""),
        ];
        for (name, text) in texts {
            let file = folder.join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, text).expect("a file");
        }
        let roots = ["tests/main.rs", "tests/alone/main.rs"].map(|root| folder.join(root));
        let found = check(&roots, texts.iter().map(|(name, _)| folder.join(name))).expect("sources that parse");
        let found: Vec<_> =
            found.iter().map(|violation| violation.file.strip_prefix(&folder).expect("inside")).collect();
        assert_eq!(found, [Path::new("tests/forgotten.rs"), Path::new("tests/alone/forgotten.rs")]);
        std::fs::remove_dir_all(&folder).expect("the folder is there");
    }
}
