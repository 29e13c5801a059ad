//! `cargo xtask aarch64` and `cargo xtask test --target aarch64`: aarch64 on this machine.
//!
//! Owns both command lines. The compilers are in `toolchain`, the emulation in `emulation`, what is
//! tested in `suite`.

mod emulation;
mod suite;
mod toolchain;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use toolchain::Toolchain;

/// Run a command that builds for aarch64 and runs programs for it, under emulation.
///
/// The compilers for aarch64 come first in PATH, cargo builds into target/aarch64. Needs Debian 12
/// on x86-64 with apt-get, and Linux 6.7; no root. The first run fetches 300 MB of packages into
/// .cache/aarch64.
#[derive(clap::Args)]
pub struct Aarch64Args {
    /// The command, with its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

/// Test for another architecture, under emulation.
///
/// Builds everything for it, then runs unit tests, end-to-end tests on the fake driver and on the
/// simulated GPU, and checks traces of one architecture on the other. Needs what `cargo xtask
/// aarch64` needs.
#[derive(clap::Args)]
pub struct TestArgs {
    /// The architecture.
    #[arg(long, value_parser = ["aarch64"])]
    target: String,
    /// The unit tests of these packages, and nothing else.
    #[arg(short, long = "package")]
    packages: Vec<String>,
    /// A slice for CI: no unit tests, one end-to-end test of each kind.
    #[arg(long, conflicts_with = "packages")]
    fast: bool,
    /// Options and names for the unit tests of --package.
    #[arg(last = true, requires = "packages")]
    rest: Vec<String>,
}

/// Runs a command.
pub fn run(args: &Aarch64Args) -> Result<ExitCode> {
    let tools = Toolchain::get()?;
    emulation::check(&tools)?;
    let mut command = emulation::command(&tools, &args.command[0]);
    command.args(&args.command[1..]);
    tools.set(&mut command);
    let status = command.status()?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Runs the tests.
pub fn test(args: &TestArgs) -> Result<ExitCode> {
    let tools = Toolchain::get()?;
    emulation::check(&tools)?;
    let packages: Vec<&str> = args.packages.iter().map(String::as_str).collect();
    if packages.is_empty() {
        suite::everything(&tools, args.fast)?;
    } else {
        suite::unit_tests(&tools, &packages, &args.rest)?;
    }
    Ok(ExitCode::SUCCESS)
}
