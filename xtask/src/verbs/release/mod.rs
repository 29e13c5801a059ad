//! `cargo xtask release VERSION`: the commit that a tag is put on.
//!
//! Owns the list of places that name the version. `docs/internals/releasing.md` describes what the
//! tag does.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::{command, workspace};

/// The places that name the version: a file, and the text around it.
const PLACES: [(&str, &str, &str); 10] = [
    ("Cargo.toml", "\nversion = \"", "\"\n"),
    ("python/streamsan/__init__.py", "\n__version__ = \"", "\"\n"),
    ("packaging/conda/recipe.yaml", "\n  version: \"", "\"\n"),
    ("examples/.github/workflows/races.yml", "OWNER/streamsan@v", "\n"),
    ("docs/guide/ci-gate.md", "OWNER/streamsan@v", " "),
    ("docs/guide/ci-gate.md", "/streamsan/streamsan@v", "\n"),
    ("docs/guide/ci-gate.md", "/streamsan-", "-x86_64"),
    ("examples/.gitlab-ci.yml", "/streamsan@v", "\n"),
    ("examples/.gitlab-ci.yml", "$STREAMSAN_RELEASES/v", "/"),
    ("examples/.gitlab-ci.yml", "/streamsan-", "-x86_64"),
];

const CHANGELOG: &str = "CHANGELOG.md";
const UNRELEASED: &str = "\n## Unreleased\n";

/// Set the version everywhere, and date the changelog's section; commits and tags nothing.
#[derive(clap::Args)]
pub struct ReleaseArgs {
    /// The new version: three numbers, and after a hyphen what comes before a release
    version: String,
}

/// Changes the files.
pub fn run(args: &ReleaseArgs) -> Result<ExitCode> {
    let version = args.version.as_str();
    ensure!(is_version(version), "{version} is no version like 1.2.3 or 1.2.3-rc.1");
    let today = command::output(Command::new("date").args(["-u", "+%F"]))?;
    let read = |file: &str| std::fs::read_to_string(workspace::root().join(file)).with_context(|| file.to_owned());
    let mut changed: Vec<(&str, String)> = Vec::new();
    for (file, before, after) in PLACES {
        let text = match changed.iter().position(|(known, _)| *known == file) {
            Some(at) => changed.remove(at).1,
            None => read(file)?,
        };
        changed.push((file, with_version(&text, before, after, version).with_context(|| file.to_owned())?));
    }
    changed.push((CHANGELOG, dated(&read(CHANGELOG)?, version, today.trim())?));
    // Nothing is written unless everything was found.
    for (file, text) in &changed {
        std::fs::write(workspace::root().join(file), text).with_context(|| (*file).to_owned())?;
    }
    command::run(command::cargo(["update", "--workspace", "--offline", "-q"]).current_dir(workspace::root()))?;
    println!("Look at the changes, commit them, then: git tag v{version}");
    Ok(ExitCode::SUCCESS)
}

/// Semantic versioning, sections 2 and 9, without build metadata.
fn is_version(text: &str) -> bool {
    let (numbers, pre) = text.split_once('-').map_or((text, None), |(numbers, pre)| (numbers, Some(pre)));
    let is_number = |part: &str| part.parse::<u32>().is_ok_and(|number| number.to_string() == part);
    let is_word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(is_word))
}

/// The text with another version in its one place between the two texts.
fn with_version(text: &str, before: &str, after: &str, version: &str) -> Result<String> {
    let mut places = text.match_indices(before).filter_map(|(at, _)| {
        let from = at + before.len();
        let to = from + text[from..].find(after)?;
        is_version(&text[from..to]).then_some((from, to))
    });
    match (places.next(), places.next()) {
        (Some((from, to)), None) => Ok(format!("{}{version}{}", &text[..from], &text[to..])),
        (None, _) => bail!("no version behind {before:?}"),
        _ => bail!("several versions behind {before:?}"),
    }
}

/// The changelog with an empty section for what comes next.
fn dated(text: &str, version: &str, today: &str) -> Result<String> {
    ensure!(!text.contains(&format!("\n## {version}\n")), "the changelog has a section {version}");
    ensure!(!text.contains(&format!("\n## {version} - ")), "the changelog has a section {version}");
    ensure!(text.matches(UNRELEASED).count() == 1, "the changelog has no section of what is unreleased");
    Ok(text.replacen(UNRELEASED, &format!("{UNRELEASED}\n## {version} - {today}\n"), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_there_once() {
        for (file, before, after) in PLACES {
            let text = std::fs::read_to_string(workspace::root().join(file)).expect("the file");
            let changed = with_version(&text, before, after, "9.8.7-rc.1").expect(file);
            assert_eq!(changed.matches("9.8.7-rc.1").count(), 1, "{file}");
            let back = with_version(&changed, before, after, env!("CARGO_PKG_VERSION")).expect(file);
            assert_eq!(back, text, "{file} names another version than Cargo.toml");
        }
    }

    #[test]
    fn versions() {
        for good in ["0.1.0", "1.22.333", "1.0.0-rc.1", "1.0.0-a-b"] {
            assert!(is_version(good), "{good}");
        }
        for bad in ["1.0", "1.0.0.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-a..b", "1.0.0+x", "", "1.0.x"] {
            assert!(!is_version(bad), "{bad}");
        }
    }

    #[test]
    fn the_changelog_gets_a_date_and_a_new_section() {
        let text = "# Changelog\n\n## Unreleased\n\n- one\n\n## 0.0.1\n";
        let told = dated(text, "0.1.0", "2026-12-01").expect("dated");
        assert_eq!(told, "# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-12-01\n\n- one\n\n## 0.0.1\n");
        assert!(dated(&told, "0.1.0", "2026-12-02").is_err(), "a second time");
        assert!(dated(text, "0.0.1", "2026-12-02").is_err(), "an old one");
        assert!(dated("# Changelog\n", "0.1.0", "2026-12-02").is_err());
    }
}
