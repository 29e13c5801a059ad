//! The Python programs of `tests/frameworks` on the simulated GPU: what each needs from PyPI, and
//! how it is started.
//!
//! Owns the list of examples that train or solve something, each with a twin that races. They are
//! run as tests (`cases/frameworks.rs`) and by `cargo xtask frameworks`. Packages are kept in
//! `.cache`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{build, field, product, run};

/// How long a program may take: an import of PyTorch is part of it, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// The exit code of a run with findings.
pub const FOUND: i32 = 66;

/// The argument of each twin, and the exit code that it must end with.
pub const TWINS: [(&str, i32); 2] = [("wait", 0), ("race", FOUND)];

/// What a program needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packages {
    /// PyTorch alone.
    Torch,
    /// PyTorch and NVRTC, which compiles some of its kernels.
    TorchCompiling,
    /// PyTorch and Triton.
    Triton,
    /// JAX for CUDA 13, without NVIDIA's libraries: the simulator has what XLA asks them for.
    Jax,
    /// CuPy, whose kernels NVRTC compiles.
    Cupy,
    /// Numba, whose kernels nvJitLink links.
    Numba,
}

/// The examples, without those that CI has no time for.
pub const EXAMPLES: [(&str, Packages); 9] = [
    ("train_two_layers", Packages::Torch),
    ("train_transformer", Packages::Torch),
    ("linear_algebra", Packages::TorchCompiling),
    ("triton_layer", Packages::Triton),
    ("jax_training", Packages::Jax),
    ("jax_convolution", Packages::Jax),
    ("cupy_jacobi", Packages::Cupy),
    ("numba_jacobi", Packages::Numba),
    ("numba_grid", Packages::Numba),
];

/// Those that only `cargo xtask frameworks` runs.
pub const BY_HAND: [(&str, Packages); 1] = [("train_resnet", Packages::Torch)];

const TRITON: &str = "triton==3.6.0";
const CUPY: &str = "cupy-cuda13x==14.2.0";
/// The second has CUDA's device runtime, with which kernels are linked that wait for their grid.
const NUMBA: [&str; 2] = ["nvidia-nvjitlink==13.0.88", "nvidia-cuda-runtime==13.0.96"];
const JAX: [&str; 7] = [
    "jax==0.10.2",
    "jaxlib==0.10.2",
    "jax-cuda13-plugin==0.10.2",
    "jax-cuda13-pjrt==0.10.2",
    "ml_dtypes==0.6.0",
    "opt_einsum==3.4.0",
    "scipy==1.17.1",
];

impl Packages {
    /// Fetches them, unless they are there, and answers the interpreter and where it finds them.
    fn installed(self) -> Result<(PathBuf, Vec<PathBuf>), String> {
        let beside: &[&str] = match self {
            Packages::Torch | Packages::TorchCompiling => &[],
            Packages::Triton => &[TRITON],
            Packages::Jax => &JAX,
            Packages::Cupy => &[CUPY],
            Packages::Numba => &NUMBA,
        };
        let python = match self {
            // JAX shares NumPy with it.
            Packages::Torch | Packages::TorchCompiling | Packages::Triton | Packages::Jax => field::torch()?.python(),
            // NVRTC is Numba's.
            Packages::Cupy | Packages::Numba => product::xtask("numba")?,
        };
        Ok((python, beside.iter().map(|package| field::package(package)).collect::<Result<_, _>>()?))
    }

    /// Fetches what is not there.
    pub fn fetch(self) -> Result<(), String> {
        self.installed().map(drop)
    }
}

/// A program of `tests/frameworks` under StreamSan.
pub fn command(name: &str, packages: Packages, arguments: &[&str], options: &[&str]) -> Result<Command, String> {
    let (python, beside) = packages.installed()?;
    let mut command = run::streamsan(["run", "--sim", "--require-cuda", "--error-exitcode"]);
    command.arg(FOUND.to_string()).args(options).arg("--").arg(python);
    command.arg(product::root().join(format!("tests/frameworks/{name}.py"))).args(arguments);
    build::keep_bytecode(command.env_remove("STREAMSAN_SIM").env_remove("LD_LIBRARY_PATH"));
    command.env("PYTHONPATH", joined(beside.iter().cloned())?);
    match packages {
        Packages::Torch => {}
        Packages::TorchCompiling => {
            command.env("LD_LIBRARY_PATH", nvrtc()?);
        }
        // Compiled again, and nothing is left in the developer's home.
        Packages::Triton => {
            command.env("TRITON_CACHE_DIR", build::scratch(&format!("triton-{}", arguments.join("-"))));
        }
        // XLA's compiler needs CUDA's assembler, and the functions of CUDA's device library.
        Packages::Jax => {
            let cuda = build::toolkit()?;
            let before = std::env::var_os("PATH").unwrap_or_default();
            command.env("PATH", joined(std::iter::once(cuda.join("bin")).chain(std::env::split_paths(&before)))?);
            command.env("XLA_FLAGS", format!("--xla_gpu_cuda_data_dir={}", cuda.display()));
        }
        // Its kernels include CUDA's headers.
        Packages::Cupy => {
            command.env("CUDA_PATH", build::toolkit()?);
            command.env("CUPY_CACHE_DIR", build::scratch(&format!("cupy-{}", arguments.join("-"))));
        }
        // Numba looks for libraries in its own environment, and where the loader does.
        Packages::Numba => {
            let libraries = beside.iter().map(|folder| Path::join(folder, "nvidia/cu13/lib"));
            command.env("LD_LIBRARY_PATH", joined(libraries)?);
        }
    }
    Ok(command)
}

/// The folder of NVRTC, which is Numba's.
fn nvrtc() -> Result<PathBuf, String> {
    let python = product::xtask("numba")?;
    let folder = python.ancestors().nth(2).ok_or("Numba's Python lies in no environment")?.join("lib");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let libraries = entries.flatten().map(|entry| entry.path().join("site-packages/nvidia/cu13/lib"));
    libraries.into_iter().find(|path| path.is_dir()).ok_or_else(|| format!("{}: no NVRTC", folder.display()))
}

fn joined(paths: impl Iterator<Item = PathBuf>) -> Result<OsString, String> {
    std::env::join_paths(paths).map_err(|error| error.to_string())
}

/// Runs a program to its end, which must have this exit code. The error says what is not as it
/// should be.
pub fn ends(command: &mut Command, name: &str, code: i32) -> Result<run::Ended, String> {
    let ended = run::end_within(command, PATIENCE);
    match (ended.hung, ended.status.code()) {
        (false, Some(got)) if got == code => Ok(ended),
        (hung, _) => {
            let how = if hung { "hangs".to_owned() } else { format!("ends with {} instead of {code}", ended.status) };
            Err(format!("{name} {how}\n{}\n{}", ended.out, ended.err))
        }
    }
}
