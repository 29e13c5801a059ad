//! `cargo xtask torch-sim`: PyTorch's allocators and torchrun without a GPU.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::columns::Table;
use crate::{command, environment, workspace};

const VERSION: &str = "2.11.0-1";
/// `expecttest` is what PyTorch's table of operators needs beside PyTorch.
const PACKAGES: [&str; 3] = ["torch==2.11.0", "numpy", "expecttest"];
const PROGRAMS: &str = "tests/programs/torch_sim";

/// Run PyTorch programs that only allocate, copy and synchronise on the simulated GPU.
///
/// PyTorch is as PyPI has it, with NVIDIA's packages. Each program races, or waits: its verdict
/// must be the expected one, and each finding must name its two lines. Installs PyTorch into
/// `.cache/torch-full` (5 GB, minutes). Builds, unless `STREAMSAN_BIN` names a folder of binaries
/// with `sim` in it.
#[derive(clap::Args)]
pub struct TorchSimArgs {}

/// A program in one configuration.
struct Case {
    name: &'static str,
    start: Vec<PathBuf>,
    program: &'static str,
    /// `PYTORCH_ALLOC_CONF`.
    allocator: &'static str,
    /// Kind of hazard, and how the lines of the earlier and of the later access end.
    races: Vec<(&'static str, &'static str, &'static str)>,
    processes: usize,
}

/// A finding: kind of hazard, line of the earlier and of the later access.
type Found = BTreeSet<(String, usize, usize)>;

/// Runs every case, as it races and as it waits.
pub fn run(_: &TorchSimArgs) -> Result<ExitCode> {
    let binaries = workspace::binaries()?;
    let torch = environment()?;
    let work = workspace::target().join(format!("torch-sim-{}", std::process::id()));
    std::fs::create_dir_all(&work)?;
    let mut table = Table::new(&["allocator", "program", "verdict", "findings"]);
    let mut wrong = 0;
    for case in cases(&torch) {
        for waits in [false, true] {
            let (found, processes) = case.findings(&binaries, &torch, &work, waits)?;
            let expected = if waits { Found::new() } else { case.expected()? };
            let right = found == expected && processes == case.processes;
            wrong += usize::from(!right);
            let (kind, verdict) = (if waits { "waits" } else { "races" }, if right { "right" } else { "WRONG" });
            table.row([case.name.to_owned(), kind.to_owned(), verdict.to_owned(), format!("{found:?}")]);
        }
    }
    std::fs::remove_dir_all(&work)?;
    print!("{}", table.aligned());
    println!("{wrong} wrong");
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The folder of an environment with PyTorch and all that it asks for, as PyPI has them.
pub fn environment() -> Result<PathBuf> {
    environment::folder("torch-full", VERSION, |folder| environment::python(folder, &PACKAGES))
}

fn cases(torch: &Path) -> Vec<Case> {
    let torchrun = vec![torch.join("bin/torchrun"), "--nproc-per-node".into(), "2".into()];
    let mut cases = vec![Case {
        name: "torchrun, two ranks",
        start: torchrun,
        program: "ranks.py",
        allocator: "",
        races: vec![("read-after-write", "writes", "reads")],
        processes: 2,
    }];
    let early = ("read-after-write", "writes x", "reads x");
    let again = ("write-after-write", "writes short", "writes again");
    // There the free itself is an op of the stream.
    let freed = ("write-after-write", "writes short", "gives short back");
    for (name, allocator, late) in [
        ("PyTorch's allocator", "", again),
        ("expandable segments", "expandable_segments:True", again),
        ("stream-ordered allocator", "backend:cudaMallocAsync", freed),
    ] {
        let start = vec![torch.join("bin/python")];
        cases.push(Case { name, start, program: "blocks.py", allocator, races: vec![early, late], processes: 1 });
    }
    cases
}

impl Case {
    fn source(&self) -> PathBuf {
        workspace::root().join(PROGRAMS).join(self.program)
    }

    /// What a racy run must find.
    fn expected(&self) -> Result<Found> {
        let text = std::fs::read_to_string(self.source())?;
        let line = |end: &str| {
            let end = format!("# {end}");
            let at = text.lines().position(|line| line.ends_with(&end));
            at.map(|at| at + 1).with_context(|| format!("{} has no line '{end}'", self.program))
        };
        self.races
            .iter()
            .map(|(hazard, first, second)| Ok(((*hazard).to_owned(), line(first)?, line(second)?)))
            .collect()
    }

    /// What a run finds, and how many processes it names.
    fn findings(&self, binaries: &Path, torch: &Path, work: &Path, waits: bool) -> Result<(Found, usize)> {
        let report = work.join("report.json");
        let mut command = command::clean(&binaries.join("streamsan"));
        command.args(["run", "--sim", "--error-exitcode", "0", "--log-file", "/dev/null", "--json"]);
        command.arg(&report).arg("--").args(&self.start).arg(self.source()).args(waits.then_some("wait"));
        if !self.allocator.is_empty() {
            command.env("PYTORCH_ALLOC_CONF", self.allocator);
        }
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", torch.join("bin").display()));
        let ran = command::limited(&mut command, Duration::from_secs(600))?;
        let ran = ran.with_context(|| format!("{}: the program hangs", self.name))?;
        if !ran.status.success() {
            let said = [String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr)].concat();
            bail!("{}: the program ended with {}\n{said}", self.name, ran.status);
        }
        let report: Value = serde_json::from_str(&std::fs::read_to_string(&report)?)?;
        let findings = report["findings"].as_array().context("no findings")?;
        let found = findings.iter().map(|finding| {
            let hazard = finding["hazard"].as_str().unwrap_or_default().to_owned();
            Ok((hazard, line_of(&finding["previous"])?, line_of(&finding["access"])?))
        });
        Ok((found.collect::<Result<_>>()?, report["processes"].as_array().map_or(0, Vec::len)))
    }
}

/// The line of an access in the program.
fn line_of(side: &Value) -> Result<usize> {
    let frames = side["stack"].as_array().context("no stack")?;
    let frame = frames.iter().find(|frame| frame["file"].as_str().is_some_and(|file| file.contains("torch_sim")));
    let line = frame.and_then(|frame| frame["line"].as_u64()).context("no frame of the program")?;
    Ok(usize::try_from(line)?)
}
