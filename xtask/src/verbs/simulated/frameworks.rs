//! `cargo xtask frameworks`: Python's frameworks on the simulated GPU, as a table.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use tests::frameworks::{self, BY_HAND, EXAMPLES, Packages, TWINS};
use tests::run::processor_seconds;

use crate::columns::Table;

/// Run programs that train or solve with PyTorch, Triton, JAX, CuPy and Numba, and print a table.
///
/// Each compares its results with the CPU's, and has a twin that races, which must be reported.
/// Packages are fetched from PyPI into `.cache`, as they are. Builds, unless `STREAMSAN_BIN` names
/// a folder of binaries.
#[derive(clap::Args)]
pub struct FrameworksArgs {
    /// Only programs with one of these in their names
    names: Vec<String>,
    /// Only fetch what they need
    #[arg(long)]
    fetch: bool,
    /// Look for races inside kernels, too
    #[arg(long)]
    inside: bool,
}

/// Runs and prints.
pub fn run(args: &FrameworksArgs) -> Result<ExitCode> {
    let is_wanted = |name: &str| args.names.is_empty() || args.names.iter().any(|part| name.contains(part.as_str()));
    let examples: Vec<(&str, Packages)> =
        EXAMPLES.into_iter().chain(BY_HAND).filter(|(name, _)| is_wanted(name)).collect();
    if examples.is_empty() {
        bail!("no program of tests/frameworks has such a name");
    }
    for (_, packages) in &examples {
        packages.fetch().map_err(|error| anyhow!(error))?;
    }
    if args.fetch {
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["program", "twin", "verdict", "seconds", "of processor", "launches", "with ranges"]);
    let mut wrong = Vec::new();
    for (name, packages) in examples {
        for (twin, code) in TWINS {
            let options = if args.inside { &["--inside"][..] } else { &[] };
            let mut command = frameworks::command(name, packages, &[twin], options).map_err(|error| anyhow!(error))?;
            let (began, used) = (Instant::now(), processor_seconds());
            let ended = frameworks::ends(&mut command, name, code);
            let seconds = [began.elapsed().as_secs_f64(), processor_seconds() - used].map(|time| format!("{time:.1}"));
            let [launches, ranges] = ended.as_ref().map(|ended| launches(&ended.err)).unwrap_or_default();
            let [wall, processor] = &seconds;
            let verdict = if ended.is_ok() { "right" } else { "WRONG" };
            table.row([name, twin, verdict, wall, processor, launches, ranges].map(str::to_owned));
            wrong.extend(ended.err());
        }
    }
    print!("{}", table.aligned());
    wrong.iter().for_each(|said| println!("\n{said}"));
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How many launches a report counts, and how many with ranges.
fn launches(report: &str) -> [&str; 2] {
    let coverage = report.split_once("COVERAGE: ").map_or("", |(_, coverage)| coverage);
    let all = coverage.split(' ').next().unwrap_or_default();
    [all, coverage.split_once('(').and_then(|(_, rest)| rest.split(' ').next()).unwrap_or_default()]
}
