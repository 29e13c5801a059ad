//! A Python for aarch64: Debian's, unpacked into `.cache/aarch64-python`.
//!
//! Owns what is fetched and where it lies. It runs where `emulation` has put its libraries.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::debian::Debian;
use super::toolchain::Toolchain;
use crate::environment;

/// A name for what is fetched, changed whenever that changes.
const VERSION: &str = "2";
/// The interpreter, its modules, and the libraries that those need. The wheel of pip is the same
/// for all processors: it is this machine's (python3-venv).
const DEBIAN: [&str; 10] = [
    "python3.11-minimal:arm64",
    "libpython3.11-minimal:arm64",
    "libpython3.11-stdlib:arm64",
    "python3.11-venv:arm64",
    "libexpat1:arm64",
    "libffi8:arm64",
    "libssl3:arm64",
    "libbz2-1.0:arm64",
    "liblzma5:arm64",
    "zlib1g:arm64",
];

/// Where the interpreter lies: an environment (`venv`) looks for the modules beside this folder.
const PROGRAMS: &str = "root/usr/bin";

/// The interpreter, once it is there.
pub struct Python {
    folder: PathBuf,
}

impl Python {
    /// Fetches it unless it is there.
    pub fn get() -> Result<Python> {
        environment::folder("aarch64-python", VERSION, make).map(|folder| Python { folder })
    }

    /// Puts `python3` first in the path of a command that has the compilers there.
    pub fn set(&self, command: &mut Command, tools: &Toolchain) {
        command.env("PATH", tools.path_behind(&self.folder.join(PROGRAMS)));
    }

    /// The folders with its libraries.
    pub fn libraries(&self) -> [PathBuf; 2] {
        ["root/lib/aarch64-linux-gnu", "root/usr/lib/aarch64-linux-gnu"].map(|at| self.folder.join(at))
    }
}

fn make(folder: &Path) -> Result<()> {
    for made in ["root/lib/aarch64-linux-gnu", "root/usr/lib/aarch64-linux-gnu"] {
        fs::create_dir_all(folder.join(made))?;
    }
    let debian = Debian::read(folder)?;
    debian.unpack(&DEBIAN, &folder.join("root"))?;
    debian.forget()?;
    for name in ["python3", "python"] {
        let link = folder.join(PROGRAMS).join(name);
        if !link.is_symlink() {
            symlink("python3.11", link)?;
        }
    }
    Ok(())
}
