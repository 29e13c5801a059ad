//! Packages of PyPI, in environments and in folders.
//!
//! Owns how they get there: by uv (PyTorch takes it 5 s, and pip 12), or by pip where uv cannot
//! be had or fails: it does not read pip's configuration. Does not choose versions, and
//! makes each thing only once it is asked: `build::once` and `xtask`'s environments keep it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

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
    made(Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(folder))
}

/// Installs packages (`NAME==VERSION`). `--no-deps` among them leaves out what they depend on.
pub fn install<S: AsRef<OsStr>>(into: Place<'_>, packages: &[S]) -> Result<(), String> {
    if let Ok(uv) = uv() {
        let mut command = Command::new(uv);
        command.args(["pip", "install", "-q", "--no-config", "--no-cache"]);
        match into {
            Place::Environment(folder) => command.arg("--python").arg(folder.join("bin/python")),
            Place::Folder(folder) => command.arg("--target").arg(folder),
        };
        if let Some(index) = std::env::var_os("PIP_INDEX_URL") {
            command.arg("--default-index").arg(index);
        }
        if ran(command.args(packages)).is_ok() {
            return Ok(());
        }
    }
    by_pip(into, packages)
}

fn by_pip<S: AsRef<OsStr>>(into: Place<'_>, packages: &[S]) -> Result<(), String> {
    let mut pip = Command::new(pip()?);
    pip.args(["-m", "pip", "-q", "--disable-pip-version-check"]);
    let mut target: Vec<OsString> = Vec::new();
    match into {
        Place::Environment(folder) => drop(pip.arg("--python").arg(folder.join("bin/python"))),
        Place::Folder(folder) => target.extend(["--upgrade".into(), "--target".into(), folder.into()]),
    }
    ran(pip.args(["install", "--no-cache-dir", "--no-compile"]).args(target).args(packages))
}

/// A Python that has pip: the system's may be without.
pub fn pip() -> Result<PathBuf, String> {
    // An environment cannot be moved to another name, so what says that it is complete is a file
    // beside it.
    let folder = product::root().join(".cache/pip");
    build::once(&product::root().join(".cache/pip.ready"), |stamp| {
        let _ = std::fs::remove_dir_all(&folder);
        made(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
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

/// Makes an environment by a command.
fn made(venv: &mut Command) -> Result<(), String> {
    ran(venv).map_err(|error| format!("python3 -m venv (apt-get install python3-venv): {error}"))
}

fn ran(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let made = command.output().map_err(|error| format!("{program}: {error}"))?;
    if made.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&made.stderr).trim_end()))
}
