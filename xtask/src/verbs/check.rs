//! `cargo xtask check`: what is quick, before a commit.

use std::process::ExitCode;

use anyhow::Result;

use crate::{command, lint};

/// The quick checks before a commit: format, clippy, and the house's own lint.
///
/// `scripts/test` runs everything.
#[derive(clap::Args)]
pub struct CheckArgs {}

/// Runs the checks.
pub fn run(_: &CheckArgs) -> Result<ExitCode> {
    command::run(&mut command::cargo(["fmt", "--all", "--check"]))?;
    let checked = lint::run(&lint::LintArgs::wired())?;
    if checked != ExitCode::SUCCESS {
        return Ok(checked);
    }
    command::run(&mut command::cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    Ok(ExitCode::SUCCESS)
}
