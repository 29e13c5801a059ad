//! `cargo xtask bless`: accepts what the report tests print.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{command, workspace};

/// Accept what the report tests print now as what they expect (`tests/expected`).
///
/// Look at the difference before you commit it.
#[derive(clap::Args)]
pub struct BlessArgs {
    /// Options and names for the tests.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Runs the tests, then shows what changed.
pub fn run(args: &BlessArgs) -> Result<ExitCode> {
    let mut test = command::cargo(["test", "--workspace", "--test", "e2e", "--", "reporting::reports"]);
    command::run(test.args(&args.rest).env("BLESS", "1"))?;
    let mut git = Command::new("git");
    command::run(git.current_dir(workspace::root()).args(["--no-pager", "diff", "--stat", "--", "tests/expected"]))?;
    Ok(ExitCode::SUCCESS)
}
