//! `streamsan run`, the command without a word, and what it shares with `record`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::arguments::Takes;
use super::common::{
    Outside, analysis_options, early, failed, finish, note_required, prepare, quoted_name, recorder, report, wrong,
};
use crate::cli::outputs::StandardOutput;
use crate::hunt::handed::Handed;
use crate::launcher::node::{Happening, Leader, RankEnd, RankMember, Ranks, Seat};
use crate::launcher::process::{self, Finished, LaunchError, Plan};
use crate::launcher::server::Server;
use crate::launcher::simulator::Sim;
use crate::launcher::{descendants, executable};
use analysis::ipc::Across;
use ingest::live::{Fresh, Sink};
use ingest::progress::Progress;
use report::format::closing;
use report::gate::{Gate, ending};
use report::model::{Outcome, Report};
use report::words::counted;
use settings::Options;
use settings::exit_code::{self, Ending, Reason};
use system::file_name::FileName;
use system::forward;

/// Check a program while it runs (the word may be left out)
#[derive(clap::Args, Debug)]
#[command(override_usage = "streamsan [run] [OPTIONS] [--] PROGRAM [ARGS]...")]
pub(crate) struct RunArgs {
    /// What to run, with its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    program: Vec<OsString>,
    /// What runs PROGRAM, which is a script (for 'python -m streamsan')
    #[arg(long, hide = true, value_name = "FILE")]
    interpreter: Option<OsString>,
    /// Hand what was found to a hunt, in FILE
    #[arg(long, hide = true, value_name = "FILE", requires = "time_limit")]
    outcome: Option<PathBuf>,
    /// Stop PROGRAM, and all that it has started, after so many seconds
    #[arg(long, hide = true, value_name = "SECONDS")]
    time_limit: Option<u64>,
    #[command(flatten)]
    _options: Takes<{ options::Command::Run as u16 }>,
}

impl RunArgs {
    /// This program.
    pub(crate) fn of(program: Vec<OsString>) -> Self {
        Self { program, interpreter: None, outcome: None, time_limit: None, _options: Takes }
    }
}

/// Runs the program and reports.
pub(crate) fn main(args: RunArgs, words: &[OsString], environment: &[u8], options: Options) -> Ending {
    if args.program.is_empty() {
        return wrong("streamsan needs a program to run; try 'streamsan --help'");
    }
    note_misplaced(&args.program, words, &options);
    let program: Vec<OsString> = args.interpreter.into_iter().chain(args.program).collect();
    let limit = args.time_limit.map(Duration::from_secs);
    start(&program, environment, options, &Purpose { analyse: true, limit, outcome: args.outcome })
}

/// Says, once, that an option behind the program goes to the program. Who wrote `--` knows.
pub(crate) fn note_misplaced(program: &[OsString], words: &[OsString], options: &Options) {
    let split = words.len().checked_sub(program.len() + 1).and_then(|at| words.get(at));
    if options.quiet || split.is_some_and(|word| word == "--") {
        return;
    }
    if let Some(option) = program[1..].iter().find_map(|word| ours(word)) {
        let program = program[0].to_string_lossy();
        system::say!(
            "NOTE: '{option}' stands behind the program and goes to it; options of streamsan come before \
             (write 'streamsan -- {program} ...' to be spared this note)"
        );
    }
}

/// The option of ours that a word looks like.
fn ours(word: &OsStr) -> Option<String> {
    let word = word.as_bytes().strip_prefix(b"--")?;
    let name = word.split(|b| *b == b'=').next()?;
    let row =
        options::named(name).or_else(|| options::named(name.strip_prefix(b"no-")?).filter(|row| row.is_switch()))?;
    row.commands.has(options::Command::Run).then(|| format!("--{}", String::from_utf8_lossy(name)))
}

/// What a program is run for.
#[derive(Default)]
pub(crate) struct Purpose {
    /// Its ops are analysed; otherwise they are recorded only.
    pub(crate) analyse: bool,
    /// When it is stopped.
    pub(crate) limit: Option<Duration>,
    /// Where a hunt looks for what was found.
    pub(crate) outcome: Option<PathBuf>,
}

/// Runs a program, checked or recorded.
pub(crate) fn start(program: &[OsString], environment: &[u8], options: Options, purpose: &Purpose) -> Ending {
    run(program, environment, options, purpose).unwrap_or_else(|ending| ending)
}

/// Prepares the run, runs the program and reports. `Err`: the run could not be prepared, which has
/// been said.
fn run(program: &[OsString], environment: &[u8], mut options: Options, purpose: &Purpose) -> Result<Ending, Ending> {
    let analyse = purpose.analyse;
    let gate = prepare(&mut options, std::process::id(), StandardOutput::Program, &files_of(program))?;
    let options = &options;
    let exact = exact(options).map_err(|error| wrong(&error))?;
    // A trace has one rank; ranks that are checked make one report for their machine.
    let alone = !analyse || purpose.outcome.is_some() || purpose.limit.is_some();
    let seat = if alone { Ok(Seat::Alone) } else { Seat::take() };
    let seat = seat.unwrap_or_else(|why| {
        system::say!("NOTE: {why}; this rank reports for itself");
        Seat::Alone
    });
    let leads = !matches!(seat, Seat::Member(_));
    let recorder = leads.then(|| recorder(options)).transpose()?.flatten();
    let across = Across::new(true);
    let compared = (analyse && !options.judging.host_threads).then(|| across.clone());
    let stopped = Arc::new(AtomicBool::new(false));
    let fresh = (analyse && options.fail_fast).then(|| stop_at_failure(&gate, options, &stopped));
    let sink = Sink {
        fresh,
        analysis: analyse.then(|| analysis_options(options)),
        recorder: recorder.clone(),
        across: compared,
        early: analyse.then(|| early(options, &gate)),
        gives_way: !options.sim,
    };
    let mut server = Server::open(&sink).map_err(|error| {
        failed(&format!(
            "no folder for this run in {}: {error} (TMPDIR names another one)",
            std::env::temp_dir().display()
        ))
    })?;
    let prepared = options.sim.then(|| Sim::prepare(server.folder(), &options.sim_options));
    let sim = prepared.transpose().map_err(|error| failed(&error.to_string()))?;
    let sim_folder = sim.as_ref().map(|sim| sim.folder.as_path());
    let soname = options.soname.then(|| soname(server.folder(), sim_folder));
    let soname = soname.transpose().map_err(|error| failed(&error))?;
    let (socket, key) = match &seat {
        Seat::Member(member) => (OsString::from(&member.socket), OsString::from(&member.key)),
        Seat::Alone | Seat::Leader(_) => (server.path(), server.key()),
    };
    let plan = Plan {
        program,
        socket,
        key,
        folder: server.folder().to_path_buf(),
        sim: sim.as_ref(),
        soname,
        host_threads: options.judging.host_threads,
        torch_async: options.torch_async,
        shim_options: options.for_shim(environment, exact),
        limit: purpose.limit,
    };
    if let Seat::Member(member) = seat {
        return Ok(as_member(member, &plan));
    }
    let (finished, mut ranks) = match &seat {
        Seat::Leader(leader) => led(leader, &plan)
            .map_err(|error| failed(&format!("the other ranks of this machine cannot be heard: {error}")))?,
        Seat::Alone | Seat::Member(_) => (process::run(&plan), Ranks::default()),
    };
    let stopped = stopped.load(Ordering::Acquire);
    // From here on signals are ours: there is no program to pass them on to.
    system::interrupt::watch();
    let mut outcomes = server.finish(Progress::of_rest().unless(options.quiet));
    if let (Some(sim), Some(first)) = (plan.sim, outcomes.first_mut()) {
        first.coverage.simulated_as = sim.ran();
    }
    let recorded = finish(recorder.as_ref());
    across.finish(&mut outcomes);
    if purpose.limit.is_some() {
        descendants::sweep(&[]);
    }
    server.name_descendants();
    let closed = if analyse && outcomes.is_empty() && finished.is_ok() { closed(&plan) } else { None };
    let mut not_simulated = not_simulated(&plan, &finished, &ranks, closed.as_ref());
    for why in server.refused() {
        if !not_simulated.contains(&why) {
            not_simulated.push(why);
        }
    }
    let connected = server.connections() > 0;
    let unobserved = server.unchecked();
    let left = Left { outcomes, recorded, not_simulated, unobserved, closed, connected, stopped };
    if ranks.missing > 0 {
        let missing = counted(ranks.missing.into(), "rank", "ranks");
        system::say!("NOTE: {missing} of this machine did not come, or ended without a word");
    }
    drop(server);
    match finished {
        Ok(finished) if analyse => Ok(checked(left, &finished, ranks, (&gate, options), purpose)),
        Ok(finished) => Ok(after_recording(&left, &finished, options)),
        Err(error) => {
            ranks.dismiss(|code| code);
            Ok(not_started(&error, program))
        }
    }
}

/// The program's file, and those that its arguments name: a script, its input.
fn files_of(program: &[OsString]) -> Vec<FileName> {
    let file = executable::find(&program[0]).map(PathBuf::into_os_string);
    let named = program[1..].iter().filter(|word| Path::new(word).is_file()).cloned();
    file.into_iter().chain(named).map(|word| FileName::of_bytes(word.as_bytes())).collect()
}

/// What is left of a run when its program has ended.
struct Left {
    outcomes: Vec<Outcome>,
    /// Whether the trace, if one was asked for, could be written.
    recorded: bool,
    /// Why the program, or part of it, did not run on the simulated GPU.
    not_simulated: Vec<String>,
    /// Processes that could not be observed, and why.
    unobserved: Vec<String>,
    /// Why the program could not be checked at all.
    closed: Option<Closed>,
    /// Whether any process used CUDA.
    connected: bool,
    /// Whether it was stopped at a finding: then how it ended says nothing.
    stopped: bool,
}

/// With `--fail-fast`: stops the program at the first finding that fails the run.
fn stop_at_failure(gate: &Gate, options: &Options, stopped: &Arc<AtomicBool>) -> Arc<Fresh> {
    let (gate, pedantic, stopped) = (gate.clone(), options.judging.pedantic, Arc::clone(stopped));
    Arc::new(move |findings, breaches| {
        let mut report = Report::merge(vec![Outcome { findings, breaches, ..Outcome::default() }], pedantic);
        gate.judge(&mut report);
        if report.failing() == 0 || stopped.swap(true, Ordering::AcqRel) {
            return;
        }
        system::say!("NOTE: stopped at a finding (--fail-fast)");
        forward::send(libc::SIGTERM);
        std::thread::spawn(|| {
            std::thread::sleep(descendants::GRACE);
            forward::send(libc::SIGKILL);
        });
    })
}

/// A program that nothing can be preloaded into.
struct Closed {
    why: String,
    /// Whether it has code for a GPU.
    has_device_code: bool,
}

/// Why the program, none of whose processes was observed, is closed to the shim, if it is; says so.
fn closed(plan: &Plan<'_>) -> Option<Closed> {
    let file = executable::find(&plan.program[0])?;
    let why = executable::closed(&file)?.to_string();
    system::say!("{} was not checked: {why}", plan.program[0].to_string_lossy());
    Some(Closed { why, has_device_code: executable::has_device_code(&file) })
}

/// Why the program of this run, or of another rank, did not run on the simulated GPU; each reason
/// once.
fn not_simulated(
    plan: &Plan<'_>,
    finished: &Result<Finished, LaunchError>,
    ranks: &Ranks,
    closed: Option<&Closed>,
) -> Vec<String> {
    let mut reasons = plan.sim.map(Sim::complaints).unwrap_or_default();
    let closed = closed.filter(|closed| closed.has_device_code && plan.sim.is_some());
    reasons.extend(closed.map(|closed| closed.why.clone()));
    if finished.as_ref().is_ok_and(|finished| finished.status.code() == Some(exit_code::NOT_FOUND)) {
        reasons.extend(missing(plan));
    }
    for why in ranks.refused() {
        if !reasons.contains(why) {
            reasons.push(why.clone());
        }
    }
    reasons
}

/// Libraries that the program, which did not start, misses on the simulated GPU.
fn missing(plan: &Plan<'_>) -> Vec<String> {
    let (Some(sim), Some(file)) = (plan.sim, executable::find(&plan.program[0])) else { return Vec::new() };
    sim.missing(&file)
}

/// How the program of a rank ended.
fn rank_end(plan: &Plan<'_>, finished: &Result<Finished, LaunchError>) -> RankEnd {
    let mut refused = plan.sim.map(Sim::complaints).unwrap_or_default();
    let code = match finished {
        Ok(finished) => of_program(finished).code(),
        Err(error) => error.ending().code(),
    };
    if code == exit_code::NOT_FOUND {
        refused.extend(missing(plan));
    }
    RankEnd { code, refused }
}

/// Runs the program of a rank that another rank of this machine reports for.
fn as_member(member: RankMember, plan: &Plan<'_>) -> Ending {
    let finished = process::run(plan);
    let end = rank_end(plan, &finished);
    let refused = !end.refused.is_empty();
    let Some(code) = member.ended(&end) else {
        return failed("the first rank of this machine is gone, and with it the report");
    };
    match finished {
        Ok(finished) => match process::ending(finished.status) {
            Err(signal) if !refused => Reason::Signal(signal).into(),
            _ => Reason::Leader(code).into(),
        },
        Err(error) => not_started(&error, plan.program),
    }
}

/// Says why the program could not be started.
fn not_started(error: &LaunchError, program: &[OsString]) -> Ending {
    system::say!("{error}{}", hint(error, &program[0]));
    error.ending()
}

/// How the program ended.
fn of_program(finished: &Finished) -> Ending {
    match process::ending(finished.status) {
        Ok(code) => Ending::of_program(code),
        Err(signal) => Reason::Signal(signal).into(),
    }
}

/// Says what was recorded.
fn after_recording(left: &Left, finished: &Finished, options: &Options) -> Ending {
    if !options.quiet && !left.connected {
        let why = no_gpu().filter(|_| !options.sim);
        let why = why.map_or_else(String::new, |why| format!(": {why}; 'record --sim' records on a simulated GPU"));
        system::say!("NOTE: no CUDA work was seen, so nothing was recorded{why}");
    }
    if !options.quiet && left.recorded && left.connected {
        let note = options.output.as_ref().map_or_else(String::new, quoted_name);
        system::say!("recorded; check it with: streamsan check {note}");
    }
    for why in &left.not_simulated {
        system::say!("ERROR: not run on the simulated GPU: {why}");
    }
    for why in &left.unobserved {
        system::say!("ERROR: not recorded: {why}");
    }
    of_program(finished)
        .and(!left.not_simulated.is_empty(), Reason::NotSimulated)
        .and(!left.recorded || !left.unobserved.is_empty(), Reason::NotWritten)
}

/// Reports what was found, to the user, to the other ranks and to a hunt.
fn checked(
    left: Left,
    finished: &Finished,
    mut ranks: Ranks,
    (gate, options): (&Gate, &Options),
    purpose: &Purpose,
) -> Ending {
    let ended = process::ending(finished.status);
    if let Err(signal) = ended
        && !options.quiet
        && !left.stopped
    {
        system::say!("NOTE: the program died of signal {signal}{}", named(signal));
    }
    let Left { outcomes, recorded, not_simulated, unobserved, closed, stopped, .. } = left;
    let handed_on = purpose.outcome.is_some().then(|| outcomes.clone());
    let (report, printed) = report(outcomes, gate, options, Outside { not_simulated, unchecked: unobserved });
    if !report.coverage.any_work()
        && !options.sim
        && !options.shim.off
        && !options.quiet
        && let Some(why) = no_gpu()
    {
        // Under pytest the plugin passes options on.
        let how = match std::env::var_os("STREAMSAN_PYTEST_INNER") {
            Some(_) => "'pytest --streamsan --streamsan-args=--sim' runs the tests",
            None => "'streamsan --sim' runs the program",
        };
        system::say!("NOTE: {why}; {how} on a simulated GPU");
    }
    // A hunt asks for files of its own, and judges by itself.
    let required = if purpose.outcome.is_some() { None } else { options.cuda_required() };
    let of_report = ending::of_run(&report, options.error_exitcode, required.is_some())
        .and(!printed || !recorded, Reason::NotWritten);
    let judged = |code| Ending::of_program(code).joined(of_report.clone()).code();
    ranks.dismiss(judged);
    if let (Some(file), Some(outcomes)) = (&purpose.outcome, handed_on) {
        let coverage = &report.coverage;
        // The hunt names each reason once.
        let mut unchecked: Vec<String> = closed.into_iter().map(|closed| closed.why).collect();
        unchecked.extend(coverage.not_simulated.iter().cloned().chain(closing::unrecorded(coverage)));
        let code = ended.map_or(exit_code::CLEAN, judged);
        let handed = Handed { outcomes, ended, timed_out: finished.timed_out, code, unchecked };
        if let Err(error) = handed.write(file) {
            return failed(&error);
        }
    }
    let ending = if stopped { of_report } else { of_program(finished).joined(of_report) };
    note_required(required, &ending);
    ending
}

/// Runs the program of the first rank, while the other ranks run theirs: how it ended, and theirs.
fn led(leader: &Leader, plan: &Plan<'_>) -> std::io::Result<(Result<Finished, LaunchError>, Ranks)> {
    let (tell, happenings) = leader.open(&plan.socket.to_string_lossy(), &plan.key.to_string_lossy())?;
    std::thread::scope(|scope| {
        let own = scope.spawn(move || {
            let finished = process::run(plan);
            // The listener is there until this has come.
            let _ = tell.send(Happening::Own(rank_end(plan, &finished)));
            finished
        });
        let ranks = leader.wait(&happenings);
        own.join().map(|finished| (finished, ranks)).map_err(|_| std::io::Error::other("a thread has died"))
    })
}

/// Why a program can not have found a GPU here, if that is so.
pub(crate) fn no_gpu() -> Option<&'static str> {
    if crate::launcher::soname::driver().is_err() {
        return Some("there is no driver here (libcuda.so.1 was not found)");
    }
    // Discrete GPUs, Tegra, Windows' subsystem for Linux.
    const DEVICES: [&str; 4] = ["/dev/nvidiactl", "/dev/nvgpu", "/dev/nvhost-ctrl-gpu", "/dev/dxg"];
    let any = DEVICES.iter().any(|path| Path::new(path).exists());
    (!any).then_some("there is a driver here, but no GPU")
}

/// The shim under the driver's name, and the driver that it is to open.
fn soname(folder: &Path, sim: Option<&Path>) -> Result<(PathBuf, OsString), String> {
    let shim = process::beside("libstreamsan.so").map_err(|error| error.to_string())?;
    let driver = match sim {
        Some(sim) => sim.join("libcuda.so.1").into_os_string(),
        None => crate::launcher::soname::driver()?,
    };
    Ok((crate::launcher::soname::copy(&shim, folder)?, driver))
}

fn hint(error: &LaunchError, program: &OsStr) -> String {
    let is_missing =
        matches!(error, LaunchError::Program { error, .. } if error.kind() == std::io::ErrorKind::NotFound);
    let meant = program.to_str().filter(|_| is_missing).and_then(super::arguments::commands::meant);
    meant.map_or_else(String::new, |word| format!(" (did you mean 'streamsan {word}'?)"))
}

/// The name of a signal that programs die of, in brackets.
fn named(signal: i32) -> &'static str {
    match signal {
        libc::SIGSEGV => " (SIGSEGV: it touched memory that is not there)",
        libc::SIGABRT => " (SIGABRT: it aborted itself)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGFPE => " (SIGFPE)",
        libc::SIGILL => " (SIGILL)",
        libc::SIGKILL => " (SIGKILL: killed from outside, perhaps for lack of memory)",
        libc::SIGTERM => " (SIGTERM)",
        libc::SIGINT => " (SIGINT)",
        libc::SIGPIPE => " (SIGPIPE)",
        _ => "",
    }
}

/// What the shim needs for `--exact`.
fn exact(options: &Options) -> Result<Vec<Vec<u8>>, String> {
    let shim = process::beside("libstreamsan.so").unwrap_or_default();
    let beside = shim.parent().unwrap_or(Path::new(""));
    crate::launcher::exact_setup::shim_options(&options.exact, beside, options.sim, options.measures_by_itself())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_ours_are_recognised_behind_the_program() {
        let is = |word: &str| ours(OsStr::new(word));
        assert_eq!(is("--json=x").as_deref(), Some("--json"));
        assert_eq!(is("--no-stacks").as_deref(), Some("--no-stacks"));
        assert_eq!(
            (is("--epochs"), is("-o"), is("json"), is("--no-json"), is("--snapshot")),
            (None, None, None, None, None)
        );
    }
}
