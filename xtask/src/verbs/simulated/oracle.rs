//! `cargo xtask oracle`: what was predicted of launches against what they touched on the simulated
//! GPU.
//!
//! Owns the list of workloads, and the table by class of kernel. The comparison is the product's
//! (`--exact-compare`), what counts as wrong is in `tests/src/oracle.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use tests::oracle::{self, JudgedKernel};
use tests::{build, fake, verdict};

use crate::columns::Table;
use crate::verbs::{precision, torch_sim};
use crate::{command, workspace};

/// Hold what is predicted of launches against what they touch on the simulated GPU.
///
/// Runs the corpus, the samples, programs whose addresses are data, all as PTX and as machine code,
/// and PyTorch's operators (`cargo xtask operators`), training steps and serving steps, which are
/// machine code for 8.0. A byte that was touched and ruled out, or claimed and not touched, is an
/// error: each is shown with its launch. Prints how precise the predictions were, by class of
/// kernel, and why the others are not to the byte. *Possible*: no data decide about an access, so
/// parameters and indices alone tell the bytes; stand-ins for cuBLAS state their bytes themselves.
/// PyTorch is installed into `.cache/torch-full` (5 GB, minutes). Builds, unless
/// `STREAMSAN_BIN` names a folder of binaries with `sim` in it.
#[derive(clap::Args)]
pub struct OracleArgs {
    /// Without PyTorch.
    #[arg(long)]
    no_torch: bool,
    /// Only programs and families of operators whose names contain one of these words.
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    only: Vec<String>,
    /// The longest time of one run.
    #[arg(long, value_name = "SECONDS", default_value_t = 1200)]
    timeout: u64,
    /// Keep what each run said, by kernel and with examples, in this folder.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// What is printed of each class, in this order.
const VERDICTS: [&str; 7] = ["tight", "loose", "by-data", "open", "no-code", "overclaimed", "unsound"];

/// Kernels that state their bytes themselves.
const STAND_INS: &str = "stand-ins for cuBLAS";

/// The families of `tests/frameworks/operator_list.py`.
const FAMILIES: [&str; 10] = [
    "arithmetic",
    "functions",
    "logic",
    "reductions",
    "indexing",
    "shapes",
    "activations",
    "layers",
    "losses",
    "products",
];

/// One run.
struct OracleRun {
    /// What it is of, in the first table.
    group: &'static str,
    name: String,
    /// `STREAMSAN_SIM`.
    simulator: String,
    command: Vec<String>,
    /// It runs PyTorch.
    of_torch: bool,
    /// Whether a failure of the program itself is one of this verb.
    must_end_well: bool,
}

/// Launches and kernels by verdict, by whether data decide, and by what was lost.
pub(super) type Reasons = BTreeMap<(String, bool, String), (u64, BTreeSet<String>)>;

/// Launches by verdict, and their kernels.
#[derive(Default)]
pub(super) struct Judged {
    kernels: BTreeSet<String>,
    counts: BTreeMap<String, u64>,
    /// Launches that are not tight because data decide about an access.
    by_data: u64,
}

impl Judged {
    pub(super) fn add(&mut self, kernel: &JudgedKernel) {
        self.kernels.insert(kernel.name.clone());
        for (verdict, count) in &kernel.counts {
            *self.counts.entry(verdict.clone()).or_default() += count;
        }
        self.by_data += kernel.reasons.iter().filter(|(why, _)| why.1).map(|(_, count)| count).sum::<u64>();
    }

    fn row(&self, label: &str) -> Vec<String> {
        let count = |verdict: &str| self.counts.get(verdict).copied().unwrap_or(0);
        let total: u64 = self.counts.values().sum();
        let mut cells = vec![label.to_owned(), self.kernels.len().to_string(), total.to_string()];
        cells.extend(VERDICTS.iter().map(|verdict| count(verdict).to_string()));
        let tight = count("tight");
        let known = tight + count("loose") + count("by-data");
        for (good, all) in [(tight, total), (tight, total - self.by_data), (known, total)] {
            let share = 100.0 * good as f64 / all as f64;
            cells.push(if all == 0 { "-".into() } else { format!("{share:.1} %") });
        }
        cells
    }
}

/// Runs all, prints the tables; fails when a prediction was wrong.
pub fn run(args: &OracleArgs) -> Result<ExitCode> {
    let binaries = workspace::binaries()?;
    let work = std::env::temp_dir().join(format!("streamsan-oracle-{}", std::process::id()));
    let out = args.out.clone().unwrap_or_else(|| work.clone());
    std::fs::create_dir_all(&out)?;
    let begun = Instant::now();
    let (mut by_group, mut by_class) = (BTreeMap::<&str, Judged>::new(), BTreeMap::<&str, Judged>::new());
    let mut reasons = BTreeMap::<(String, bool, String), (u64, BTreeSet<String>)>::new();
    let (mut all, mut own) = (Judged::default(), Judged::default());
    let (mut wrong, mut failed) = (Vec::new(), Vec::new());
    for run in runs(args)? {
        match judge(&run, &binaries, &out, Duration::from_secs(args.timeout)) {
            Ok(kernels) => {
                for kernel in &kernels {
                    by_group.entry(run.group).or_default().add(kernel);
                    by_class.entry(class(&kernel.name)).or_default().add(kernel);
                    if run.of_torch {
                        all.add(kernel);
                        if class(&kernel.name) != STAND_INS {
                            own.add(kernel);
                        }
                    }
                    for (why, count) in &kernel.reasons {
                        let (launches, kernels) = reasons.entry(why.clone()).or_default();
                        *launches += count;
                        kernels.insert(kernel.name.clone());
                    }
                    wrong
                        .extend(kernel.wrong.iter().map(|example| format!("{}: {}\n{example}", run.name, kernel.name)));
                }
            }
            Err(error) => failed.push(format!("{}: {error:#}", run.name)),
        }
    }
    let classes = precision::CLASSES.iter().map(|(class, _)| *class).chain(["other", STAND_INS]);
    let classes = classes.filter_map(|class| Some((class, by_class.get(class)?)));
    let sums = [("all of PyTorch", &all), ("without stand-ins", &own)];
    println!("{}", table("of", by_group.iter().map(|(group, judged)| (*group, judged))));
    println!("{}", table("class", classes.chain(sums)));
    println!("{}", why_not_tight(reasons));
    println!("{:.0} s", begun.elapsed().as_secs_f64());
    wrong.iter().for_each(|example| println!("\npredicted wrongly: {example}"));
    failed.iter().for_each(|why| println!("\nnot compared: {why}"));
    if args.out.is_none() {
        std::fs::remove_dir_all(&work)?;
    }
    Ok(if wrong.is_empty() && failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The class of a kernel.
pub(super) fn class(kernel: &str) -> &'static str {
    if kernel.starts_with("streamsan_") { STAND_INS } else { precision::class(kernel) }
}

/// Launches that are not predicted to the byte, by what they lost, the most first.
pub(super) fn why_not_tight(reasons: Reasons) -> String {
    let mut rows: Vec<_> = reasons.into_iter().collect();
    rows.sort_by_key(|(_, (launches, _))| std::cmp::Reverse(*launches));
    let mut table = Table::new(&["not tight", "data decide", "lost", "launches", "kernels", "for example"]);
    for ((verdict, data, words), (launches, kernels)) in rows {
        let example: String = kernels.first().map_or("", String::as_str).chars().take(60).collect();
        let data = if data { "yes" } else { "no" }.to_owned();
        table.row([verdict, data, words, launches.to_string(), kernels.len().to_string(), example]);
    }
    table.markdown()
}

/// How launches were predicted, a row for each label.
pub(super) fn table<'a>(title: &str, rows: impl Iterator<Item = (&'a str, &'a Judged)>) -> String {
    let columns: Vec<&str> = [title, "kernels", "launches"]
        .into_iter()
        .chain(VERDICTS)
        .chain(["tight", "of possible", "with ranges"])
        .collect();
    let mut table = Table::new(&columns);
    rows.for_each(|(label, judged)| table.row(judged.row(label)));
    table.markdown()
}

fn runs(args: &OracleArgs) -> Result<Vec<OracleRun>> {
    let mut found = programs(args)?;
    if !args.no_torch {
        let python = torch_sim::environment()?.join("bin/python").display().to_string();
        let script = workspace::root().join("tests/frameworks/operators.py").display().to_string();
        for family in FAMILIES.into_iter().filter(|family| is_wanted(args, family)) {
            found.push(OracleRun {
                group: "PyTorch's operators, machine code",
                name: format!("operators-{family}"),
                simulator: String::new(),
                command: vec![python.clone(), script.clone(), "--family".to_owned(), family.to_owned()],
                of_torch: true,
                // Some operators are refused: that is the business of `cargo xtask operators`.
                must_end_well: false,
            });
        }
    }
    if !args.no_torch {
        found.extend(steps(args)?);
    }
    if found.is_empty() {
        bail!("no program has such a name");
    }
    Ok(found)
}

/// Programs that train and serve, and attention in its forms.
fn steps(args: &OracleArgs) -> Result<Vec<OracleRun>> {
    let programs = [
        ("training steps", "train_two_layers"),
        ("training steps", "train_transformer"),
        ("training steps", "train_resnet"),
        ("serving steps", "serve_transformer"),
        ("attention, each form", "attention_forms"),
    ];
    let python = torch_sim::environment()?.join("bin/python").display().to_string();
    let run = |(group, name): (&'static str, &str)| OracleRun {
        group,
        name: name.to_owned(),
        simulator: String::new(),
        command: vec![
            python.clone(),
            workspace::root().join(format!("tests/frameworks/{name}.py")).display().to_string(),
        ],
        of_torch: true,
        must_end_well: true,
    };
    Ok(programs.into_iter().filter(|(_, name)| is_wanted(args, name)).map(run).collect())
}

fn is_wanted(args: &OracleArgs, name: &str) -> bool {
    args.only.is_empty() || args.only.iter().any(|word| name.contains(word.as_str()))
}

/// The CUDA programs of the tests, compiled, each as PTX and as machine code.
fn programs(args: &OracleArgs) -> Result<Vec<OracleRun>> {
    let mut found = Vec::new();
    let folders = [
        ("corpus", "tests/corpus/cuda"),
        ("samples", "tests/samples"),
        ("addresses from data", "tests/programs/exact"),
    ];
    for (group, folder) in folders {
        for file in
            workspace::files_in(folder, "cu")?.into_iter().filter(|file| is_wanted(args, &workspace::stem(file)))
        {
            let (name, text) = (workspace::stem(&file), std::fs::read_to_string(&file)?);
            let needs = verdict::field(&text, "needs").unwrap_or_default();
            let cases = cases(group, &name);
            if cases.is_empty() || needs.contains("heavy") {
                continue;
            }
            let program = compiled(group, &file, &needs).map_err(|why| anyhow!("{name}: {why}"))?;
            for (code, case) in ["ptx", "sass"].into_iter().flat_map(|code| cases.iter().map(move |case| (code, case)))
            {
                let mut command = vec![program.display().to_string()];
                command.extend(case.split_whitespace().map(str::to_owned));
                found.push(OracleRun {
                    group,
                    name: format!("{name}-{}{code}", case.replace(' ', "-")),
                    simulator: format!("code={code}"),
                    command,
                    of_torch: false,
                    // Machine code with textures is refused.
                    must_end_well: code == "ptx",
                });
            }
        }
    }
    Ok(found)
}

/// The words that a program is run with.
fn cases(group: &str, name: &str) -> Vec<&'static str> {
    match (group, name) {
        ("addresses from data", "indirect") => {
            vec!["gather clean", "scatter clean", "histogram clean", "list clean", "table clean", "nested clean"]
        }
        ("addresses from data", "graph") => vec!["branches clean", "stream clean", "update clean", "child clean"],
        ("addresses from data", "confirm_gather" | "confirm_squares") => vec!["clean"],
        // The others need a GPU, or other libraries.
        ("addresses from data", _) => Vec::new(),
        _ => vec![""],
    }
}

/// As the tests compile it, so that it is compiled once.
fn compiled(group: &str, file: &Path, needs: &str) -> Result<PathBuf, String> {
    let link = [format!("-L{}", fake::folder().display()), "-lcuda".to_owned()];
    let (runtime, mut extra) = match group {
        "samples" => ("shared", Vec::new()),
        _ => ("static", Vec::new()),
    };
    if needs.contains("driver-api") {
        extra.extend(link.iter().map(String::as_str));
    }
    if needs.contains("sm_90") {
        // The last one counts.
        extra.push("-arch=sm_90");
    }
    build::cuda_program(file, runtime, &extra)
}

/// Runs one; how each of its kernels was predicted.
fn judge(run: &OracleRun, binaries: &Path, out: &Path, limit: Duration) -> Result<Vec<JudgedKernel>> {
    let compared = out.join(format!("{}.json", run.name));
    let mut streamsan = command::clean(&binaries.join("streamsan"));
    streamsan.args(["run", "--sim", "--exact=all", "--no-stacks", "--error-exitcode", "0", "--exact-compare"]);
    streamsan.arg(&compared).arg("--").args(&run.command).env("STREAMSAN_SIM", &run.simulator);
    let ran = command::limited(&mut streamsan, limit)?.context("takes too long")?;
    if run.must_end_well && !ran.status.success() {
        bail!("{}\n{}", ran.status, String::from_utf8_lossy(&ran.stderr));
    }
    oracle::read(&compared).map_err(|why| anyhow!("{why}"))
}
