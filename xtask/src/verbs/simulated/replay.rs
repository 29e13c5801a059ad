//! `cargo xtask replay`: recorded launches, run by themselves on the simulated GPU.
//!
//! Owns the run of what `tests::replay` prepares, the tables, and the making of lists. The
//! comparison is the product's (`--exact-compare`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tests::oracle::{self, JudgedKernel};
use tests::replay::{self, Choice, LaunchList, Played, Replayable};

use crate::columns::Table;
use crate::verbs::simulated::oracle::{Judged, Reasons, class, table, why_not_tight};
use crate::{command, workspace};

/// Run recorded launches by themselves on the simulated GPU, and hold what is predicted of them
/// against what they touch.
///
/// For kernels of libraries that only run with NVIDIA's driver. Takes lists of launches
/// (`tests/replayed/*.json`; the package is fetched from PyPI), and traces: record a program on a
/// GPU (`python3 tests/gpu recordings`), bring the trace, and name the folder where pip has put the
/// same libraries. Each different launch runs with its own grid and parameters, over fresh memory
/// that is zero. What can not be run is listed with the reason. Builds, unless `STREAMSAN_BIN`
/// names a folder of binaries with `sim` in it. Ends with 1 when a prediction was wrong, nothing
/// could be run, or a library of a list is missing or another build.
#[derive(clap::Args)]
pub struct ReplayArgs {
    /// Traces of one file each, and lists of launches.
    #[arg(required_unless_present = "fetch")]
    recordings: Vec<PathBuf>,
    /// A folder with the libraries that a recording names, such as `site-packages`.
    #[arg(long, value_name = "FOLDER")]
    code: Vec<PathBuf>,
    /// The longest time of one recording.
    #[arg(long, value_name = "SECONDS", default_value_t = 1200)]
    timeout: u64,
    /// Keep what is run, and what each run said, in this folder.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Choose launches, one of each kernel, and write lists of them into this folder, one for each
    /// package.
    #[arg(long, value_name = "FOLDER", requires = "code")]
    lists: Option<PathBuf>,
    /// How long the chosen launches may take in all.
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    seconds: f64,
    /// Only fetch the packages of `tests/replayed`.
    #[arg(long)]
    fetch: bool,
}

/// What all replays have shown.
#[derive(Default)]
struct Seen {
    by_class: BTreeMap<&'static str, Judged>,
    all: Judged,
    reasons: Reasons,
    wrong: Vec<String>,
}

impl Seen {
    fn add(&mut self, kernel: &JudgedKernel) {
        self.by_class.entry(class(&kernel.name)).or_default().add(kernel);
        self.all.add(kernel);
        for (why, count) in &kernel.reasons {
            let (launches, kernels) = self.reasons.entry(why.clone()).or_insert_with(|| (0, BTreeSet::new()));
            *launches += count;
            kernels.insert(kernel.name.clone());
        }
        self.wrong.extend(kernel.wrong.iter().map(|example| format!("{}\n{example}", kernel.name)));
    }
}

/// Runs all, prints the tables; fails when a prediction was wrong or nothing could be run.
pub fn run(args: &ReplayArgs) -> Result<ExitCode> {
    if args.fetch {
        replay::fetch().map_err(|why| anyhow!("{why}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let work = std::env::temp_dir().join(format!("streamsan-replay-{}", std::process::id()));
    let out = args.out.clone().unwrap_or_else(|| work.clone());
    let (mut seen, mut left_out, mut choices) = (Seen::default(), BTreeMap::<String, u64>::new(), Vec::new());
    let (mut recorded, mut different, mut ran, mut folders) = (0, 0, 0, Vec::new());
    // What is wrong with them is said before anything is built.
    for (number, recording) in args.recordings.iter().enumerate() {
        let folder = out.join(number.to_string());
        let is_list = recording.extension().is_some_and(|extension| extension == "json");
        let ready = if is_list {
            LaunchList::read(recording).and_then(|list| list.prepare(&args.code, &folder))
        } else {
            replay::prepare(recording, &args.code, &folder)
        };
        let ready = ready.map_err(|why| anyhow!("{why}"))?;
        recorded += ready.launches + ready.left_out.values().sum::<u64>();
        ready.left_out.into_iter().for_each(|(why, count)| *left_out.entry(why).or_default() += count);
        folders.extend(ready.folders);
    }
    let (binaries, limit) = (workspace::binaries()?, Duration::from_secs(args.timeout));
    for (arch, folder, launches) in folders {
        different += launches;
        let played = play(&binaries, arch, &folder, limit)?;
        let failures = played.iter().filter_map(|launch| launch.failure.clone());
        failures.for_each(|why| *left_out.entry(why).or_default() += 1);
        ran += played.iter().filter(|launch| launch.failure.is_none()).count();
        judged(&folder)?.iter().for_each(|kernel| seen.add(kernel));
        choices.extend(Choice::of(&folder, arch, &played).map_err(|why| anyhow!("{why}"))?);
    }
    let by_class = seen.by_class.iter().map(|(class, judged)| (*class, judged));
    println!("{}", table("class", by_class.chain([("all", &seen.all)])));
    println!("{}", why_not_tight(seen.reasons));
    println!("{recorded} launches recorded, {different} different ones taken, {ran} run\n");
    let mut table = Table::new(&["left out", "launches"]);
    left_out.into_iter().for_each(|(why, count)| table.row([why, count.to_string()]));
    println!("{}", table.markdown());
    seen.wrong.iter().for_each(|example| println!("\npredicted wrongly: {example}"));
    if let Some(folder) = &args.lists {
        write_lists(args, choices, folder, &binaries, &out)?;
    }
    if args.out.is_none() {
        std::fs::remove_dir_all(&work).or_else(|e| if work.exists() { Err(e) } else { Ok(()) })?;
    }
    if ran == 0 {
        bail!("no launch of these recordings could be run");
    }
    Ok(if seen.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the launches of a folder; how each of them went.
fn play(binaries: &Path, arch: u32, folder: &Path, limit: Duration) -> Result<Vec<Played>> {
    let mut streamsan = command::clean(&binaries.join("streamsan"));
    streamsan.args(Replayable::arguments(folder)).env("STREAMSAN_SIM", format!("arch={arch}"));
    let ran = command::limited(&mut streamsan, limit)?;
    let ran = ran.with_context(|| format!("{}: takes too long", folder.display()))?;
    std::fs::write(folder.join("said.txt"), &ran.stderr)?;
    Ok(replay::played(&String::from_utf8_lossy(&ran.stdout)))
}

fn judged(folder: &Path) -> Result<Vec<JudgedKernel>> {
    oracle::read(&folder.join("compared.json")).map_err(|why| anyhow!("{why}"))
}

/// Writes lists of a choice of the launches. Each is replayed by itself, for what it has to show.
fn write_lists(args: &ReplayArgs, choices: Vec<Choice>, to: &Path, binaries: &Path, out: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for mut list in replay::lists(choices, args.seconds, &args.code).map_err(|why| anyhow!("{why}"))? {
        let (name, _) = list.package.split_once("==").context("a package has a version")?;
        let (file, folder) = (to.join(format!("{name}.json")), out.join(name));
        list.prepare(&args.code, &folder).map_err(|why| anyhow!("{why}"))?;
        let played = play(binaries, list.arch, &folder, Duration::from_secs(args.timeout))?;
        let is_open = |kernel: &JudgedKernel| ["open", "no-code"].iter().any(|open| kernel.counts.contains_key(*open));
        let open = judged(&folder)?.into_iter().filter(is_open).map(|kernel| kernel.name).collect();
        list.expect(&played, &open);
        list.write(&file).map_err(|why| anyhow!("{why}"))?;
        let (launches, kernels, with_ranges) = list.sizes();
        println!("{}: {launches} launches of {kernels} kernels, {with_ranges} with ranges", file.display());
    }
    Ok(())
}
