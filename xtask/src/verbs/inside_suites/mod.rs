//! `cargo xtask inside-suites`: public suites of races inside kernels, against committed verdicts.
//!
//! Owns the comparison and the tables that are printed. What the suites are made of is fetched
//! (`sources`), what each program is to show is in `tests/inside_suites` (`table`).

mod carried;
mod gpuverify;
mod indigo;
mod programs;
mod sources;
mod table;
mod trial;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::columns::Table;
use carried::Carried;
use sources::Source;
use table::{Row, Says, Shown};
use trial::{Code, Made, Trial};

/// Run public suites of races inside kernels on the simulated GPU (`streamsan --sim --inside`), and
/// compare what is found with `tests/inside_suites`.
///
/// The sources are fetched from GitHub at one commit each, into `.cache`, and compiled by the
/// compiler of `scripts/toolkit`. Prints what differs and a row for each suite. Builds, unless
/// `STREAMSAN_BIN` names a folder of binaries.
#[derive(clap::Args)]
pub struct InsideSuitesArgs {
    /// Which suites; all of them without this
    suites: Vec<Suite>,
    /// A clone to take a suite's commits from, where there is no network
    #[arg(long, value_name = "SUITE=FOLDER")]
    from: Vec<String>,
    /// Only programs whose names contain one of these words
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    only: Vec<String>,
    /// Print each program with its verdict
    #[arg(long)]
    all: bool,
    /// Run nothing: write the programs, compiled for a GPU, into this archive (.tar.xz), with their
    /// list for `tests/gpu racecheck --list`
    #[arg(long, value_name = "ARCHIVE")]
    list: Option<PathBuf>,
    /// Seconds that one program may run
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    limit: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Suite {
    Indigo,
    Scor,
    Gpuverify,
    Hecbench,
}

impl Suite {
    const ALL: [Self; 4] = [Self::Indigo, Self::Scor, Self::Gpuverify, Self::Hecbench];

    fn name(self) -> &'static str {
        match self {
            Self::Indigo => "indigo",
            Self::Scor => "scor",
            Self::Gpuverify => "gpuverify",
            Self::Hecbench => "hecbench",
        }
    }
}

/// Counts of a suite's programs.
#[derive(Default)]
struct Tally {
    racy: usize,
    found: usize,
    clean: usize,
    alarms: usize,
    other: usize,
    wrong: usize,
}

impl Tally {
    fn count(&mut self, row: &Row, shown: Shown) {
        let is_race = usize::from(shown == Shown::Race);
        match row.says {
            Says::Racy => (self.racy, self.found) = (self.racy + 1, self.found + is_race),
            Says::Clean => (self.clean, self.alarms) = (self.clean + 1, self.alarms + is_race),
            Says::Other => self.other += 1,
        }
        self.wrong += usize::from(shown != row.expected);
    }
}

/// Runs the suites and prints the table.
pub fn run(args: &InsideSuitesArgs) -> Result<ExitCode> {
    let mut clones = BTreeMap::new();
    for from in &args.from {
        let (suite, folder) = from.split_once('=').with_context(|| format!("--from SUITE=FOLDER: {from}"))?;
        let known = Suite::ALL.iter().find(|known| known.name() == suite);
        clones.insert(known.with_context(|| format!("no suite {suite}"))?.name(), PathBuf::from(folder));
    }
    let unpacked = |suite: Suite, source: &Source| source.unpacked(clones.get(suite.name()).map(PathBuf::as_path));
    let suites = if args.suites.is_empty() { &Suite::ALL[..] } else { &args.suites };
    let mut table = Table::new(&["suite", "racy", "found", "clean", "alarms", "others", "not as expected"]);
    let mut wrong = 0;
    if let Some(archive) = &args.list {
        let mut carried = Carried::new(archive)?;
        for &suite in suites {
            carry(suite, args, &|source| unpacked(suite, source), &mut carried)?;
        }
        carried.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    for &suite in suites {
        let tally = run_suite(suite, args, &|source| unpacked(suite, source))?;
        wrong += tally.wrong;
        let counts = [tally.racy, tally.found, tally.clean, tally.alarms, tally.other, tally.wrong];
        table.row(std::iter::once(suite.name().to_owned()).chain(counts.map(|count| count.to_string())));
    }
    print!("{}", table.markdown());
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The rows of a suite's table that are asked for.
fn wanted(suite: Suite, args: &InsideSuitesArgs, unpacked: &dyn Fn(&Source) -> Result<PathBuf>) -> Result<Vec<Row>> {
    let is_wanted = |name: &str| args.only.is_empty() || args.only.iter().any(|word| name.contains(word.as_str()));
    let mut rows = table::read(suite.name())?;
    if suite == Suite::Gpuverify {
        let names = gpuverify::names(&unpacked(&gpuverify::SOURCE)?)?;
        if let Some(name) = names.iter().find(|name| !rows.iter().any(|row| row.name == **name)) {
            bail!("tests/inside_suites/gpuverify.tsv says nothing of {name}");
        }
    }
    rows.retain(|row| is_wanted(&row.name));
    Ok(rows)
}

fn run_suite(suite: Suite, args: &InsideSuitesArgs, unpacked: &dyn Fn(&Source) -> Result<PathBuf>) -> Result<Tally> {
    let rows = wanted(suite, args, unpacked)?;
    let limit = Duration::from_secs(args.limit);
    let mut tally = Tally::default();
    if suite == Suite::Indigo {
        let root = unpacked(&indigo::SOURCE)?;
        for (folder, names) in indigo::folders(&root)? {
            if !rows.iter().any(|row| names.contains(&row.name)) {
                continue;
            }
            let shown = indigo::run(&root, &folder, &names, limit)?;
            for row in rows.iter().filter(|row| names.contains(&row.name)) {
                if (row.says == Says::Racy) != indigo::is_racy(&row.name) {
                    bail!("the name of {} says otherwise than the table", row.name);
                }
                judge(&mut tally, args, row, shown[&row.name], None);
            }
        }
        return Ok(tally);
    }
    for row in &rows {
        let trial = match program(suite, row, Code::Simulated, unpacked) {
            Err(said) if suite == Suite::Gpuverify => Trial::without_program(format!("{said:#}")),
            made => made.and_then(|made| trial::try_out(&made, limit)).with_context(|| row.name.clone())?,
        };
        judge(&mut tally, args, row, trial.shown, Some(&trial));
    }
    Ok(tally)
}

/// Compiles the program of a row, where a row has one of its own.
fn program(suite: Suite, row: &Row, code: Code, unpacked: &dyn Fn(&Source) -> Result<PathBuf>) -> Result<Made> {
    match suite {
        Suite::Scor => programs::scor(&unpacked(&programs::SCOR)?, row, code),
        Suite::Gpuverify => gpuverify::test(&unpacked(&gpuverify::SOURCE)?, row, code),
        Suite::Hecbench => programs::hecbench(unpacked, row, code),
        Suite::Indigo => bail!("tests of Indigo share the program of their folder"),
    }
}

/// Adds the programs of a suite to what is carried.
fn carry(
    suite: Suite,
    args: &InsideSuitesArgs,
    unpacked: &dyn Fn(&Source) -> Result<PathBuf>,
    carried: &mut Carried,
) -> Result<()> {
    let rows = wanted(suite, args, unpacked)?;
    let rows = rows.iter().filter(|row| row.expected != Shown::NoProgram && row.says != Says::Other);
    if suite != Suite::Indigo {
        for row in rows {
            let made = program(suite, row, Code::Carried, unpacked).with_context(|| row.name.clone())?;
            carried.add(suite.name(), row, &made)?;
        }
        return Ok(());
    }
    let rows: Vec<&Row> = rows.collect();
    let root = unpacked(&indigo::SOURCE)?;
    for (folder, mut names) in indigo::folders(&root)? {
        names.retain(|name| rows.iter().any(|row| row.name == *name));
        if names.is_empty() {
            continue;
        }
        let tests = indigo::tests(&root, &folder, &names, Code::Carried)?;
        for row in rows.iter().filter(|row| names.contains(&row.name)) {
            carried.add(suite.name(), row, &tests[&row.name])?;
        }
    }
    Ok(())
}

/// Counts a verdict, and prints it where it is not the expected one.
fn judge(tally: &mut Tally, args: &InsideSuitesArgs, row: &Row, shown: Shown, trial: Option<&Trial>) {
    tally.count(row, shown);
    let is_right = shown == row.expected;
    if is_right && !args.all {
        return;
    }
    let verdict = if is_right { "as expected" } else { "WRONG" };
    let took = trial.map_or(String::new(), |trial| format!(" {:.1} s", trial.took.as_secs_f64()));
    println!("{verdict} {}: {shown}, expected {}{took} {}", row.name, row.expected, row.why);
    let Some(trial) = trial else { return };
    trial.lines.iter().for_each(|line| println!("    {line}"));
    if !is_right {
        let said: Vec<&str> = trial.said.lines().filter(|line| !line.is_empty()).collect();
        said[said.len().saturating_sub(12)..].iter().for_each(|line| println!("    | {line}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(says: Says, expected: Shown) -> Row {
        Row { name: "x".to_owned(), says, expected, arguments: Vec::new(), why: String::new() }
    }

    #[test]
    fn what_differs_from_the_table_is_wrong_even_if_the_suite_agrees() {
        let mut tally = Tally::default();
        tally.count(&row(Says::Racy, Shown::Silent), Shown::Race);
        assert_eq!((tally.racy, tally.found, tally.wrong), (1, 1, 1));
        tally.count(&row(Says::Racy, Shown::Silent), Shown::Silent);
        assert_eq!((tally.racy, tally.found, tally.wrong), (2, 1, 1));
    }

    #[test]
    fn only_races_that_fail_a_run_are_alarms() {
        let mut tally = Tally::default();
        tally.count(&row(Says::Clean, Shown::Possible), Shown::Possible);
        tally.count(&row(Says::Clean, Shown::Silent), Shown::Silent);
        tally.count(&row(Says::Clean, Shown::Silent), Shown::Race);
        tally.count(&row(Says::Other, Shown::Fault), Shown::Fault);
        assert_eq!((tally.clean, tally.alarms, tally.other, tally.wrong), (3, 1, 1, 1));
    }
}
