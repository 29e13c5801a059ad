//! `cargo xtask replay`: launches of recorded traces, run by themselves on the simulated GPU.
//!
//! Owns the run of what `tests::replay` prepares, and the tables. The comparison is the product's
//! (`--exact-compare`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tests::oracle;
use tests::replay::{self, Replayable};

use crate::columns::Table;
use crate::verbs::simulated::oracle::{Judged, Reasons, class, table, why_not_tight};
use crate::{command, workspace};

/// Run the launches of recorded traces by themselves on the simulated GPU, and hold what is
/// predicted of them against what they touch.
///
/// For kernels of libraries that only run with NVIDIA's driver: record a program on a GPU (`python3
/// tests/gpu recordings`), bring the trace, and name the folder where pip has put the same
/// libraries. Each different launch runs with its own grid and parameters, over fresh memory that
/// is zero. What can not be run is listed with the reason. Builds, unless `STREAMSAN_BIN` names a
/// folder of binaries with `sim` in it.
#[derive(clap::Args)]
pub struct ReplayArgs {
    /// Traces of one file each.
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// A folder with the libraries that a trace names, such as `site-packages`.
    #[arg(long, value_name = "FOLDER")]
    code: Vec<PathBuf>,
    /// The longest time of one trace.
    #[arg(long, value_name = "SECONDS", default_value_t = 1200)]
    timeout: u64,
    /// Keep what is run, and what each run said, in this folder.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Runs all, prints the tables; fails when a prediction was wrong or nothing could be run.
pub fn run(args: &ReplayArgs) -> Result<ExitCode> {
    let binaries = workspace::binaries()?;
    let work = std::env::temp_dir().join(format!("streamsan-replay-{}", std::process::id()));
    let out = args.out.clone().unwrap_or_else(|| work.clone());
    let (mut by_class, mut all) = (BTreeMap::<&str, Judged>::new(), Judged::default());
    let (mut reasons, mut wrong) = (Reasons::new(), Vec::new());
    let mut left_out = BTreeMap::<String, u64>::new();
    let (mut recorded, mut different, mut ran) = (0, 0, 0);
    for (number, trace) in args.traces.iter().enumerate() {
        let ready =
            replay::prepare(trace, &args.code, &out.join(number.to_string())).map_err(|why| anyhow!("{why}"))?;
        recorded += ready.launches + ready.left_out.values().sum::<u64>();
        ready.left_out.into_iter().for_each(|(why, count)| *left_out.entry(why).or_default() += count);
        for (arch, folder, launches) in ready.folders {
            different += launches;
            let failures = play(&binaries, arch, &folder, Duration::from_secs(args.timeout))?;
            ran += launches - failures.len();
            failures.into_iter().for_each(|why| *left_out.entry(why).or_default() += 1);
            for kernel in oracle::read(&folder.join("compared.json")).map_err(|why| anyhow!("{why}"))? {
                by_class.entry(class(&kernel.name)).or_default().add(&kernel);
                all.add(&kernel);
                for (why, count) in &kernel.reasons {
                    let (launches, kernels) = reasons.entry(why.clone()).or_insert_with(|| (0, BTreeSet::new()));
                    *launches += count;
                    kernels.insert(kernel.name.clone());
                }
                wrong.extend(kernel.wrong.iter().map(|example| format!("{}\n{example}", kernel.name)));
            }
        }
    }
    println!("{}", table("class", by_class.iter().map(|(class, judged)| (*class, judged)).chain([("all", &all)])));
    println!("{}", why_not_tight(reasons));
    println!("{recorded} launches recorded, {different} different ones taken, {ran} run\n");
    let mut table = Table::new(&["left out", "launches"]);
    left_out.into_iter().for_each(|(why, count)| table.row([why, count.to_string()]));
    println!("{}", table.markdown());
    wrong.iter().for_each(|example| println!("\npredicted wrongly: {example}"));
    if args.out.is_none() {
        std::fs::remove_dir_all(&work).or_else(|e| if work.exists() { Err(e) } else { Ok(()) })?;
    }
    if ran == 0 {
        bail!("no launch of these traces could be run");
    }
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the launches of a folder; why each of those failed that did.
fn play(binaries: &Path, arch: u32, folder: &Path, limit: Duration) -> Result<Vec<String>> {
    let mut streamsan = command::clean(&binaries.join("streamsan"));
    streamsan.args(Replayable::arguments(folder)).env("STREAMSAN_SIM", format!("arch={arch}"));
    let ran = command::limited(&mut streamsan, limit)?;
    let ran = ran.with_context(|| format!("{}: takes too long", folder.display()))?;
    std::fs::write(folder.join("said.txt"), &ran.stderr)?;
    Ok(replay::failures(&String::from_utf8_lossy(&ran.stdout)))
}
