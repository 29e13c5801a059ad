//! `cargo xtask precision`: how well the launches of real workloads are known.

mod report;
mod workloads;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{command, workspace};
pub use report::{CLASSES, class};
use workloads::Workload;

/// Count how well the launches of real workloads are known: exact bytes, upper bounds, directions
/// only, several candidates, unknown, indirect, by class of kernel.
///
/// Runs the workloads of tests/programs/precision (PyTorch training steps, a zoo of operators,
/// Triton, JAX, cuBLAS) under `streamsan record` and checks the traces on the same machine, which
/// needs a GPU; with `--sim` the CUDA corpus on the simulated GPU. Needs prebuilt binaries:
/// `STREAMSAN_BIN`, `.gpu` or `target/release`. A workload that cannot run is named and left out.
///
/// With `extract` (analyzer/examples/extract.rs) beside streamsan, the machine code of kernels
/// without ranges and their launches go to OUT/study-WORKLOAD.tar.xz, for
/// kernels/examples/dump.rs.
#[derive(clap::Args)]
pub struct PrecisionArgs {
    /// The CUDA corpus on the simulated GPU.
    #[arg(long)]
    sim: bool,
    /// Only workloads whose names contain one of these words.
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    only: Vec<String>,
    /// The longest time of one run.
    #[arg(long, value_name = "SECONDS", default_value_t = 150.0)]
    timeout: f64,
    /// Time after which no workload is started.
    #[arg(long, value_name = "SECONDS", default_value_t = 520.0)]
    budget: f64,
    /// Largest file for a study.
    #[arg(long, value_name = "MIB", default_value_t = 16)]
    limit: u64,
    /// How many kernels without ranges are listed.
    #[arg(long, value_name = "N", default_value_t = 30)]
    top: usize,
    /// Take the machine code of all kernels for a study.
    #[arg(long)]
    every: bool,
    /// Where the report goes (or `OUT`; else a new folder).
    #[arg(long, value_name = "FOLDER", env = "OUT")]
    out: Option<PathBuf>,
}

/// What a workload's report says of its kernels.
type Kernels = Vec<Value>;

/// Prints with the time since the start.
struct Clock(Instant);

impl Clock {
    fn say(&self, text: &str) {
        println!("[{:6.1}] {text}", self.0.elapsed().as_secs_f64());
    }
}

/// Records, checks, and reports.
pub fn run(args: &PrecisionArgs) -> Result<ExitCode> {
    let clock = Clock(Instant::now());
    let work = std::env::temp_dir().join(format!("streamsan-precision-{}", std::process::id()));
    let out = args.out.clone().unwrap_or_else(|| work.with_extension("out"));
    std::fs::create_dir_all(&out)?;
    std::fs::create_dir_all(&work)?;
    let found = measure(args, &clock, &work, &out);
    std::fs::remove_dir_all(&work)?;
    let found = found?;
    if found.is_empty() {
        bail!("nothing could be run");
    }
    let text = report::text(&found, args.top);
    std::fs::write(out.join("precision.md"), &text)?;
    std::fs::write(out.join("precision.json"), serde_json::to_string_pretty(&found)? + "\n")?;
    println!("{text}written to {}", out.display());
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &PrecisionArgs, clock: &Clock, work: &Path, out: &Path) -> Result<BTreeMap<String, Kernels>> {
    let mut binaries = find_binaries()?;
    if !args.sim {
        binaries = executable_copy(&binaries, &work.join("bin"))?;
    }
    let mut found: BTreeMap<String, Kernels> = BTreeMap::new();
    for workload in workloads::list(args, clock, work)? {
        let Workload { name, command } = &workload;
        if clock.0.elapsed().as_secs_f64() > args.budget {
            clock.say(&format!("{name}: no time left"));
            continue;
        }
        match record(&binaries, args, clock, work, &workload) {
            Ok(kernels) if args.sim => found.entry("corpus".to_owned()).or_default().extend(kernels),
            Ok(kernels) => {
                found.insert(name.clone(), kernels);
                if let Err(error) = study(&binaries, out, work, name, args, clock) {
                    clock.say(&format!("{name}: nothing to study: {error:#}"));
                }
            }
            Err(error) => clock.say(&format!("{name} ({}): {error:#}", command.first().map_or("", |word| word))),
        }
    }
    Ok(found)
}

fn find_binaries() -> Result<PathBuf> {
    let given = std::env::var_os("STREAMSAN_BIN").map(PathBuf::from);
    let places = [given, Some(workspace::root().join(".gpu")), Some(workspace::target().join("release"))];
    let mut found = places.into_iter().flatten().filter(|folder| folder.join("streamsan").exists());
    let folder = found.next().context("no streamsan found: run scripts/build, or set STREAMSAN_BIN")?;
    Ok(std::fs::canonicalize(folder)?)
}

/// A copy: files carried from elsewhere may lack the permission to execute.
fn executable_copy(from: &Path, to: &Path) -> Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_file() && (name == "streamsan" || name == "extract" || name.contains(".so")) {
            std::fs::copy(&path, to.join(&name))?;
            std::fs::set_permissions(to.join(&name), std::fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(to.to_path_buf())
}

/// Runs one workload; what the report of its trace says of its kernels.
fn record(binaries: &Path, args: &PrecisionArgs, clock: &Clock, work: &Path, workload: &Workload) -> Result<Kernels> {
    let name = &workload.name;
    let (trace, report) = (work.join(format!("{name}.trace")), work.join(format!("{name}.json")));
    let limit = Duration::from_secs_f64(args.timeout);
    let began = Instant::now();
    let mut record = command::clean(&binaries.join("streamsan"));
    record.args(["record", "--no-stacks"]).args(args.sim.then_some("--sim-predict")).arg("-o").arg(&trace);
    record.arg("--").args(&workload.command).env("XLA_PYTHON_CLIENT_PREALLOCATE", "false");
    let ran = command::limited(&mut record, limit)?.context("takes too long")?;
    let ran_s = began.elapsed().as_secs_f64();
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        let end: String = said.trim().chars().rev().take(400).collect::<Vec<_>>().into_iter().rev().collect();
        clock.say(&format!("{name}: {}: {end}", ran.status));
        if !trace.exists() || matches!(ran.status.code(), Some(70 | 126 | 127)) {
            bail!("no trace");
        }
    }
    let began = Instant::now();
    let mut check = command::clean(&binaries.join("streamsan"));
    check.args(["check", "--error-exitcode", "0", "--json"]).arg(&report).arg(&trace);
    command::limited(&mut check, limit)?.context("the check takes too long")?;
    let found: Value = serde_json::from_str(&std::fs::read_to_string(&report).context("no report")?)?;
    let launches = &found["coverage"]["launches"];
    clock.say(&format!(
        "{name}: {} launches, {} with ranges, {} directions only, {} unknown, {} indirect; {} findings; run {ran_s:.1} s, \
         check {:.1} s, trace {:.1} MB",
        launches["total"],
        launches["ranges"],
        launches["kinds_only"],
        launches["unknown"],
        launches["indirect"],
        found["summary"]["findings"],
        began.elapsed().as_secs_f64(),
        std::fs::metadata(&trace)?.len() as f64 / 1e6,
    ));
    Ok(found["coverage"]["kernels"].as_array().context("no kernels")?.clone())
}

/// Machine code and launches of what has no ranges.
fn study(binaries: &Path, out: &Path, work: &Path, name: &str, args: &PrecisionArgs, clock: &Clock) -> Result<()> {
    let extract = binaries.join("extract");
    if !extract.exists() {
        return Ok(());
    }
    let limit = Duration::from_secs(300);
    let folder = format!("study-{name}");
    let mut command = Command::new(extract);
    command.args(args.every.then_some("--all")).arg(work.join(format!("{name}.trace"))).arg(work.join(&folder));
    command::limited(&mut command, limit)?.context("takes too long")?;
    let packed = out.join(format!("{folder}.tar.xz"));
    let mut tar = Command::new("tar");
    tar.arg("-cJf").arg(&packed).arg("-C").arg(work).arg(&folder).env("XZ_OPT", "-T0 -3");
    let packing = command::limited(&mut tar, limit)?.context("packing takes too long")?;
    if !packing.status.success() {
        bail!("tar: {}", packing.status);
    }
    let bytes = std::fs::metadata(&packed)?.len();
    if bytes > args.limit << 20 {
        clock.say(&format!("{folder}.tar.xz: {} MiB, over the limit: left out", bytes >> 20));
        std::fs::remove_file(&packed)?;
    }
    Ok(())
}
