//! StreamSan in the projects of others: jobs of CI systems, build systems, the examples, releases.

mod build_systems;
mod ci_jobs;
mod examples;
mod readers;
mod releases;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use tests::run::{command, end_within};
use tests::{build, fake, product};

/// The programs of the environment with build systems, linters and Python's YAML, made once; none
/// without registries.
fn tools() -> Option<PathBuf> {
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let make = || {
        if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
            return None;
        }
        let validators = product::xtask("validators").unwrap_or_else(|error| panic!("{error}"));
        Some(validators.join("venv/bin"))
    };
    MADE.get_or_init(make).clone()
}

/// A release: its archive holds the product under test by a link.
fn release(folder: &Path) -> PathBuf {
    let name = concat!("streamsan-", env!("CARGO_PKG_VERSION"));
    let name = format!("{name}-{}-linux", std::env::consts::ARCH);
    let bin = folder.join(&name).join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    // The launcher looks for libraries beside its own file, to which the link leads.
    symlink(product::streamsan(), bin.join("streamsan")).expect("a link");
    let archive = folder.join(format!("{name}.tar.gz"));
    let tar = Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(folder).arg(&name).status().expect("tar");
    assert!(tar.success());
    fs::remove_dir_all(folder.join(&name)).expect("it is in the archive");
    archive
}

/// What `steps.py` tells of a job that runs in this folder.
fn steps(bin: &Path, folder: &Path, words: &[&str], variables: &[(&str, &str)]) -> Value {
    let mut python = command(bin.join("python"));
    python.arg(product::root().join("tests/ci_jobs/steps.py")).args(words).current_dir(folder);
    for name in ["GITHUB_ACTIONS", "GITHUB_WORKSPACE", "GITHUB_REPOSITORY", "GITHUB_SHA", "GITHUB_SERVER_URL"] {
        python.env_remove(name);
    }
    let ended = end_within(python.envs(variables.iter().copied()), 3 * tests::run::PATIENCE);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {}", ended.out))
}

fn racy() -> PathBuf {
    build::c_program("racy.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
