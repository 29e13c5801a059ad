//! Compiles the crate a second time, as the library that is preloaded.
//!
//! It runs before the C library is ready, so it has no standard library inside. Such a library has
//! to be compiled with `panic=abort`, which cargo sets for whole workspaces only. So the compiler
//! is called here.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    println!("cargo::rustc-check-cfg=cfg(freestanding)");
    let variable = |name: &str| std::env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let out = PathBuf::from(variable("OUT_DIR")).join("libstreamsan_divert.so");
    let source = Path::new(&variable("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--edition=2024", "--crate-name=streamsan_divert", "--crate-type=cdylib", "--cfg=freestanding"]);
    rustc.args([
        "-Cpanic=abort",
        "-Copt-level=2",
        "-Clto=fat",
        "-Ccodegen-units=1",
        "-Cdebuginfo=0",
        "-Cstrip=debuginfo",
    ]);
    rustc.args(["-Clink-arg=-nostdlib", "-Clink-arg=-nostartfiles", "-Clink-arg=-Wl,-soname,libstreamsan_divert.so"]);
    rustc.args(["-Clink-arg=-Wl,-z,now", "-Clink-arg=-Wl,-Bsymbolic"]);
    if variable("CARGO_CFG_TARGET_ARCH") == "aarch64" {
        // Helpers for atomic operations would ask the C library which instructions there are.
        rustc.arg("-Ctarget-feature=-outline-atomics");
    }
    // What cargo's own calls of the compiler are told to call the folders of this machine.
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\u{1f}').filter(|flag| flag.starts_with("--remap-path-prefix=")));
    // Where cargo was told to use another than the compiler's own.
    if let Some(linker) = std::env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg([OsStr::new("linker="), &linker].into_iter().collect::<OsString>());
    }
    rustc.arg("--target").arg(variable("TARGET")).arg(source).arg("-o").arg(&out);
    match rustc.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{rustc:?} ended with {status}"),
        Err(error) => panic!("{rustc:?}: {error}"),
    }
}
