//! Which workloads this machine can run, and how.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

use super::{Clock, PrecisionArgs};
use crate::workspace;

/// A program and how it is started.
pub struct Workload {
    /// Its name in the report.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<String>,
}

/// CUDA's compiler, with the options to link with its libraries.
struct Nvcc {
    program: PathBuf,
    flags: Vec<String>,
}

/// The workloads, compiled where they must be.
pub fn list(args: &PrecisionArgs, clock: &Clock, work: &Path) -> Result<Vec<Workload>> {
    let wanted = |name: &str| args.only.is_empty() || args.only.iter().any(|word| name.contains(word.as_str()));
    let nvcc = find_nvcc();
    let mut found = Vec::new();
    if args.sim {
        let nvcc = nvcc?;
        for source in workspace::files_in("tests/corpus/cuda", "cu")? {
            let name = workspace::stem(&source);
            if wanted(&name) && nvcc.compile(&["-arch=sm_80", "-cudart", "shared"], &source, &work.join(&name), &[])? {
                found.push(Workload { command: vec![work.join(&name).display().to_string()], name });
            }
        }
        return Ok(found);
    }
    for source in workspace::files_in("tests/programs/precision", "py")? {
        let name = workspace::stem(&source);
        if !wanted(&name) {
            continue;
        }
        let modules = ["torch", "jax", "triton"].into_iter().filter(|module| name.contains(module));
        match modules.into_iter().find(|module| !has_module(module)) {
            Some(missing) => clock.say(&format!("{name}: left out, no {missing} here")),
            None => found.push(Workload { name, command: vec!["python3".to_owned(), source.display().to_string()] }),
        }
    }
    if let (Ok(nvcc), true) = (nvcc, wanted("cublas")) {
        let (source, to) = (workspace::root().join("tests/programs/precision/cublas.cu"), work.join("cublas"));
        if nvcc.compile(&["-arch=native"], &source, &to, &["-lcublas"])? {
            found.push(Workload { name: "cublas".to_owned(), command: vec![to.display().to_string()] });
        } else {
            clock.say("cublas: left out, does not compile");
        }
    }
    Ok(found)
}

fn has_module(name: &str) -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)", name]);
    python.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// `NVCC`, the path, the usual place, or what `scripts/toolkit` installs.
fn find_nvcc() -> Result<Nvcc> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let given = std::env::var_os("NVCC").map(PathBuf::from);
    let places = given.into_iter().chain(std::env::split_paths(&path).map(|folder| folder.join("nvcc")));
    let mut places = places.chain([PathBuf::from("/usr/local/cuda/bin/nvcc")]);
    if let Some(program) = places.find(|program| program.exists()) {
        return Ok(Nvcc { program, flags: Vec::new() });
    }
    let root = workspace::toolkit()?;
    let stub = workspace::root().join(".toolkit/lib");
    let flags = vec![format!("-L{}", root.join("lib").display()), format!("-L{}", stub.display())];
    Ok(Nvcc { program: root.join("bin/nvcc"), flags })
}

impl Nvcc {
    fn compile(&self, args: &[&str], source: &Path, to: &Path, libraries: &[&str]) -> Result<bool> {
        let mut command = Command::new(&self.program);
        command.arg("-O2").args(args).args(&self.flags).arg(source).arg("-o").arg(to).args(libraries);
        Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success())
    }
}
