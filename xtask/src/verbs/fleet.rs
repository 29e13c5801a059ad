//! `cargo xtask fleet`: what `streamsan fleet` runs on, for its tests.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::{command, environment};

/// Install Ray, PySpark and DuckDB, and print the folder.
///
/// `venv/bin/python` has them. PySpark needs Java 17 or newer, which no package of PyPI has with
/// all modules that Spark wants.
#[derive(clap::Args)]
pub struct FleetArgs {}

const PACKAGES: [&str; 6] =
    ["duckdb==2.0.0", "fsspec==2026.9.0", "py4j==0.10.9.9", "pyarrow==26.0.1", "ray==2.60.0", "tqdm==4.70.1"];
const SPARK: &str = "pyspark==4.3.0";

/// Unpacks PySpark's source archive: Python's part, and the jars that SQL on this machine needs.
const UNPACK: &str = r"
import re, sys, tarfile
archive, to = sys.argv[1:]
unused = re.compile(r'deps/jars/(connect-repl/|rocksdbjni|spark-(connect|mllib|kubernetes|hive|streaming|graphx|repl)|breeze|spire'
                    r'|kubernetes-|vertx-|hive-(exec|metastore|cli|beeline|jdbc)|derby|datanucleus|scala-compiler|curator-|lapack|arpack|blas)')
with tarfile.open(archive, 'r|gz') as files:
    for member in files:
        name = member.name.partition('/')[2]
        part = next((p for p in ('pyspark/', 'deps/jars/', 'deps/bin/') if name.startswith(p)), None)
        if part and member.isfile() and not unused.match(name):
            member.name = name if part == 'pyspark/' else name.replace('deps/', 'pyspark/', 1)
            files.extract(member, to, filter='data')
";

/// Installs and prints.
pub fn run(_: &FleetArgs) -> Result<ExitCode> {
    let folder = environment::folder("fleet", "2", |folder| {
        let venv = folder.join("venv");
        environment::python(&venv, &PACKAGES)?;
        spark(folder, &venv)
    })?;
    println!("{}", folder.display());
    Ok(ExitCode::SUCCESS)
}

/// PySpark is half a gigabyte of sources, of which pip would make three copies on its way.
fn spark(folder: &Path, venv: &Path) -> Result<()> {
    let python = venv.join("bin/python");
    let fetched = folder.join("fetched");
    let to = fetched.to_string_lossy();
    environment::pip_download(&["--no-cache-dir", "--no-deps", "-d", &to, SPARK])?;
    let archive = std::fs::read_dir(&fetched)?.filter_map(|entry| Some(entry.ok()?.path())).next();
    let archive = archive.context("pip fetched nothing")?;
    let mut unpack = command::python(&python, ["-c", UNPACK]);
    command::run(unpack.arg(&archive).arg(environment::site_packages(venv)?))?;
    std::fs::remove_dir_all(fetched)?;
    Ok(())
}
