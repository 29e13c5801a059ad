//! `cargo xtask compare-reports`: what two builds print of the same runs, byte for byte.
//!
//! Owns the cases and their comparison; what differs from run to run is levelled in [`normalise`].
//! A change that is to keep every report (a move, a rename, a new parser) is shown by an empty
//! difference.
//!
//! Traces are compared exactly: they are recorded once, by the build before, and checked by both.
//! Live runs are compared with addresses and ids levelled.

mod cases;
mod normalise;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::{command, workspace};
use cases::Program;

/// Compares what two builds report of the corpus, the samples and all recorded traces.
#[derive(clap::Args)]
pub struct CompareReportsArgs {
    /// Folder of the binaries before the change.
    #[arg(long, value_name = "FOLDER")]
    before: PathBuf,
    /// Folder of the binaries after it.
    #[arg(long, value_name = "FOLDER")]
    after: PathBuf,
    /// Only programs and traces whose names contain this.
    #[arg(long, value_name = "WORD", default_value = "")]
    only: String,
    /// Compare checks of traces only, no live runs.
    #[arg(long)]
    traces_only: bool,
    /// Compare what commands print besides reports, too: their words may change on purpose.
    #[arg(long)]
    commands: bool,
}

/// Options that change what a report holds or how it is worded.
const OPTIONS: [&[&str]; 6] = [
    &[],
    &["--pedantic", "--hints"],
    &["--policy", "documented", "--latent"],
    &["--format", "csan"],
    &["--format", "github"],
    &["--max-findings", "2"],
];

/// The options that write a file, with the file's name.
const FILES: [(&str, &str); 6] = [
    ("--json", "report.json"),
    ("--sarif", "report.sarif"),
    ("--junit", "report.xml"),
    ("--html", "report.html"),
    ("--parquet", "report.parquet"),
    ("--write-baseline", "baseline.json"),
];

/// Commands that read a trace and print; those behind the first in words of their own.
const READERS: [&str; 4] = ["dump", "memory", "explain", "coverage"];

/// Programs whose host threads poll and race for the numbers of streams: two live runs of one build
/// differ.
const UNREPEATABLE: [&str; 2] = ["samples-host_threads_streams", "samples-host_threads_streams-racy"];

const LIMIT: Duration = Duration::from_secs(120);

/// Texts by name: what one build printed and wrote in one case.
type Printed = Vec<(String, Vec<u8>)>;

/// Compares; fails when anything differs.
pub fn run(args: &CompareReportsArgs) -> Result<ExitCode> {
    let canonical = |folder: &Path| std::fs::canonicalize(folder).with_context(|| folder.display().to_string());
    let (before, after) = (canonical(&args.before)?, canonical(&args.after)?);
    let work = workspace::target().join("compare-reports");
    if work.exists() {
        std::fs::remove_dir_all(&work)?;
    }
    std::fs::create_dir_all(work.join("traces"))?;
    let programs: Vec<Program> = cases::programs()?.into_iter().filter(|p| p.name.contains(&args.only)).collect();
    let compiled = cases::compile(&programs, &before)?;
    let traces = cases::traces(&compiled, &before, &work.join("traces"), &args.only)?;
    println!("{} programs, {} traces", compiled.len(), traces.len());

    // A trace names the libraries of the build that recorded it, whichever build checks it.
    let bins = [&*before, &*after];
    let tally = Tally::default();
    each(&traces, |trace| {
        for (number, options) in OPTIONS.iter().enumerate() {
            let case = format!("check {} {}", workspace::stem(trace), options.join(" "));
            let one = |bin: &Path, tag: &str| {
                let folder = work.join(tag).join(format!("{}.{number}", workspace::stem(trace)));
                checked(bin, trace, options, &folder, &bins)
            };
            tally.compare(&case, &one(&before, "before")?, &one(&after, "after")?);
        }
        for reader in READERS.iter().take(if args.commands { READERS.len() } else { 1 }) {
            let case = format!("{reader} {}", workspace::stem(trace));
            let one = |bin: &Path| printed(streamsan(bin).arg(reader).arg(trace));
            tally.compare(&case, &one(&before)?, &one(&after)?);
        }
        Ok(())
    })?;
    if !args.traces_only {
        each(&compiled, |program| {
            if UNREPEATABLE.contains(&&*program.name) {
                println!("not compared live: {}", program.name);
                return Ok(());
            }
            for format in ["text", "csan"] {
                let case = format!("run {} --format {format}", program.name);
                let one = |bin: &Path, tag: &str| {
                    let folder = work.join(format!("live-{tag}")).join(format!("{}.{format}", program.name));
                    live(bin, program, format, &folder, &bins)
                };
                tally.compare(&case, &one(&before, "before")?, &one(&after, "after")?);
            }
            Ok(())
        })?;
    }
    tally.finish()
}

/// Runs something for each item, on as many threads as there are cores.
fn each<T: Sync>(items: &[T], run: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let work = || {
            while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                run(item)?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a worker does not panic"))
    })
}

fn streamsan(bin: &Path) -> Command {
    let mut command = command::clean(&bin.join("streamsan"));
    // What an earlier run has kept must not decide what is printed.
    command.current_dir(workspace::root()).env("STREAMSAN_CACHE", "off");
    command
}

/// What a command prints, and how it ends.
fn printed(command: &mut Command) -> Result<Printed> {
    let Some(made) = command::limited(command, LIMIT)? else { bail!("took longer than {LIMIT:?}: {command:?}") };
    let status = made.status.to_string().into_bytes();
    Ok(vec![("stdout".into(), made.stdout), ("stderr".into(), made.stderr), ("status".into(), status)])
}

fn with_files(command: &mut Command, folder: &Path, skip: &str) -> Result<Printed> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    let files = || FILES.iter().filter(|(option, _)| *option != skip);
    for (option, name) in files() {
        command.arg(option).arg(folder.join(name));
    }
    Ok(files().map(|(_, name)| ((*name).to_owned(), Vec::new())).collect())
}

fn read_files(folder: &Path, mut files: Printed) -> Printed {
    for (name, bytes) in &mut files {
        *bytes = std::fs::read(folder.join(name)).unwrap_or_else(|error| error.to_string().into_bytes());
    }
    files
}

/// One check of a trace, with every file that can be written.
fn checked(bin: &Path, trace: &Path, options: &[&str], folder: &Path, bins: &[&Path]) -> Result<Printed> {
    let mut command = streamsan(bin);
    command.arg("check").args(options);
    let files = with_files(&mut command, folder, "")?;
    let mut all = printed(command.arg(trace))?;
    all.extend(read_files(folder, files));
    for (name, bytes) in &mut all {
        if !name.ends_with(".parquet") {
            *bytes = normalise::fixed(bytes, folder, bins);
        }
        if name.ends_with(".xml") {
            *bytes = normalise::xml(bytes)?;
        }
    }
    Ok(all)
}

/// One live run on the simulated GPU.
fn live(bin: &Path, program: &Program, format: &str, folder: &Path, bins: &[&Path]) -> Result<Printed> {
    let mut command = streamsan(bin);
    command.args(["run", "--sim", "--sim-seed", "1", "--hints", "--format", format]);
    // A Parquet file can not be levelled.
    let files = with_files(&mut command, folder, "--parquet")?;
    let mut all = printed(command.arg("--").arg(&program.binary).args(&program.args))?;
    all.extend(read_files(folder, files));
    for (name, bytes) in &mut all {
        *bytes = normalise::run(&normalise::fixed(bytes, folder, bins));
        if name.ends_with(".xml") {
            *bytes = normalise::xml(bytes)?;
        }
    }
    Ok(all)
}

/// How many comparisons there were, and which differed.
#[derive(Default)]
struct Tally {
    compared: AtomicUsize,
    different: Mutex<Vec<String>>,
}

impl Tally {
    fn compare(&self, case: &str, before: &Printed, after: &Printed) {
        for ((name, old), (_, new)) in before.iter().zip(after) {
            self.compared.fetch_add(1, Ordering::Relaxed);
            if old != new {
                let line = format!("{case}: {name}{}", first_difference(old, new));
                self.different.lock().expect("no comparison panics").push(line);
            }
        }
    }

    fn finish(self) -> Result<ExitCode> {
        let mut different = self.different.into_inner().expect("no comparison panics");
        different.sort();
        different.iter().for_each(|line| println!("{line}"));
        println!("{} comparisons, {} differ", self.compared.load(Ordering::Relaxed), different.len());
        Ok(if different.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn first_difference(old: &[u8], new: &[u8]) -> String {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let (mut a, mut b) = (old.lines(), new.lines());
    let mut number = 1;
    loop {
        match (a.next(), b.next()) {
            (Some(x), Some(y)) if x == y => number += 1,
            (None, None) => return String::new(),
            (x, y) => {
                let shown = |line: Option<&str>| line.unwrap_or("(end)").chars().take(160).collect::<String>();
                return format!(", line {number}\n  before: {}\n  after:  {}", shown(x), shown(y));
            }
        }
    }
}
