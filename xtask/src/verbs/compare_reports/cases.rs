//! What is compared: the CUDA programs of the corpus and the samples, their traces, and the traces
//! that the repository holds.
//!
//! Owns their compilation and their recording. Programs that do not compile for `sm_80` are left
//! out by name.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

use super::{LIMIT, each, streamsan};
use crate::{command, workspace};

/// A program, or its racy twin.
pub struct Program {
    /// Unique.
    pub name: String,
    /// The source.
    source: PathBuf,
    /// Once compiled.
    pub binary: PathBuf,
    /// What it is run with.
    pub args: Vec<String>,
}

/// Every CUDA program of the corpus and the samples.
pub fn programs() -> Result<Vec<Program>> {
    let mut all = Vec::new();
    for (folder, group) in [("tests/corpus/cuda", "corpus"), ("tests/samples", "samples")] {
        for source in workspace::files_in(folder, "cu")? {
            let text = std::fs::read_to_string(&source)?;
            let racy = text.lines().take(12).any(|line| line.trim_start_matches('/').trim().starts_with("racy:"));
            for args in [vec![], vec!["racy".to_owned()]].into_iter().take(1 + usize::from(racy)) {
                let twin = if args.is_empty() { "" } else { "-racy" };
                let name = format!("{group}-{}{twin}", workspace::stem(&source));
                all.push(Program { name, source: source.clone(), binary: PathBuf::new(), args });
            }
        }
    }
    Ok(all)
}

/// Compiles the programs, each once; `simulator` has the library to link `-lcuda` with.
pub fn compile(programs: &[Program], bin: &Path) -> Result<Vec<Program>> {
    let toolkit = workspace::toolkit()?;
    let folder = workspace::target().join("compare-programs");
    std::fs::create_dir_all(&folder)?;
    let driver = folder.join("libcuda.so");
    if std::fs::symlink_metadata(&driver).is_ok() {
        std::fs::remove_file(&driver)?;
    }
    std::os::unix::fs::symlink(bin.join("sim/libcuda.so.1"), &driver)?;
    let done = Mutex::new(Vec::new());
    each(programs, |program| {
        let binary = folder.join(&program.name);
        if !binary.exists() {
            let partial = folder.join(format!("{}.{}", program.name, std::process::id()));
            let mut nvcc = Command::new(toolkit.join("bin/nvcc"));
            nvcc.args(["-O2", "-g", "-arch=sm_80", "-cudart", "shared", "-o"]).arg(&partial).arg(&program.source);
            for path in [&toolkit.join("lib"), &workspace::root().join(".toolkit/lib"), &folder] {
                nvcc.arg(format!("-L{}", path.display()));
            }
            nvcc.args(["-lcuda", "-Xlinker", "--allow-shlib-undefined"]);
            let made = nvcc.output().context("nvcc")?;
            if !made.status.success() {
                println!("left out, does not compile for sm_80: {}", program.name);
                return Ok(());
            }
            std::fs::rename(partial, &binary)?;
        }
        let (name, source, args) = (program.name.clone(), program.source.clone(), program.args.clone());
        done.lock().expect("no compilation panics").push(Program { name, source, binary, args });
        Ok(())
    })?;
    let mut done = done.into_inner().expect("no compilation panics");
    done.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(done)
}

/// Traces of the programs, recorded by one build, and copies of those that the repository holds.
pub fn traces(programs: &[Program], bin: &Path, folder: &Path, only: &str) -> Result<Vec<PathBuf>> {
    each(programs, |program| {
        let trace = folder.join(format!("{}.trace", program.name));
        let mut record = streamsan(bin);
        record.args(["record", "--sim", "--sim-seed", "1", "-o"]).arg(&trace);
        let ended = command::limited(record.arg("--").arg(&program.binary).args(&program.args), LIMIT)?;
        let fine = ended.as_ref().is_some_and(|made| made.status.success());
        if !fine || !trace.exists() {
            bail!("{} could not be recorded: {ended:?}", program.name);
        }
        Ok(())
    })?;
    for recorded in workspace::files_in("tests/recorded", "trace")? {
        if workspace::stem(&recorded).contains(only) {
            std::fs::copy(&recorded, folder.join(recorded.file_name().context("a name")?))?;
        }
    }
    let mut all = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    all.sort();
    Ok(all)
}
