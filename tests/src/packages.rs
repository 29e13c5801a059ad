//! Packages of PyPI, in environments and in folders.
//!
//! Owns how they get there: by uv (PyTorch takes it 5 s, and pip 12), or by pip where uv cannot
//! be had or fails: it does not read pip's configuration. Does not choose versions, and
//! makes each thing only once it is asked: `build::once` and `xtask`'s environments keep it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::run::must;
use crate::{build, product};

const UV: &str = "uv==0.13.9";

/// Where packages go.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// An environment.
    Environment(&'a Path),
    /// A folder that is put on Python's path.
    Folder(&'a Path),
}

/// Makes an environment, without pip in it.
pub fn environment(folder: &Path) -> Result<(), String> {
    venv(folder, &["--without-pip"])
}

/// Installs packages (`NAME==VERSION`). `--no-deps` among them leaves out what they depend on.
pub fn install(into: Place<'_>, packages: &[&str]) -> Result<(), String> {
    by_uv(into, packages).or_else(|_| by_pip(into, packages))
}

fn by_uv(into: Place<'_>, packages: &[&str]) -> Result<(), String> {
    let mut args: Vec<OsString> = ["pip", "install", "-q", "--no-config", "--no-cache"].map(OsString::from).into();
    match into {
        Place::Environment(folder) => args.extend(["--python".into(), folder.join("bin/python").into()]),
        Place::Folder(folder) => args.extend(["--target".into(), folder.into()]),
    }
    if let Some(index) = std::env::var_os("PIP_INDEX_URL") {
        args.extend(["--default-index".into(), index]);
    }
    args.extend(packages.iter().map(OsString::from));
    must(&uv()?, args).map(drop)
}

fn by_pip(into: Place<'_>, packages: &[&str]) -> Result<(), String> {
    let mut args: Vec<OsString> = ["-m", "pip", "-q", "--disable-pip-version-check"].map(OsString::from).into();
    let mut target: Vec<OsString> = Vec::new();
    match into {
        Place::Environment(folder) => args.extend(["--python".into(), folder.join("bin/python").into()]),
        Place::Folder(folder) => target.extend(["--upgrade".into(), "--target".into(), folder.into()]),
    }
    args.extend(["install", "--no-cache-dir", "--no-compile"].map(OsString::from));
    args.extend(target.into_iter().chain(packages.iter().map(OsString::from)));
    must(&pip()?, args).map(drop)
}

/// A Python that has pip: the system's may be without.
pub fn pip() -> Result<PathBuf, String> {
    // An environment cannot be moved to another name, so what says that it is complete is a file
    // beside it.
    let folder = product::root().join(".cache/pip");
    build::once(&product::root().join(".cache/pip.ready"), |stamp| {
        let _ = std::fs::remove_dir_all(&folder);
        venv(&folder, &[])?;
        std::fs::write(stamp, "").map_err(|error| error.to_string())
    })?;
    Ok(folder.join("bin/python"))
}

/// uv, installed once.
fn uv() -> Result<PathBuf, String> {
    let folder = product::root().join(".cache").join(UV);
    let folder = build::once(&folder, |partial| {
        let _ = std::fs::remove_dir_all(partial);
        by_pip(Place::Folder(partial), &["--no-deps", UV])
    })?;
    Ok(folder.join("bin/uv"))
}

fn venv(folder: &Path, options: &[&str]) -> Result<(), String> {
    let args = ["-m", "venv"].iter().chain(options).map(OsStr::new).chain([folder.as_os_str()]);
    must(Path::new("python3"), args)
        .map(drop)
        .map_err(|error| format!("python3 -m venv (apt-get install python3-venv): {error}"))
}
