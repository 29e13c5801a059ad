//! What is installed from package registries into `.cache/`, once for each version.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{command, workspace};

/// A folder of `.cache/`. `make` fills it, unless what `version` names is there. Several processes
/// may ask at once: one makes it.
pub fn folder(name: &str, version: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let cache = workspace::root().join(".cache");
    let folder = cache.join(name);
    let stamp = folder.join(format!(".ready-{version}"));
    if stamp.exists() {
        return Ok(folder);
    }
    std::fs::create_dir_all(&cache)?;
    let lock = File::create(cache.join(format!("{name}.lock")))?;
    lock.lock()?;
    if !stamp.exists() {
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        make(&folder).with_context(|| format!("installing {}", folder.display()))?;
        File::create(&stamp)?;
    }
    Ok(folder)
}

/// Makes a Python environment in a folder.
pub fn venv(folder: &Path) -> Result<()> {
    let mut python = Command::new("python3");
    command::run(python.args(["-m", "venv"]).arg(folder).stdout(std::io::stderr()))
        .context("python3 -m venv (apt-get install python3-venv)")
}

/// Installs packages into an environment.
pub fn pip_install(venv: &Path, args: &[&str]) -> Result<()> {
    pip(&venv.join("bin/python"), "install", args)
}

/// Fetches packages without installing them.
pub fn pip_download(python: &Path, args: &[&str]) -> Result<()> {
    pip(python, "download", args)
}

fn pip(python: &Path, verb: &str, args: &[&str]) -> Result<()> {
    let mut pip = command::python(python, ["-m", "pip", verb, "-q", "--disable-pip-version-check"]);
    command::run(pip.args(args).stdout(std::io::stderr()))
}

/// The folder of an environment's packages.
pub fn site_packages(venv: &Path) -> Result<PathBuf> {
    let lib = venv.join("lib");
    let entries = std::fs::read_dir(&lib).with_context(|| lib.display().to_string())?;
    let mut found = entries.filter_map(|entry| Some(entry.ok()?.path().join("site-packages")));
    found.find(|path| path.is_dir()).with_context(|| format!("{} has no packages", venv.display()))
}
