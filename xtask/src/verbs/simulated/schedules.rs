//! `cargo xtask schedules`: the corpus under many schedules of the simulated GPU.

use std::process::ExitCode;

use anyhow::Result;

use super::{cases, run_noting};
use crate::columns::Table;

/// Run every program of the corpus on the simulated GPU under many schedules, and count with how
/// many seeds it computes something else than in order.
///
/// A clean program never may, a racy one must at least once. Takes 6 minutes of one core's time
/// for the whole corpus. Builds, unless `STREAMSAN_BIN` names a folder of binaries.
#[derive(clap::Args)]
pub struct SchedulesArgs {
    /// Seeds of the random schedule that are tried.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
    /// Only programs whose names contain this.
    #[arg(value_name = "WORD", default_value = "")]
    word: String,
}

/// Runs the tests `schedules::` and prints what they noted.
pub fn run(args: &SchedulesArgs) -> Result<ExitCode> {
    let filter = format!("schedules::{}", args.word);
    // A word may stand anywhere in the name; the list's name only in front.
    let filters = if args.word.is_empty() { vec![filter.as_str()] } else { vec![args.word.as_str()] };
    let mut test = cases();
    test.args(filters).args(["--skip", "corpus::", "--skip", "samples::", "--skip", "order_rules::"]);
    test.env("SCHEDULES_SEEDS", args.seeds.to_string());
    run_noting(test, "SCHEDULES_TABLE", print)
}

/// Lines of the tests: name, kind, `N of SEEDS`, the first seed that differs (or none), what
/// `late-first` computes, and a remark.
fn print(noted: &str) {
    println!(
        "{:28} {:5} {:>14} {:>5}  {:10} in what, or why never",
        "program", "", "seeds differing", "first", "late-first"
    );
    let kind = |line: &str| line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let mut lines: Vec<&str> = noted.lines().collect();
    lines.sort_by_key(|line| (kind(line), (*line).to_owned()));
    let mut summary = Table::new(&["programs", "", "that differ"]);
    for line in &lines {
        println!("{line}");
    }
    for wanted in ["clean", "race"] {
        let of_kind: Vec<&&str> = lines.iter().filter(|line| kind(line) == wanted).collect();
        let differs = |line: &&&&str| line.split_whitespace().nth(2).is_some_and(|count| count != "0");
        let differing = of_kind.iter().filter(differs).count();
        summary.row([wanted.to_owned(), of_kind.len().to_string(), differing.to_string()]);
    }
    print!("\n{}", summary.aligned());
}
