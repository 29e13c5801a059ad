//! `cargo xtask ptx-census`: what the PTX front end makes of what compilers emit.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};

use super::numba;
use crate::{command, environment, workspace};

/// Count what the PTX front end makes of what compilers emit: Triton, NVRTC, CuPy, Numba, nvcc.
///
/// NVRTC compiles the corpus and the tests' kernels, nvcc CUB, Thrust, barriers and cooperative
/// groups. Then the same kernels as machine code (Triton's own, else ptxas): both front ends must
/// say the same of each. Installs 1.2 GB from PyPI into `.cache/ptx-census`, takes about eight
/// minutes.
#[derive(clap::Args)]
pub struct PtxCensusArgs {
    /// Show every kernel with a pointer whose extent is not known.
    #[arg(short, long)]
    verbose: bool,
    /// Where the modules are written.
    #[arg(short, long, default_value = ".cache/ptx-census/out")]
    output: PathBuf,
    /// Compilers.
    #[arg(value_enum, default_values_t = [Source::Triton, Source::Nvrtc, Source::Cupy, Source::Numba, Source::Cccl])]
    sources: Vec<Source>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Source {
    Triton,
    Nvrtc,
    Cupy,
    Numba,
    Cccl,
}

/// Where the compilers are.
struct Compilers {
    cuda: PathBuf,
    /// Python with Triton and CuPy, without NumPy and NVRTC.
    python: PathBuf,
    numba: PathBuf,
}

/// Compiles, then surveys.
pub fn run(args: &PtxCensusArgs) -> Result<ExitCode> {
    let numba = numba::folder()?;
    let census = environment::folder("ptx-census", "3.9.0-14.2.0", |folder| {
        environment::python(folder, &["--no-deps", "triton==3.9.0", "cupy-cuda13x==14.2.0"])
    })?;
    let compilers = Compilers { cuda: workspace::toolkit()?, python: census.join("bin/python"), numba };
    command::run(&mut command::cargo(["build", "-q", "--release", "-p", "kernels", "--example", "ptx_survey"]))?;
    let survey = workspace::target().join("release/examples/ptx_survey");
    let output = workspace::root().join(&args.output);
    std::fs::create_dir_all(&output)?;
    let mut folders = Vec::new();
    for source in &args.sources {
        folders.push(compilers.modules(*source, &output)?);
    }
    let mut first = Command::new(&survey);
    command::run(first.args(args.verbose.then_some("-v")).args(&folders))?;
    println!();
    // Kernels on which the front ends differ are listed; that is no failure of the count.
    Command::new(&survey).arg("--compare").args(&folders).status().context("ptx_survey")?;
    Ok(ExitCode::SUCCESS)
}

impl Compilers {
    /// Makes the modules of one source; returns their folder.
    fn modules(&self, source: Source, output: &Path) -> Result<PathBuf> {
        let name = match source {
            Source::Triton => "triton",
            Source::Nvrtc => "nvrtc",
            Source::Cupy => "cupy",
            Source::Numba => "numba",
            Source::Cccl => "cccl",
        };
        let folder = output.join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        let cccl = self.cuda.join("include/cccl");
        let include = |path: &Path| format!("-I{}", path.display());
        let script = |name: &str| format!("tests/programs/ptx/{name}_modules.py");
        let beside = environment::site_packages(&self.numba)?;
        let mut command = match source {
            Source::Triton => {
                let mut command = command::python(&self.python, ["-W", "ignore", &script(name)]);
                command.arg(&folder).env("TRITON_CACHE_DIR", output.join(".triton"));
                command
            }
            Source::Nvrtc => {
                let mut command = command::python(&self.python, [script(name).as_str()]);
                command.arg(include(&self.cuda.join("include"))).arg(include(&cccl)).arg(&folder).arg("80,100");
                for sources in ["tests/corpus/cuda", "kernels/tests/cuda", "device-code/tests/sass"] {
                    command.args(workspace::files_in(sources, "cu")?);
                }
                command.env("PYTHONPATH", &beside);
                command
            }
            Source::Cupy => {
                let mut command = command::python(&self.python, [script(name).as_str()]);
                command.arg(&folder).arg("80").arg(self.cuda.join("include")).env("PYTHONPATH", &beside);
                command
            }
            Source::Numba => {
                let mut command = command::python(&self.numba.join("bin/python3"), [script(name).as_str()]);
                command.arg(&folder).env("LD_LIBRARY_PATH", self.cuda.join("lib"));
                command
            }
            Source::Cccl => {
                let mut command = Command::new(self.cuda.join("bin/nvcc"));
                command.args(["-ptx", "-std=c++17", "-lineinfo", "-w", "--extended-lambda", "-arch=compute_90"]);
                command.current_dir(workspace::root()).arg(include(&cccl)).arg("tests/programs/ptx/cccl.cu");
                command.arg("-o").arg(folder.join("cccl-90.ptx"));
                command
            }
        };
        // What a compiler does not take is named in its log.
        command.stderr(File::create(output.join(format!("{name}.log")))?);
        command::run(&mut command)?;
        self.assemble(&folder, &output.join("ptxas.log"))?;
        Ok(folder)
    }

    /// Makes machine code of what has none yet. What PTX without a feature suffix cannot hold on
    /// newer devices is left out.
    fn assemble(&self, folder: &Path, log: &Path) -> Result<()> {
        let mut files = Vec::new();
        find_ptx(folder, &mut files)?;
        if files.is_empty() {
            bail!("{}: no module was compiled", folder.display());
        }
        files.retain(|file| !file.with_extension("cubin").exists());
        let log = File::options().create(true).append(true).open(log)?;
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let stem = workspace::stem(file);
                        let sm = stem.rsplit('-').next().unwrap_or_default();
                        let mut ptxas = Command::new(self.cuda.join("bin/ptxas"));
                        ptxas.arg(format!("-arch=sm_{sm}")).arg("-O3").arg("-o").arg(file.with_extension("cubin"));
                        if let Ok(log) = log.try_clone() {
                            ptxas.stderr(log);
                        }
                        if let Err(error) = ptxas.arg(file).status() {
                            eprintln!("xtask: ptxas: {error}");
                        }
                    }
                });
            }
        });
        Ok(())
    }
}

fn find_ptx(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            find_ptx(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            found.push(path);
        }
    }
    Ok(())
}
