//! One program: how it is compiled, run under the check, and what its report shows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ::tests::{build, run};
use anyhow::{Context, Error, Result, anyhow};
use serde_json::Value;

use super::table::Shown;

/// What a run has shown, by kernel.
pub struct Trial {
    /// Whether the program ended well, with the worst that it has shown.
    pub shown: Shown,
    /// The worst of each kernel with a finding.
    pub kernels: BTreeMap<String, Shown>,
    /// Lines `FILE:LINE - FILE:LINE (GRADE)` of the findings.
    pub lines: Vec<String>,
    /// How long it took.
    pub took: Duration,
    /// The end of what was said, to be shown if the verdict is wrong.
    pub said: String,
}

impl Trial {
    /// What a program has shown that does not compile.
    pub fn without_program(said: String) -> Self {
        Self { shown: Shown::NoProgram, kernels: BTreeMap::new(), lines: Vec::new(), took: Duration::ZERO, said }
    }
}

/// What a program is compiled for.
#[derive(Clone, Copy)]
pub enum Code {
    /// The simulated GPU here: PTX and machine code for 8.0.
    Simulated,
    /// A machine with a GPU, too: the same PTX, machine code for 9.0, and CUDA's runtime within.
    Carried,
}

impl Code {
    fn options(self) -> [&'static str; 4] {
        match self {
            Self::Simulated => ["-gencode", "arch=compute_80,code=[sm_80,compute_80]", "-cudart", "shared"],
            Self::Carried => ["-gencode", "arch=compute_80,code=[sm_90,compute_80]", "-cudart", "static"],
        }
    }
}

/// A compiled program, and what it is to be run with.
pub struct Made {
    /// The file; it lies in a folder of its own.
    pub file: PathBuf,
    /// The command line.
    pub arguments: Vec<String>,
}

/// Compiles with CUDA's compiler, once for each content. The error is what it says.
pub fn compile(name: &str, code: Code, options: &[&str], sources: &[&Path]) -> Result<PathBuf> {
    compile_including(name, code, options, sources, &[])
}

/// As [`compile`], of sources that include other files which may change.
pub fn compile_including(
    name: &str,
    code: Code,
    options: &[&str],
    sources: &[&Path],
    included: &[&Path],
) -> Result<PathBuf> {
    let toolkit = build::toolkit().map_err(Error::msg)?;
    let mut args: Vec<String> = vec!["-w".to_owned()];
    args.extend(code.options().iter().chain(options).map(|option| (*option).to_owned()));
    for folder in [toolkit.join("lib"), crate::workspace::root().join(".toolkit/lib")] {
        args.push(format!("-L{}", folder.display()));
    }
    args.extend(["-o".to_owned(), "{out}".to_owned()]);
    args.extend(sources.iter().map(|source| source.display().to_string()));
    let inputs: Vec<&Path> = sources.iter().chain(included).copied().collect();
    build::cached(name, &toolkit.join("bin/nvcc"), &args, &inputs).map_err(|said| anyhow!(said))
}

/// Runs a program under the check, and reads the report. `limit` is the time that it may take.
pub fn try_out(program: &Made, limit: Duration) -> Result<Trial> {
    let folder = program.file.parent().context("a program lies in a folder")?;
    let report = folder.join(format!("report.{}.json", std::process::id()));
    let began = Instant::now();
    // What is below `likely` is shown as well, and tells `possible` from silent.
    let mut command = run::streamsan(["--sim", "--inside", "--pedantic", "--json"]);
    command.arg(&report).arg("--").arg(&program.file).args(&program.arguments).current_dir(folder);
    let ended = run::end_within(&mut command, limit);
    let took = began.elapsed();
    let text = std::fs::read(&report).ok();
    let _ = std::fs::remove_file(&report);
    let said = [ended.out.as_str(), ended.err.as_str()].concat();
    if ended.hung {
        return Ok(Trial { shown: Shown::Endless, kernels: BTreeMap::new(), lines: Vec::new(), took, said });
    }
    let text = text.with_context(|| format!("no report of {}: {said}", program.file.display()))?;
    let report: Value = serde_json::from_slice(&text)?;
    let (kernels, lines) = findings(&report);
    let failed = ended.out.lines().any(|line| line.starts_with("FAILED"));
    let code = ended.status.code();
    let has_faults = report["faults"].as_array().is_some_and(|faults| !faults.is_empty());
    let shown = match kernels.values().find(|shown| **shown == Shown::Race).or_else(|| kernels.values().next()) {
        Some(shown) => *shown,
        None if failed || has_faults || !matches!(code, Some(0 | 66)) => Shown::Fault,
        None => Shown::Silent,
    };
    Ok(Trial { shown, kernels, lines, took, said })
}

/// The races inside kernels of a report: the worst of each kernel, and the lines of all.
fn findings(report: &Value) -> (BTreeMap<String, Shown>, Vec<String>) {
    let mut kernels = BTreeMap::new();
    let mut lines = Vec::new();
    for finding in report["findings"].as_array().into_iter().flatten() {
        let Some(grade) = finding["in_kernel"]["grade"].as_str() else { continue };
        let kernel = finding["access"]["kernel"].as_str().unwrap_or_default();
        let shown = if matches!(grade, "certain" | "likely") { Shown::Race } else { Shown::Possible };
        let worst = kernels.entry(kernel.to_owned()).or_insert(shown);
        if shown == Shown::Race {
            *worst = shown;
        }
        let [access, previous] = ["access", "previous"].map(|side| place(&finding[side]["stack"][0]));
        lines.push(format!("{previous} - {access} ({grade})"));
    }
    (kernels, lines)
}

fn place(frame: &Value) -> String {
    let file = frame["file"].as_str().and_then(|file| file.rsplit('/').next()).unwrap_or("?");
    format!("{file}:{}", frame["line"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_grade_of_a_kernel_counts_and_races_between_streams_do_not() {
        let side = |line: u64| serde_json::json!({"kernel": "k", "stack": [{"file": "/a/k.cu", "line": line}]});
        let finding =
            |grade: &str| serde_json::json!({"in_kernel": {"grade": grade}, "access": side(5), "previous": side(4)});
        let report = serde_json::json!({"findings": [finding("possible"), finding("likely"), finding("benign")]});
        let (kernels, lines) = findings(&report);
        assert!(kernels["k"] == Shown::Race);
        assert_eq!(lines[1], "k.cu:4 - k.cu:5 (likely)");
        let (kernels, _) = findings(&serde_json::json!({"findings": [finding("benign")]}));
        assert!(kernels["k"] == Shown::Possible);
        let between = serde_json::json!({"findings": [{"in_kernel": null, "access": side(5), "previous": side(4)}]});
        assert!(findings(&between).0.is_empty());
    }
}
