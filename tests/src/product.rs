//! The product under test: `streamsan` and the libraries beside it.
//!
//! Uses what `STREAMSAN_BIN` names, otherwise builds the crates with the profile and into the
//! folder of the running test.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lie in the repository")
}

/// The folder `debug` or `release` that the running test, or `xtask`, was built into.
pub(crate) fn profile_folder() -> PathBuf {
    let exe = std::env::current_exe().expect("a program knows its own path");
    let folder = exe.parent().expect("a program lies in a folder");
    let is_test = folder.file_name().is_some_and(|name| name == "deps");
    if is_test { folder.parent().expect("tests lie in PROFILE/deps") } else { folder }.to_path_buf()
}

/// The folder with `streamsan` and `libstreamsan.so`.
pub fn bin() -> &'static Path {
    static BIN: OnceLock<PathBuf> = OnceLock::new();
    BIN.get_or_init(|| match std::env::var_os("STREAMSAN_BIN") {
        Some(folder) => {
            let folder = std::fs::canonicalize(&folder).unwrap_or_else(|e| panic!("STREAMSAN_BIN={folder:?}: {e}"));
            assert!(folder.join("streamsan").exists(), "no streamsan in STREAMSAN_BIN ({})", folder.display());
            folder
        }
        None => build().unwrap_or_else(|error| panic!("{error}")),
    })
}

/// Builds the product. cargo-nextest runs a process for each test: the first one builds.
fn build() -> Result<PathBuf, String> {
    let folder = profile_folder();
    let Some(run) = std::env::var_os("NEXTEST_RUN_ID") else {
        cargo_build(&folder)?;
        return Ok(folder);
    };
    let built = crate::build::cache().join(format!("built-{}", run.to_string_lossy()));
    crate::build::once(&built, |stamp| {
        cargo_build(&folder)?;
        std::fs::write(stamp, "").map_err(|error| error.to_string())
    })?;
    Ok(folder)
}

fn cargo_build(folder: &Path) -> Result<(), String> {
    let target = folder.parent().expect("PROFILE lies in the target folder");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root()).args(["build", "-q"]);
    for name in
        ["shim", "shim-threads", "shim-instrumented", "shim-mpi", "analyzer", "sim", "sim-cudart", "sim-libraries"]
    {
        cargo.args(["-p", name]);
    }
    cargo.arg("--target-dir").arg(target);
    if folder.file_name().is_some_and(|name| name == "release") {
        cargo.arg("--release");
    }
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err("the product does not build".to_owned());
    }
    let mut place = Command::new(root().join("scripts/build"));
    let placed = place.arg("--place").arg(folder).status().map_err(|error| format!("scripts/build: {error}"))?;
    if placed.success() { Ok(()) } else { Err("the simulator cannot be put in its place".to_owned()) }
}

/// Whether the product is for aarch64: then compilers for it have to come first in `PATH`, and the
/// system has to run what they make (`cargo xtask test --target aarch64` sees to both).
pub fn is_aarch64() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    *IS.get_or_init(|| {
        // Without prebuilt binaries the product is built for the tests' own processor.
        if std::env::var_os("STREAMSAN_BIN").is_none() {
            return cfg!(target_arch = "aarch64");
        }
        let mut start = [0; 20];
        let read = File::open(streamsan()).and_then(|mut file| file.read_exact(&mut start));
        read.unwrap_or_else(|error| panic!("{}: {error}", streamsan().display()));
        u16::from_le_bytes([start[18], start[19]]) == 183
    })
}

/// The `streamsan` program.
pub fn streamsan() -> PathBuf {
    bin().join("streamsan")
}

/// The library to preload.
pub fn shim() -> PathBuf {
    bin().join("libstreamsan.so")
}

/// What `cargo xtask VERB` prints, which is a path: an environment that it installs unless it is
/// there.
pub fn xtask(verb: &str) -> Result<PathBuf, String> {
    // Beside prebuilt binaries cargo would build it again, with other features of its dependencies.
    let built = bin().join("xtask");
    let mut command = if std::env::var_os("STREAMSAN_BIN").is_some() && built.exists() {
        Command::new(built)
    } else {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.arg("xtask");
        cargo
    };
    let made = command.current_dir(root()).arg(verb).output().map_err(|error| format!("xtask: {error}"))?;
    if !made.status.success() {
        return Err(format!("cargo xtask {verb}: {}", String::from_utf8_lossy(&made.stderr)));
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&made.stdout).trim()))
}
