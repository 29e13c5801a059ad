//! Sweeps over many programs on the simulated GPU: too long for CI, which runs a slice of each.
//!
//! Owns how a sweep runs tests of `tests/cases` that note a line for each program.

pub mod frameworks;
pub mod machine_code;
pub mod operators;
pub mod oracle;
pub mod replay;
pub mod schedules;

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::{command, workspace};

/// The tests of `tests/cases`; filters are to follow.
fn cases() -> Command {
    command::cargo(["test", "-q", "--workspace", "--test", "cases", "--"])
}

/// Runs tests that write lines into the file which `variable` names, and has the lines printed. If
/// a test failed, the end of what the tests said follows.
fn run_noting(mut test: Command, variable: &str, print: fn(&str)) -> Result<ExitCode> {
    let name = format!("{}-{}.txt", variable.to_lowercase(), std::process::id());
    let table = workspace::target().join(name);
    let ran = test.env("STREAMSAN_BIN", workspace::binaries()?).env(variable, &table).output().context("cargo test")?;
    let noted = std::fs::read_to_string(&table).unwrap_or_default();
    let _ = std::fs::remove_file(&table);
    print(&noted);
    if ran.status.success() {
        return Ok(ExitCode::SUCCESS);
    }
    let said = [String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr)].concat();
    let lines: Vec<&str> = said.lines().collect();
    println!("\n{}", lines[lines.len().saturating_sub(60)..].join("\n"));
    Ok(ExitCode::FAILURE)
}
