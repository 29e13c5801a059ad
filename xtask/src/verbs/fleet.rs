//! `cargo xtask fleet`: what `streamsan fleet` runs on, for its tests.

use std::process::ExitCode;

use anyhow::Result;

use crate::environment;

/// Install Ray, PySpark and DuckDB, and print the folder.
///
/// `venv/bin/python` has them. PySpark needs Java 17 or newer, which no package of PyPI has with
/// all modules that Spark wants.
#[derive(clap::Args)]
pub struct FleetArgs {}

const PACKAGES: [&str; 6] =
    ["duckdb==2.0.0", "fsspec==2026.9.0", "pyarrow==26.0.1", "pyspark==4.3.0", "ray==2.60.0", "tqdm==4.70.1"];

/// Installs and prints.
pub fn run(_: &FleetArgs) -> Result<ExitCode> {
    let folder = environment::folder("fleet", "1", |folder| {
        let venv = folder.join("venv");
        environment::venv(&venv)?;
        environment::pip_install(&venv, &PACKAGES)
    })?;
    println!("{}", folder.display());
    Ok(ExitCode::SUCCESS)
}
