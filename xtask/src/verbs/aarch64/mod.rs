//! `cargo xtask aarch64` and `cargo xtask test --target aarch64`: aarch64 on this machine.
//!
//! Owns both command lines. The compilers are in `toolchain`, Python in `python`, both from
//! `debian`; the emulation is in `emulation`, what is tested in `suite`, what it said in `tally`.

mod debian;
mod emulation;
mod python;
mod suite;
mod tally;
mod toolchain;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use python::Python;
use suite::Extent;
use tally::Tally;
use toolchain::Toolchain;

/// Run a command that builds for aarch64 and runs programs for it, under emulation.
///
/// The compilers for aarch64 come first in PATH, cargo builds into target/aarch64. Needs Debian 12
/// on x86-64 with apt-get, and Linux 6.7; no root. The first run fetches 300 MB of packages into
/// .cache/aarch64.
#[derive(clap::Args)]
pub struct Aarch64Args {
    /// With a Python for aarch64 as python3.
    #[arg(long)]
    python: bool,
    /// The command, with its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

/// Test for another architecture, under emulation.
///
/// Builds everything for it, then runs unit tests, checks traces of one architecture on the other,
/// and runs end-to-end tests on the fake driver and on the simulated GPU. Prints a table. Needs
/// what `cargo xtask aarch64` needs.
#[derive(clap::Args)]
pub struct TestArgs {
    /// The architecture.
    #[arg(long, value_parser = ["aarch64"])]
    target: String,
    /// The unit tests of these packages, and nothing else.
    #[arg(short, long = "package")]
    packages: Vec<String>,
    /// A slice for CI: no simulator, a few tests of each kind, nothing optimised.
    #[arg(long, conflicts_with = "packages")]
    fast: bool,
    /// Test what `scripts/build` put into this folder, and build nothing but the tests.
    #[arg(long, value_name = "FOLDER", conflicts_with = "packages")]
    built: Option<PathBuf>,
    /// Where emulation or Debian's packages are not to be had, say so and succeed.
    #[arg(long)]
    where_possible: bool,
    /// Options and names for the unit tests of --package.
    #[arg(last = true, requires = "packages")]
    rest: Vec<String>,
}

/// Runs a command.
pub fn run(args: &Aarch64Args) -> Result<ExitCode> {
    let tools = get()?;
    let python = args.python.then(Python::get).transpose()?;
    let mut command = emulation::with_python(&tools, python.as_ref(), &args.command[0]);
    command.args(&args.command[1..]);
    tools.set(&mut command);
    if let Some(python) = python {
        python.set(&mut command, &tools);
    }
    let status = command.status()?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Runs the tests.
pub fn test(args: &TestArgs) -> Result<ExitCode> {
    let tools = match get() {
        Err(error) if args.where_possible => {
            println!("left out: aarch64 was not tested: {error:#}");
            return Ok(ExitCode::SUCCESS);
        }
        got => got?,
    };
    let packages: Vec<&str> = args.packages.iter().map(String::as_str).collect();
    if packages.is_empty() {
        suite::run(&tools, if args.fast { Extent::Fast } else { Extent::All }, args.built.as_deref())?;
    } else {
        let mut tally = Tally::new();
        suite::unit_tests(&mut tally, &tools, Extent::All, &packages, &args.rest)?;
        tally.end()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The toolchain, on a machine that can run what it makes.
fn get() -> Result<Toolchain> {
    let tools = Toolchain::get()?;
    emulation::check(&tools)?;
    Ok(tools)
}
