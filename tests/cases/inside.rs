//! The programs of `tests/gpu/programs/inside` with `--sim --inside`: each as PTX and as machine
//! code, racy and mended. The mended form is silent, and the racy one shows exactly the pairs of
//! lines that its comments name, each as `certain`.
//!
//! A line that ends in `// race: A, B` takes part in the pairs A and B; a letter that stands at one
//! line only is a pair of that line with itself. `A in PTX` and `A in machine code` are pairs of
//! that code alone: machine code does not say everything (`docs/guide/inside-kernels.md`).
//! `python3 tests/gpu racecheck` runs the same programs beside NVIDIA's racecheck.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use serde_json::Value;
use tests::{build, product, run};

use crate::{programs, trial};

/// The codes that a program holds, by their names in `STREAMSAN_SIM` and in marks.
const CODES: [(&str, &str); 2] = [("ptx", "PTX"), ("sass", "machine code")];

/// Two lines of the program, the lower one first.
type Pair = (u64, u64);

struct Twins {
    name: String,
    file: PathBuf,
    /// Compute capability, times ten.
    arch: u32,
    /// The pairs that the racy form shows, by the code.
    races: BTreeMap<&'static str, BTreeSet<Pair>>,
}

impl Twins {
    fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).expect("the program can be read");
        let races = CODES.into_iter().map(|(code, mark)| (code, marked(file, &text, mark))).collect();
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        // Clusters need 9.0.
        let arch = if text.contains("__cluster_dims__") { 90 } else { 80 };
        let twins = Self { name, file: file.to_path_buf(), arch, races };
        assert!(!twins.races["ptx"].is_empty(), "{}: no line has '// race: '", file.display());
        twins
    }

    fn compiled(&self, racy: bool) -> Result<PathBuf, String> {
        let arch = self.arch;
        let code = [format!("-arch=compute_{arch}"), format!("-code=compute_{arch},sm_{arch}")];
        let mut options = vec!["-w", "-lineinfo", &code[0], &code[1]];
        options.extend((!racy).then_some("-DMENDED"));
        build::cuda_program_with(&self.file, &[&self.file.with_file_name("twins.h")], "shared", &options)
    }

    /// The error says what is not as it should be.
    fn check(&self, racy: bool) -> Result<(), String> {
        let program = self.compiled(racy)?;
        for (code, _) in CODES {
            self.check_code(&program, code, racy).map_err(|why| format!("{code}: {why}"))?;
        }
        Ok(())
    }

    fn check_code(&self, program: &Path, code: &str, racy: bool) -> Result<(), String> {
        let json = build::scratch(&format!("inside-{}-{racy}-{code}", self.name)).join("report.json");
        let mut command = run::streamsan(["run", "--sim", "--inside", "--json"]);
        command.arg(&json).arg("--").arg(program).env_remove("LD_LIBRARY_PATH");
        let ended = run::end(command.env("STREAMSAN_SIM", format!("arch={}:code={code}", self.arch)));
        let wanted = if racy { self.races[code].clone() } else { BTreeSet::new() };
        let exit = if wanted.is_empty() { 0 } else { 66 };
        if ended.hung || ended.status.code() != Some(exit) {
            return Err(format!("ends with {}, not {exit}\n{}\n{}", ended.status, ended.out, ended.err));
        }
        let text = std::fs::read_to_string(&json).map_err(|e| format!("no JSON: {e}\n{}", ended.err))?;
        let report: Value = serde_json::from_str(&text).map_err(|e| format!("JSON: {e}"))?;
        if !ended.err.contains(" checked inside") {
            return Err(format!("no launch was checked inside\n{}", ended.err));
        }
        let mut found = BTreeSet::new();
        for finding in report["findings"].as_array().ok_or("no findings")? {
            if finding["in_kernel"]["grade"] != "certain" {
                return Err(format!("{}\n{}", finding["in_kernel"], ended.err));
            }
            let lines = [self.line(&finding["access"])?, self.line(&finding["previous"])?];
            found.insert((lines[0].min(lines[1]), lines[0].max(lines[1])));
        }
        if found == wanted { Ok(()) } else { Err(format!("lines {found:?}, not {wanted:?}\n{}", ended.err)) }
    }

    /// The line of the program that a side is of, that of an inlined function before its caller's.
    fn line(&self, side: &Value) -> Result<u64, String> {
        let of_program = |frame: &&Value| frame["file"].as_str().is_some_and(|file| Path::new(file) == self.file);
        let frame = side["stack"].as_array().ok_or("no stack")?.iter().find(of_program);
        frame.and_then(|frame| frame["line"].as_u64()).ok_or_else(|| format!("no line in {}", side["stack"]))
    }
}

/// The pairs of lines that the comments of a program name for a code.
fn marked(file: &Path, text: &str, code: &str) -> BTreeSet<Pair> {
    let mut lines: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        for mark in line.split_once("// race: ").map_or("", |(_, marks)| marks).split(", ").filter(|m| !m.is_empty()) {
            let (pair, only) = mark.split_once(" in ").map_or((mark, None), |(pair, only)| (pair, Some(only)));
            assert!(CODES.iter().any(|(_, name)| only.is_none_or(|only| only == *name)), "{}: {mark}", file.display());
            if only.is_none_or(|only| only == code) {
                lines.entry(pair).or_default().push(number);
            }
        }
    }
    let pair = |(pair, lines): (&str, Vec<u64>)| match lines[..] {
        [line] => (line, line),
        [first, second] => (first, second),
        _ => panic!("{}: {pair} is at {} lines", file.display(), lines.len()),
    };
    lines.into_iter().map(pair).collect()
}

/// A test of each form of each program.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for file in programs(&product::root().join("tests/gpu/programs/inside")) {
        for (racy, form) in [(true, "racy"), (false, "mended")] {
            let twins = Twins::read(&file);
            let name = format!("{}::{form}", twins.name);
            trials.push(trial("inside", &name, move || twins.check(racy)));
        }
    }
    assert!(trials.len() >= 94, "only {} programs are there", trials.len() / 2);
    trials
}
