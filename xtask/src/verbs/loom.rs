//! `cargo xtask loom`: the ring under every interleaving.

use std::process::ExitCode;

use anyhow::Result;

use crate::{command, workspace};

/// Run the ring's protocol under every interleaving of its two ends and every value that the memory
/// model allows.
///
/// Loom runs the source that the shim and the analyzer use.
#[derive(clap::Args)]
pub struct LoomArgs {
    /// Options and names for the tests.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Runs the tests in a build folder of their own.
pub fn run(args: &LoomArgs) -> Result<ExitCode> {
    let mut test = command::cargo(["test", "-p", "trace", "--lib", "loom_tests", "--"]);
    test.args(&args.rest).env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", workspace::target().join("loom"));
    command::run(&mut test)?;
    Ok(ExitCode::SUCCESS)
}
