//! What is installed from package registries into `.cache/`, once for each version.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result};
use tests::packages::{self, Place};

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

/// Makes a Python environment of these packages; `--no-deps` among them leaves out what they
/// depend on.
pub fn python(folder: &Path, packages: &[&str]) -> Result<()> {
    packages::environment(folder).map_err(Error::msg)?;
    packages::install(Place::Environment(folder), packages).map_err(Error::msg)
}

/// Fetches packages without installing them.
pub fn pip_download(args: &[&str]) -> Result<()> {
    let python = packages::pip().map_err(Error::msg)?;
    let mut pip = command::python(&python, ["-m", "pip", "download", "-q", "--disable-pip-version-check"]);
    command::run(pip.args(args).stdout(std::io::stderr()))
}

/// The folder of an environment's packages.
pub fn site_packages(venv: &Path) -> Result<PathBuf> {
    let lib = venv.join("lib");
    let entries = std::fs::read_dir(&lib).with_context(|| lib.display().to_string())?;
    let mut found = entries.filter_map(|entry| Some(entry.ok()?.path().join("site-packages")));
    found.find(|path| path.is_dir()).with_context(|| format!("{} has no packages", venv.display()))
}
