//! The cross toolchain for aarch64: Debian's packages, unpacked into `.cache/aarch64` and installed
//! nowhere.
//!
//! Owns what is fetched and the programs in front of it; how it is fetched is in `debian`. The
//! emulator is that of the backports: the one of Debian 12 keeps a record of each page that a
//! program reserves, which for the simulator's terabytes is more than a machine has.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::debian::{BACKPORTS, Debian};
use crate::{command, environment, workspace};

/// What is built for.
pub const TRIPLE: &str = "aarch64-unknown-linux-gnu";
/// A name for what is fetched, changed whenever that changes.
const VERSION: &str = "2";
/// Rust's compiler and library for both architectures, a C compiler, and the libraries that a small
/// installation lacks.
const DEBIAN: [&str; 22] = [
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
];
/// NVIDIA's runtime for programs to link with, of the version of `scripts/toolkit`.
const RUNTIME: &str = "nvidia-cuda-runtime==13.0.96";
/// The programs of `bin`, by the names that build scripts and tests call them by, and those of
/// Debian.
const PROGRAMS: [(&str, &str); 10] = [
    ("gcc", "gcc-12"),
    ("cc", "gcc-12"),
    ("g++", "g++-12"),
    ("c++", "g++-12"),
    ("ar", "ar"),
    ("nm", "nm"),
    ("objcopy", "objcopy"),
    ("objdump", "objdump"),
    ("readelf", "readelf"),
    ("strip", "strip"),
];

/// The toolchain, once it is there.
pub struct Toolchain {
    folder: PathBuf,
}

impl Toolchain {
    /// Fetches it unless it is there.
    pub fn get() -> Result<Toolchain> {
        environment::folder("aarch64", VERSION, make).map(|folder| Toolchain { folder })
    }

    /// The emulator, a static program.
    pub fn qemu(&self) -> PathBuf {
        self.folder.join("root/usr/bin/qemu-aarch64")
    }

    /// The C libraries for aarch64, with the dynamic linker.
    pub fn libraries(&self) -> PathBuf {
        self.folder.join("root/usr/aarch64-linux-gnu/lib")
    }

    /// An empty folder for the mounts of a namespace: with the names that have to be there.
    pub fn layer(&self) -> PathBuf {
        self.folder.join("layer")
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// The compilers, then all else.
    fn path(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.folder.join("bin").display())
    }

    /// A folder, then the compilers, then all else.
    pub fn path_behind(&self, folder: &Path) -> String {
        format!("{}:{}", folder.display(), self.path())
    }

    /// Lets a command build for aarch64: compilers by their usual names, also for `nvcc` and for
    /// cargo with `--target`. What cargo builds for this machine keeps the machine's own.
    pub fn set(&self, command: &mut Command) {
        command.env("PATH", self.path());
        command.env(
            "NVCC_PREPEND_FLAGS",
            format!("-ccbin {} -L{}", self.program("g++").display(), self.folder.join("cuda/lib").display()),
        );
        command.env("RUSTC", self.program("rustc"));
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", self.program("gcc"));
        command.env("CC_aarch64_unknown_linux_gnu", self.program("gcc"));
        command.env("CXX_aarch64_unknown_linux_gnu", self.program("g++"));
        command.env("AR_aarch64_unknown_linux_gnu", self.program("ar"));
        command.env("CARGO_TARGET_DIR", workspace::target().join("aarch64"));
        for variable in ["CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", "HOST_CC"] {
            command.env(variable, "/usr/bin/cc");
        }
        // Nothing here is looked at in a debugger, and no second build follows soon.
        command.env("CARGO_PROFILE_DEV_DEBUG", "false").env("CARGO_INCREMENTAL", "0");
    }
}

fn make(folder: &Path) -> Result<()> {
    for made in ["bin", "layer/aarch64-linux-gnu", "root"] {
        fs::create_dir_all(folder.join(made))?;
    }
    let debian = Debian::read(folder)?;
    debian.unpack(&DEBIAN, &folder.join("root"))?;
    debian.unpack(&[&format!("qemu-user/{BACKPORTS}")], &folder.join("root"))?;
    debian.forget()?;
    if !folder.join("root/usr/lib/rustlib").join(TRIPLE).is_dir() {
        bail!("Debian's package libstd-rust-web-dev:arm64 holds no library for {TRIPLE}");
    }
    runtime(folder)?;
    write_programs(folder)?;
    let linker = "aarch64-linux-gnu/ld-linux-aarch64.so.1";
    std::os::unix::fs::symlink(linker, folder.join("layer/ld-linux-aarch64.so.1"))?;
    Ok(())
}

fn runtime(folder: &Path) -> Result<()> {
    let (wheels, to) = (folder.join("wheels"), folder.join("cuda"));
    let platforms = ["--platform", "manylinux2014_aarch64", "--platform", "manylinux_2_17_aarch64"];
    let mut args = vec!["--no-deps", "--only-binary=:all:", RUNTIME, "-d"];
    let at = wheels.display().to_string();
    args.push(&at);
    args.extend(platforms);
    environment::pip_download(&args)?;
    for entry in fs::read_dir(&wheels)? {
        command::run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(entry?.path()).arg(&wheels))?;
    }
    fs::create_dir_all(&to)?;
    fs::rename(wheels.join("nvidia/cu13/lib"), to.join("lib"))?;
    std::os::unix::fs::symlink("libcudart.so.13", to.join("lib/libcudart.so"))?;
    fs::remove_dir_all(wheels)?;
    Ok(())
}

fn write_programs(folder: &Path) -> Result<()> {
    let write = |name: &str, line: &str| {
        let file = folder.join("bin").join(name);
        let libraries = "LD_LIBRARY_PATH=\"$root/usr/lib/x86_64-linux-gnu\"";
        fs::write(&file, format!("#!/bin/sh\nroot=$(dirname \"$0\")/../root\n{libraries} exec {line} \"$@\"\n"))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).map_err(anyhow::Error::from)
    };
    write("rustc", "\"$root/usr/bin/rustc\"")?;
    for (name, debian) in PROGRAMS {
        let program = format!("\"$root/usr/bin/aarch64-linux-gnu-{debian}\"");
        let is_compiler = debian.ends_with("-12");
        let options = " --sysroot=\"$root\" -B\"$root/usr/bin/aarch64-linux-gnu-\"";
        write(name, &format!("{program}{}", if is_compiler { options } else { "" }))?;
    }
    Ok(())
}
