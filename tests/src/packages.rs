//! Packages of PyPI, in environments and in folders.
//!
//! Owns how they get there: by uv, which takes a fifth of the time that pip takes, or by pip where
//! uv cannot be had or fails (it does not read pip's configuration). Does not choose versions, and
//! makes each thing only once it is asked: `build::once` and `xtask`'s environments keep it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{build, product};

const UV: &str = "uv==0.13.9";

/// Where packages go.
#[derive(Clone, Copy)]
pub enum Into<'a> {
    /// An environment.
    Environment(&'a Path),
    /// A folder that is put on Python's path.
    Folder(&'a Path),
}

/// Makes an environment, without pip in it.
pub fn environment(folder: &Path) -> Result<(), String> {
    let mut python = Command::new("python3");
    ran(python.args(["-m", "venv", "--without-pip"]).arg(folder))
        .map_err(|error| format!("python3 -m venv (apt-get install python3-venv): {error}"))
}

/// Installs packages (`NAME==VERSION`). `--no-deps` among them leaves out what they depend on.
pub fn install<S: AsRef<OsStr>>(into: Into<'_>, packages: &[S]) -> Result<(), String> {
    if let Ok(uv) = uv() {
        let mut command = Command::new(uv);
        command.args(["pip", "install", "-q", "--no-config", "--no-cache"]);
        match into {
            Into::Environment(folder) => command.arg("--python").arg(folder.join("bin/python")),
            Into::Folder(folder) => command.arg("--target").arg(folder),
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

fn by_pip<S: AsRef<OsStr>>(into: Into<'_>, packages: &[S]) -> Result<(), String> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "-q", "--disable-pip-version-check"]);
    let mut target: Vec<OsString> = Vec::new();
    match into {
        Into::Environment(folder) => drop(pip.arg("--python").arg(folder.join("bin/python"))),
        Into::Folder(folder) => target.extend(["--target".into(), folder.into()]),
    }
    ran(pip.args(["install", "--no-cache-dir", "--no-compile"]).args(target).args(packages))
}

/// uv, installed once.
fn uv() -> Result<PathBuf, String> {
    let folder = product::root().join(".cache").join(UV);
    let folder = build::once(&folder, |partial| {
        let _ = std::fs::remove_dir_all(partial);
        by_pip(Into::Folder(partial), &["--no-deps", UV])
    })?;
    Ok(folder.join("bin/uv"))
}

fn ran(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let made = command.output().map_err(|error| format!("{program}: {error}"))?;
    if made.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&made.stderr).trim_end()))
}
