//! `cargo xtask operators`: PyTorch's operators on the simulated GPU against the CPU's results.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::verbs::torch_sim;
use crate::{command, workspace};

/// Run PyTorch's operators on the simulated GPU, and compare with the CPU.
///
/// The list, what is compared and the table are in `tests/frameworks`. StreamSan watches: it must
/// stay silent. Installs PyTorch into `.cache/torch-full` (5 GB, minutes). Builds, unless
/// `STREAMSAN_BIN` names a folder of binaries with `sim` in it.
#[derive(clap::Args)]
pub struct OperatorsArgs {
    /// Look for races inside kernels, too
    #[arg(long)]
    inside: bool,
    /// Arguments of tests/frameworks/operators.py; `--help` behind `--` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs and passes the exit code on.
pub fn run(args: &OperatorsArgs) -> Result<ExitCode> {
    let binaries = workspace::binaries()?;
    let torch = torch_sim::environment()?;
    let mut command = command::clean(&binaries.join("streamsan"));
    command.args(["run", "--sim"]).args(args.inside.then_some("--inside")).arg("--").arg(torch.join("bin/python"));
    command.arg(workspace::root().join("tests/frameworks/operators.py")).args(&args.arguments);
    let status = command.status().context("streamsan")?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
