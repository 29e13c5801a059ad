//! `streamsan hunt`: all programs of a folder, one table, one report.
//!
//! Owns the arguments and the way from a folder to the report. Finding and running is
//! [`crate::hunt`]; how the reports of the programs become one is [`report::program`].

mod passed_on;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::arguments::Takes;
use super::common::{failed, prepare, print, wrong};
use crate::cli::outputs::StandardOutput;
use crate::hunt::one::Ran;
use crate::hunt::progress::HuntProgress;
use crate::hunt::selection::{self, Shard};
use crate::hunt::target::Target;
use crate::hunt::{Under, find, queue};
use crate::launcher::exact_setup;
use crate::launcher::process;
use report::escape::{Harmless, harmless};
use report::gate;
use report::gate::Gate;
use report::model::Report;
use report::program::{Checked, Program};
use report::reporters::Reporters;
use report::words::counted;
use settings::exit_code::{Ending, Reason};
use settings::{ExactOptions, Options};
use system::file_name::FileName;

/// Find the programs and tests of a folder that use CUDA, and check them all
#[derive(clap::Args, Debug)]
pub(crate) struct HuntArgs {
    /// Stop each program after so many seconds [default: CTest's limit, or 300]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    timeout: Option<u64>,
    /// Run so many programs at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Run only programs with WORD in their name; repeatable
    #[arg(long, value_name = "WORD")]
    only: Vec<String>,
    /// Run one of so many equal parts of the programs: 1/4, 2/4 and so on
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Run only programs that were not clean in the hunt whose --json is FILE
    #[arg(long, value_name = "FILE")]
    rerun_failed: Option<FileName>,
    /// List the programs and run none
    #[arg(long)]
    list: bool,
    /// Keep what each program printed, and its own report, in FOLDER [default: a temporary folder]
    #[arg(short, long, id = "output-folder", value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Where to look: CTest's tests, executables, files for pytest
    #[arg(value_name = "FOLDER", required = true)]
    folder: PathBuf,
    #[command(flatten)]
    _options: Takes<{ options::Command::Hunt as u16 }>,
}

/// Seconds that a program without a limit of its own has.
const LIMIT: u64 = 300;

/// Runs the hunt.
pub(crate) fn main(args: &HuntArgs, mut options: Options) -> Ending {
    // The configuration file may name a trace for 'record'.
    options.output = None;
    let root = match args.folder.canonicalize() {
        Ok(root) if root.is_dir() => root,
        Ok(_) => return wrong(&format!("{} is no folder: 'streamsan run' checks one program", args.folder.display())),
        Err(error) => return wrong(&format!("{}: {error}", args.folder.display())),
    };
    let found = find::find(&root);
    let failed = match args.rerun_failed.as_ref().map(selection::failed).transpose() {
        Ok(failed) => failed,
        Err(error) => return wrong(&error),
    };
    let is_wanted = |target: &Target| {
        (args.only.is_empty() || args.only.iter().any(|word| target.name.contains(word)))
            && failed.as_ref().is_none_or(|names| names.contains(&target.name))
    };
    let all = found.targets.len();
    let mut targets: Vec<Target> = found.targets.into_iter().filter(is_wanted).collect();
    if let Some(shard) = args.shard {
        targets = shard.of(targets);
    }
    if !options.quiet {
        found.notes.iter().for_each(|note| system::say!("NOTE: {note}"));
    }
    if targets.is_empty() || args.list {
        found.unread.iter().for_each(|why| eprintln!("streamsan: NOTE: {}", harmless(why)));
    }
    if targets.is_empty() {
        let chosen = [
            (!args.only.is_empty(), "--only"),
            (failed.is_some(), "--rerun-failed"),
            (args.shard.is_some(), "--shard"),
        ];
        let chosen: Vec<&str> = chosen.into_iter().filter(|(given, _)| *given).map(|(_, option)| option).collect();
        let leave = if chosen.len() == 1 { "leaves" } else { "leave" };
        let folder = args.folder.display();
        return wrong(&match all {
            0 => format!(
                "no programs in {folder}: neither tests of CTest, nor executables or files for pytest that use CUDA"
            ),
            _ => {
                let all = counted(all as u64, "program", "programs");
                format!("nothing to run in {folder}: {} {leave} none of {all}", chosen.join(" and "))
            }
        });
    }
    if args.list {
        return print(&list(&targets));
    }
    hunt(args, options, &targets, found.unread)
}

/// A line for each program: kind, name, command.
fn list(targets: &[Target]) -> String {
    let width = targets.iter().map(|target| target.name.chars().count()).max().unwrap_or_default();
    let line = |target: &Target| {
        let shown = match &target.left_out {
            Some((_, why)) => format!("({why})"),
            None => target.shown(),
        };
        format!("{:<10}  {:<width$}  {}\n", target.kind, harmless(&target.name), harmless(&shown))
    };
    targets.iter().map(line).collect()
}

/// `unread`: what could not be looked into, so that programs in it were not checked.
fn hunt(args: &HuntArgs, mut options: Options, targets: &[Target], unread: Vec<String>) -> Ending {
    let gate = match prepare(&mut options, std::process::id(), StandardOutput::Free, &[]) {
        Ok(gate) => gate,
        Err(ending) => return ending,
    };
    let no_gpu = if options.sim { None } else { super::run::no_gpu() };
    if !options.quiet
        && let Some(why) = no_gpu
    {
        system::say!("NOTE: {why}; 'streamsan hunt --sim' runs the programs on a simulated GPU");
    }
    let tool = match std::env::current_exe() {
        Ok(tool) => tool,
        Err(error) => return failed(&format!("the tool does not find itself: {error}")),
    };
    let output = match folder(args.output.as_deref()) {
        Ok(output) => output,
        Err(error) => return wrong(&error),
    };
    let under = Under {
        tool,
        options: passed_on::words(&options),
        limit: Duration::from_secs(args.timeout.unwrap_or(LIMIT)),
        limit_for_all: args.timeout.is_some(),
        output: output.clone(),
        no_gpu,
        pedantic: options.judging.pedantic,
        fail_fast: options.fail_fast,
        second: second(&options),
    };
    let progress = HuntProgress::new(targets.len(), options.quiet);
    let judge = |report: &Report| {
        let mut own = report.clone();
        gate.judge(&mut own);
        own
    };
    let (ran, signal) = queue::run(targets, &under, args.jobs.into(), &progress, &judge);
    let mut report = merged(ran, &gate, &options);
    let is_unread = !unread.is_empty();
    report.coverage.unchecked.extend(unread);
    let written = Reporters::asked_for(&options).write(&report);
    keep(args, &options, &report, &output);
    let mut ending = gate::ending::of_hunt(&report, options.error_exitcode, options.require_cuda == Some(true));
    if let Some(signal) = signal {
        ending.note(Reason::Signal(signal));
    }
    ending.and(is_unread, Reason::ProgramNotChecked).and(!written, Reason::NotWritten)
}

/// Whether programs with findings in doubt run a second time, and can. Who says what is measured
/// (`--exact`) has decided.
fn second(options: &Options) -> Option<Result<(), String>> {
    // The simulated GPU measures such kernels in the first run.
    if options.exact.once || options.exact.kernels.is_some() || options.measures_by_itself() {
        return None;
    }
    let measured = ExactOptions { confirm: true, ..options.exact.clone() };
    let shim = process::beside("libstreamsan.so").unwrap_or_default();
    Some(exact_setup::shim_options(&measured, shim.parent().unwrap_or(Path::new("")), options.sim, false).map(|_| ()))
}

/// One report of all.
fn merged(ran: Vec<Ran>, gate: &Gate, options: &Options) -> Report {
    let (mut programs, mut reports) = (Vec::new(), Vec::new());
    for Ran { mut program, report, .. } in ran {
        program.disarm();
        reports.push((program.name.clone(), report));
        programs.push(program);
    }
    let mut report = Report::of_programs(reports, options.judging.pedantic);
    gate.judge(&mut report);
    for program in &mut programs {
        let races = report.failures().filter(|finding| finding.programs.contains(&program.name)).count();
        let broken = report.failing_breaches().filter(|breach| breach.programs.contains(&program.name)).count();
        program.findings = (races + broken) as u64;
    }
    report.programs = programs;
    report
}

/// The folder for the programs' output.
fn folder(named: Option<&Path>) -> Result<PathBuf, String> {
    let Some(path) = named else {
        // Programs run in other folders: its name must hold there too.
        let made = system::private_file::folder("streamsan-hunt-").and_then(|folder| folder.canonicalize());
        let place = || std::env::temp_dir().display().to_string();
        return made.map_err(|error| {
            format!("no folder can be made in {}: {error}; --output names one, TMPDIR another place", place())
        });
    };
    let made = std::fs::create_dir_all(path).and_then(|()| path.canonicalize());
    made.map_err(|error| format!("{} can not be written: {error}", path.display()))
}

/// Says where the output is, or removes it when nobody has asked for it and there is nothing to
/// see.
fn keep(args: &HuntArgs, options: &Options, report: &Report, output: &Path) {
    let is_quiet = |p: &Program| matches!(p.outcome(), Checked::Clean | Checked::NoCuda | Checked::Skipped);
    let is_plain = |p: &Program| is_quiet(p) && p.second.is_none();
    let plain = report.programs.iter().all(is_plain);
    if plain && args.output.is_none() {
        let _ = std::fs::remove_dir_all(output);
    } else if !(plain && options.quiet) {
        system::say!("NOTE: what each program printed, and its own report, is in {}", output.display());
    }
}
