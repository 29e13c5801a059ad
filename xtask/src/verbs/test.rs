//! `cargo xtask test --target aarch64`: unit tests of another architecture, under emulation.
//!
//! Owns the cross toolchain: Debian's packages, unpacked into `.cache/aarch64` and installed
//! nowhere. The package lists come through the machine's own sources, with the other architecture
//! added in a state of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::{command, workspace};

/// Build unit tests for another architecture and run them under qemu.
///
/// Needs Debian 12 on x86-64 and apt-get; no root. The first run fetches 300 MB of packages into
/// .cache/aarch64.
#[derive(clap::Args)]
pub struct TestArgs {
    /// The architecture.
    #[arg(long, value_parser = ["aarch64"])]
    target: String,
    /// Packages to test; those that are known to pass if there are none.
    #[arg(short, long = "package")]
    packages: Vec<String>,
    /// Options and names for the tests.
    #[arg(last = true)]
    rest: Vec<String>,
}

const TRIPLE: &str = "aarch64-unknown-linux-gnu";
/// What passes under qemu.
const PACKAGES: [&str; 6] = ["cuda-sys", "kernels", "options", "order", "shim", "trace"];
/// Rust's compiler and library for both architectures, a C compiler, an emulator, and the libraries
/// that a small installation lacks.
const DEBIAN: [&str; 23] = [
    "rustc-web",
    "libstd-rust-web-1.96",
    "libstd-rust-web-dev",
    "libstd-rust-web-dev:arm64",
    "libllvm22",
    "libedit2",
    "libbsd0",
    "libmd0",
    "libxml2",
    "libicu72",
    "libz3-4",
    "gcc-12-aarch64-linux-gnu",
    "cpp-12-aarch64-linux-gnu",
    "g++-12-aarch64-linux-gnu",
    "binutils-aarch64-linux-gnu",
    "libgcc-12-dev-arm64-cross",
    "libstdc++-12-dev-arm64-cross",
    "libstdc++6-arm64-cross",
    "libgcc-s1-arm64-cross",
    "libc6-arm64-cross",
    "libc6-dev-arm64-cross",
    "linux-libc-dev-arm64-cross",
    "qemu-user-static",
];
/// The programs, as they are called: with the folder they lie in.
const PROGRAMS: [(&str, &str); 3] = [
    ("rustc", "LD_LIBRARY_PATH=\"$root/usr/lib/x86_64-linux-gnu\" exec \"$root/usr/bin/rustc\" \"$@\""),
    (
        "linker",
        "LD_LIBRARY_PATH=\"$root/usr/lib/x86_64-linux-gnu\" \
         exec \"$root/usr/bin/aarch64-linux-gnu-gcc-12\" --sysroot=\"$root\" \
         -B\"$root/usr/bin/aarch64-linux-gnu-\" \"$@\"",
    ),
    ("runner", "exec \"$root/usr/bin/qemu-aarch64-static\" -L \"$root/usr/aarch64-linux-gnu\" \"$@\""),
];

/// Fetches, builds, runs.
pub fn run(args: &TestArgs) -> Result<ExitCode> {
    let tools = toolchain()?;
    let chosen: Vec<&str> = args.packages.iter().map(String::as_str).collect();
    let packages = if chosen.is_empty() { &PACKAGES[..] } else { &chosen[..] };
    // The shim's further tests compile programs with the machine's own compiler.
    let (shim, others): (Vec<&str>, Vec<&str>) = packages.iter().partition(|package| **package == "shim");
    for (packages, what) in [(others, &["--lib", "--tests"][..]), (shim, &["--lib"][..])] {
        if !packages.is_empty() {
            test(&tools, &packages, what, &args.rest)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn test(tools: &Path, packages: &[&str], what: &[&str], rest: &[String]) -> Result<()> {
    let mut test = command::cargo(["test", "--target", TRIPLE, "--no-fail-fast"]);
    test.args(what);
    packages.iter().for_each(|package| {
        test.args(["-p", package]);
    });
    test.arg("--").args(rest);
    test.env("RUSTC", tools.join("rustc"))
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", tools.join("linker"))
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", tools.join("runner"))
        .env("CC_aarch64_unknown_linux_gnu", tools.join("linker"))
        .env("AR_aarch64_unknown_linux_gnu", tools.join("root/usr/bin/aarch64-linux-gnu-ar"))
        .env("CARGO_TARGET_DIR", workspace::target().join("aarch64"));
    command::run(&mut test)
}

/// The folder of the cross toolchain; made if it is not there.
fn toolchain() -> Result<PathBuf> {
    let folder = workspace::root().join(".cache/aarch64");
    if folder.join("complete").exists() {
        return Ok(folder);
    }
    let state = folder.join("apt");
    for made in [state.join("lists/partial"), state.join("archives/partial"), folder.join("debs"), folder.join("root")]
    {
        fs::create_dir_all(&made).with_context(|| made.display().to_string())?;
    }
    fs::write(state.join("status"), "")?;
    let at = fs::canonicalize(&state)?;
    let at = at.display();
    let settings = format!(
        "APT::Architecture \"amd64\";\nAPT::Architectures {{ \"amd64\"; \"arm64\"; }};\nDir::State \"{at}\";\n\
         Dir::State::lists \"{at}/lists\";\nDir::State::status \"{at}/status\";\nDir::Cache \"{at}\";\n\
         Acquire::Languages \"none\";\nAPT::Sandbox::User \"\";\n"
    );
    fs::write(state.join("apt.conf"), settings)?;
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(["-q", "-q"]).args(arguments).env("APT_CONFIG", state.join("apt.conf"));
        apt.current_dir(folder.join("debs")).stdout(Stdio::null());
        command::run(&mut apt)
    };
    apt(&["update"]).context("the list of Debian's packages: this needs Debian 12 with its sources")?;
    for package in DEBIAN {
        apt(&["download", package]).with_context(|| format!("Debian's package {package}: see `apt-cache policy`"))?;
    }
    unpack(&folder)?;
    for (name, line) in PROGRAMS {
        let file = folder.join(name);
        fs::write(&file, format!("#!/bin/sh\nroot=$(dirname \"$0\")/root\n{line}\n"))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
    }
    fs::write(folder.join("complete"), "")?;
    Ok(folder)
}

fn unpack(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder.join("debs"))? {
        command::run(Command::new("dpkg").arg("-x").arg(entry?.path()).arg(folder.join("root")))?;
    }
    if !folder.join("root/usr/lib/rustlib").join(TRIPLE).is_dir() {
        bail!("Debian's package libstd-rust-web-dev:arm64 holds no library for {TRIPLE}");
    }
    Ok(())
}
