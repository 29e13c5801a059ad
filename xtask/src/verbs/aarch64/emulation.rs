//! Runs programs for aarch64 as if this machine could: in a namespace of its own, in which the
//! kernel hands them to the emulator.
//!
//! Owns the namespace. Registrations of formats (`binfmt_misc`) have belonged to one since Linux
//! 6.7, so nothing outside of it changes. What such a program executes is emulated too if it has to
//! be; compilers and scripts run on the machine itself.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Result, bail};

use super::python::Python;
use super::toolchain::Toolchain;

/// Mounts and registers, then becomes its arguments. `F` opens the emulator now, `P` keeps the name
/// that a program was called by.
const ENTER: &str = r#"set -e
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
mount -t overlay overlay -o "lowerdir=$LAYER:/usr/lib" /usr/lib
mount -t overlay overlay -o "lowerdir=$LIBRARIES" /usr/lib/aarch64-linux-gnu
printf ':aarch64:M::\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00:\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff:%s:FP' "$QEMU" > /proc/sys/fs/binfmt_misc/register
unset LAYER LIBRARIES QEMU
exec "$@"
"#;

/// A command that runs where programs for aarch64 can be run.
pub fn command(tools: &Toolchain, program: impl AsRef<OsStr>) -> Command {
    with_python(tools, None, program)
}

/// As [`command`], with the libraries of a Python for aarch64.
pub fn with_python(tools: &Toolchain, python: Option<&Python>, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", ENTER, "sh"]).arg(program);
    // An overlay takes two folders at least: the last is empty.
    let mut libraries = vec![tools.libraries(), tools.layer().join("aarch64-linux-gnu")];
    libraries.splice(0..0, python.map(Python::libraries).into_iter().flatten());
    let libraries: Vec<String> = libraries.iter().map(|folder| folder.display().to_string()).collect();
    command.env("LAYER", tools.layer()).env("LIBRARIES", libraries.join(":")).env("QEMU", tools.qemu());
    command
}

/// Whether this machine allows it. The error says what is missing.
pub fn check(tools: &Toolchain) -> Result<()> {
    let tried = command(tools, "true").output()?;
    if !tried.status.success() {
        bail!(
            "no emulation: this needs Linux 6.7 with binfmt_misc and overlayfs, and namespaces for users: {}",
            String::from_utf8_lossy(&tried.stderr).trim()
        );
    }
    Ok(())
}
