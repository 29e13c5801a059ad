//! What Markdown names is there: the targets of relative links, and files of the repository between
//! backticks.
//!
//! A path between backticks counts when it begins with a folder of the repository and contains a
//! slash. `{a,b}` stands for several files. Words in capitals are place-holders (`CLASS.rs`), and
//! such paths are passed over.

use std::path::Path;

use anyhow::Result;

use super::Violation;
use crate::workspace;

/// Checks a file.
pub fn check(file: &Path) -> Result<Vec<Violation>> {
    let text = std::fs::read_to_string(workspace::root().join(file))?;
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let mut say = |what: &str| found.push(Violation::new(file, index + 1, format!("{what} is not there")));
        for target in links(line) {
            let path = target.split('#').next().unwrap_or_default();
            let folder = file.parent().unwrap_or(Path::new(""));
            if !path.is_empty() && !path.contains("://") && !workspace::root().join(folder).join(path).exists() {
                say(path);
            }
        }
        for named in line.split('`').skip(1).step_by(2).filter(|named| is_path(named)) {
            for path in alternatives(named) {
                if !workspace::root().join(&path).exists() {
                    say(&path);
                }
            }
        }
    }
    Ok(found)
}

/// The targets of `[text](target)`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

/// Whether text between backticks is a path that must exist.
fn is_path(text: &str) -> bool {
    let Some((top, rest)) = text.split_once('/') else { return false };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/{},".contains(c);
    let is_holder = |word: &str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
    let is_built = matches!(top, "target" | "dist") || top.starts_with('.') || top.is_empty();
    !rest.is_empty()
        && !is_built
        && text.chars().all(plain)
        && !text.split(|c: char| !c.is_ascii_alphabetic()).any(|word| is_holder(word) && word != "README")
        && workspace::root().join(top).is_dir()
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn alternatives(text: &str) -> Vec<String> {
    let Some((before, (inside, after))) =
        text.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return vec![text.to_owned()];
    };
    let each = inside.split(',').map(|one| format!("{before}{one}{after}"));
    each.flat_map(|path| alternatives(&path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_are_told_apart() {
        assert_eq!(alternatives("a/{b,c}/{d,e}.rs"), ["a/b/d.rs", "a/b/e.rs", "a/c/d.rs", "a/c/e.rs"]);
    }

    #[test]
    fn only_paths_of_the_repository_count() {
        assert!(is_path("xtask/src/main.rs"));
        assert!(is_path("xtask/{src,target}/main.rs"));
        for other in ["target/release/x", "xtask", "cargo xtask lint", "shim/src/ops/CLASS.rs", "nowhere/at.all"] {
            assert!(!is_path(other), "{other}");
        }
        assert_eq!(links("[a](b.md#c), [d](e)").collect::<Vec<_>>(), ["b.md#c", "e"]);
    }
}
