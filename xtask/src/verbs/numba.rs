//! `cargo xtask numba`: Numba without a GPU.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::{environment, workspace};

const VERSION: &str = "0.30.4-1";

/// Not nvidia-nvjitlink, with which Numba hands machine code without PTX to the driver: programs
/// that are to link so find it beside this (`tests::frameworks`).
const PACKAGES: [&str; 10] = [
    "--no-deps",
    "numba==0.68.1",
    "llvmlite==0.50.0",
    "numpy==2.4.6",
    "numba-cuda==0.30.4",
    "cuda-bindings==13.5.0",
    "cuda-core==1.2.2",
    "cuda-pathfinder==1.9.0",
    "packaging",
    "nvidia-cuda-nvrtc==13.0.88",
];

/// Install Numba with its CUDA target, and print its Python.
#[derive(clap::Args)]
pub struct NumbaArgs {}

/// Installs and prints.
pub fn run(_: &NumbaArgs) -> Result<ExitCode> {
    println!("{}", folder()?.join("bin/python3").display());
    Ok(ExitCode::SUCCESS)
}

/// The environment's folder.
pub fn folder() -> Result<PathBuf> {
    // The compiler's back end and its bit code are those of the toolkit.
    let cuda = workspace::toolkit()?;
    environment::folder("numba", VERSION, |folder| {
        environment::python(folder, &PACKAGES)?;
        let packages = environment::site_packages(folder)?;
        let root = packages.join("nvidia/cu13");
        symlink(cuda.join("lib/libnvvm.so.4"), root.join("lib/libnvvm.so.4"))?;
        std::fs::create_dir_all(root.join("nvvm"))?;
        symlink(cuda.join("nvvm/libdevice"), root.join("nvvm/libdevice"))?;
        // Numba asks the package's description where it lies.
        let theirs = cuda.parent().and_then(|folder| folder.parent()).context("the toolkit's packages")?;
        for entry in std::fs::read_dir(theirs)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("nvidia_nvvm-") && name.ends_with(".dist-info") {
                symlink(&path, packages.join(name))?;
            }
        }
        for entry in std::fs::read_dir(root.join("lib"))? {
            let path = entry?.path();
            if path.to_string_lossy().contains(".alt.so.") {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    })
}
