//! `streamsan run`, the command without a word, and what it shares with `record`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::arguments::Given;
use super::common::{Outside, analysis_options, early, failed, finish, prepare, quoted_name, recorder, report, wrong};
use crate::cli::outputs::StandardOutput;
use crate::hunt::handed::Handed;
use crate::launcher::node::{Happening, Leader, RankEnd, Ranks, Seat};
use crate::launcher::process::{self, Finished, LaunchError, Plan};
use crate::launcher::server::Server;
use crate::launcher::simulator::Sim;
use crate::launcher::{descendants, executable};
use analysis::ipc::Across;
use ingest::live::Sink;
use report::format::closing;
use report::words::counted;
use settings::Options;
use settings::exit_code;

/// Check a program while it runs (the word may be left out)
#[derive(clap::Args, Debug)]
#[command(override_usage = "streamsan [run] [OPTIONS] [--] PROGRAM [ARGS]...")]
pub struct RunArgs {
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
    pub(super) options: Given<{ options::Command::Run as u16 }>,
}

impl RunArgs {
    /// This program.
    pub fn of(program: Vec<OsString>) -> Self {
        Self { program, interpreter: None, outcome: None, time_limit: None, options: Given::default() }
    }
}

/// Runs the program and reports.
pub fn main(args: RunArgs, words: &[OsString], environment: &[u8], options: Options) -> i32 {
    if args.program.is_empty() {
        return wrong("streamsan needs a program to run; try 'streamsan --help'");
    }
    note_misplaced(&args.program, words, &options);
    let program: Vec<OsString> = args.interpreter.into_iter().chain(args.program).collect();
    let limit = args.time_limit.map(Duration::from_secs);
    start(&program, environment, options, &Purpose { analyse: true, limit, outcome: args.outcome })
}

/// Says, once, that an option behind the program goes to the program. Who wrote `--` knows.
pub fn note_misplaced(program: &[OsString], words: &[OsString], options: &Options) {
    let split = words.len().checked_sub(program.len() + 1).and_then(|at| words.get(at));
    if options.quiet || split.is_some_and(|word| word == "--") {
        return;
    }
    if let Some(option) = program[1..].iter().find_map(|word| ours(word)) {
        let program = program[0].to_string_lossy();
        eprintln!(
            "streamsan: NOTE: '{option}' stands behind the program and goes to it; options of streamsan come before \
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
pub struct Purpose {
    /// Its ops are analysed; otherwise they are recorded only.
    pub analyse: bool,
    /// When it is stopped.
    pub limit: Option<Duration>,
    /// Where a hunt looks for what was found.
    pub outcome: Option<PathBuf>,
}

/// Runs a program, checked or recorded.
pub fn start(program: &[OsString], environment: &[u8], mut options: Options, purpose: &Purpose) -> i32 {
    let analyse = purpose.analyse;
    let gate = match prepare(&mut options, std::process::id(), StandardOutput::Program, &[]) {
        Ok(gate) => gate,
        Err(code) => return code,
    };
    let options = &options;
    let exact = match exact(options) {
        Ok(words) => words,
        Err(error) => return wrong(&error),
    };
    // A trace has one rank; ranks that are checked make one report for their machine.
    let alone = !analyse || purpose.outcome.is_some() || purpose.limit.is_some();
    let seat = if alone { Ok(Seat::Alone) } else { Seat::take() };
    let seat = seat.unwrap_or_else(|why| {
        eprintln!("streamsan: NOTE: {why}; this rank reports for itself");
        Seat::Alone
    });
    let leads = !matches!(seat, Seat::Member(_));
    let recorder = match leads.then(|| recorder(options)).transpose() {
        Ok(recorder) => recorder.flatten(),
        Err(code) => return code,
    };
    let across = Across::new(true);
    let compared = (analyse && !options.host_threads).then(|| across.clone());
    let sink = Sink {
        analysis: analyse.then(|| analysis_options(options)),
        recorder: recorder.clone(),
        across: compared,
        early: analyse.then(|| early(options, &gate)),
    };
    let mut server = match Server::open(sink) {
        Ok(server) => server,
        Err(error) => return failed(&format!("no socket for this run: {error}")),
    };
    let sim = match options
        .sim
        .then(|| Sim::prepare(server.folder(), &options.sim_options, options.cache.as_ref()))
        .transpose()
    {
        Ok(sim) => sim,
        Err(error) => return failed(&error.to_string()),
    };
    let sim_folder = sim.as_ref().map(|sim| sim.folder.as_path());
    let soname = match options.soname.then(|| soname(server.folder(), sim_folder)).transpose() {
        Ok(soname) => soname,
        Err(error) => return failed(&error),
    };
    let socket = match &seat {
        Seat::Member(member) => OsString::from(&member.socket),
        Seat::Alone | Seat::Leader(_) => server.path(),
    };
    let plan = Plan {
        program,
        socket,
        sim: sim.as_ref(),
        soname,
        host_threads: options.host_threads,
        torch_async: options.torch_async,
        shim_options: options.for_shim(environment, exact),
        limit: purpose.limit,
    };
    let of_rank = |finished: &Result<Finished, LaunchError>| {
        let mut refused = sim.as_ref().map(Sim::complaints).unwrap_or_default();
        let code = match finished {
            Ok(finished) => process::ending(finished.status).unwrap_or_else(|signal| 128 + signal),
            Err(error) => error.exit_code(),
        };
        if let (Some(sim), Some(file), exit_code::NOT_FOUND) = (&sim, executable::find(&program[0]), code) {
            refused.extend(sim.missing(&file));
        }
        RankEnd { code, refused }
    };
    if let Seat::Member(member) = seat {
        let finished = process::run(&plan);
        let end = of_rank(&finished);
        let refused = !end.refused.is_empty();
        let Some(code) = member.ended(&end) else {
            return failed("the first rank of this machine is gone, and with it the report");
        };
        return match finished {
            Ok(Finished { status, .. }) => ending(status, refused, |_| code),
            Err(error) => {
                eprintln!("streamsan: {error}{}", hint(&error, &program[0]));
                error.exit_code()
            }
        };
    }
    let (finished, mut ranks) = match &seat {
        Seat::Leader(leader) => match led(leader, &plan, &server.path(), of_rank) {
            Ok(ended) => ended,
            Err(error) => return failed(&format!("the other ranks of this machine cannot be heard: {error}")),
        },
        Seat::Alone | Seat::Member(_) => (process::run(&plan), Ranks::default()),
    };
    // From here on signals are ours: there is no program to pass them on to.
    system::interrupt::watch();
    let mut outcomes = server.finish();
    let recorded = finish(recorder.as_ref());
    across.finish(&mut outcomes);
    if purpose.limit.is_some() {
        descendants::sweep(&[]);
    }
    let mut unchecked = Vec::new();
    let mut closed = None;
    if analyse
        && outcomes.is_empty()
        && finished.is_ok()
        && let Some(file) = executable::find(&program[0])
        && let Some(why) = executable::closed(&file)
    {
        unchecked.push(why.to_string());
        eprintln!("streamsan: {} was not checked: {why}", program[0].to_string_lossy());
        closed = executable::has_device_code(&file).then(|| why.to_string());
    }
    let unobserved = server.unchecked();
    let mut not_simulated = sim.as_ref().map(Sim::complaints).unwrap_or_default();
    not_simulated.extend(closed.filter(|_| options.sim));
    let unstarted = finished.as_ref().is_ok_and(|finished| finished.status.code() == Some(exit_code::NOT_FOUND));
    if let (Some(sim), Some(file), true) = (&sim, executable::find(&program[0]), unstarted) {
        not_simulated.extend(sim.missing(&file));
    }
    for why in ranks.refused() {
        if !not_simulated.contains(why) {
            not_simulated.push(why.clone());
        }
    }
    if ranks.missing > 0 {
        let missing = counted(ranks.missing.into(), "rank", "ranks");
        eprintln!("streamsan: NOTE: {missing} of this machine did not come, or ended without a word");
    }
    let refused = !not_simulated.is_empty();
    drop(server);
    let Finished { status, timed_out } = match finished {
        Ok(finished) => finished,
        Err(error) => {
            ranks.dismiss(|code| code);
            eprintln!("streamsan: {error}{}", hint(&error, &program[0]));
            return error.exit_code();
        }
    };
    if !analyse {
        if !options.quiet && recorded {
            let note = options.output.as_ref().map_or_else(String::new, quoted_name);
            eprintln!("streamsan: recorded; check it with: streamsan check {note}");
        }
        for why in &not_simulated {
            eprintln!("streamsan: ERROR: not run on the simulated GPU: {why}");
        }
        for why in &unobserved {
            eprintln!("streamsan: ERROR: not recorded: {why}");
        }
        return ending(status, refused, |code| {
            let failed = refused || (code == exit_code::CLEAN && (!recorded || !unobserved.is_empty()));
            if failed { exit_code::INTERNAL } else { code }
        });
    }
    if let Err(signal) = process::ending(status)
        && !options.quiet
    {
        eprintln!("streamsan: NOTE: the program died of signal {signal}{}", named(signal));
    }
    let handed_on = purpose.outcome.is_some().then(|| outcomes.clone());
    let (report, printed) = report(outcomes, &gate, options, Outside { not_simulated, unchecked: unobserved });
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
        eprintln!("streamsan: NOTE: {why}; {how} on a simulated GPU");
    }
    let judged = |code| {
        let code = report::gate::ending::exit_code(&report, code, options.error_exitcode, options.require_cuda);
        if code == exit_code::CLEAN && (!printed || !recorded) { exit_code::INTERNAL } else { code }
    };
    ranks.dismiss(judged);
    if let (Some(file), Some(outcomes)) = (&purpose.outcome, handed_on) {
        let coverage = &report.coverage;
        // The hunt names each reason once.
        unchecked.extend(coverage.not_simulated.iter().cloned().chain(closing::unrecorded(coverage)));
        let ended = process::ending(status);
        let code = ended.map_or(exit_code::CLEAN, judged);
        let handed = Handed { outcomes, ended, timed_out, code, unchecked };
        if let Err(error) = handed.write(file) {
            return failed(&error);
        }
    }
    ending(status, refused, judged)
}

/// Runs the program of the first rank, while the other ranks run theirs: how it ended, and theirs.
fn led(
    leader: &Leader,
    plan: &Plan<'_>,
    socket: &OsStr,
    of_rank: impl Fn(&Result<Finished, LaunchError>) -> RankEnd + Send,
) -> std::io::Result<(Result<Finished, LaunchError>, Ranks)> {
    let (tell, happenings) = leader.open(&socket.to_string_lossy())?;
    std::thread::scope(|scope| {
        let own = scope.spawn(move || {
            let finished = process::run(plan);
            // The listener is there until this has come.
            let _ = tell.send(Happening::Own(of_rank(&finished)));
            finished
        });
        let ranks = leader.wait(&happenings);
        own.join().map(|finished| (finished, ranks)).map_err(|_| std::io::Error::other("a thread has died"))
    })
}

/// Why a program can not have found a GPU here, if that is so.
pub fn no_gpu() -> Option<&'static str> {
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

/// What the run ends with. A program that a refusal of ours may have killed does not decide it.
fn ending(status: std::process::ExitStatus, refused: bool, code: impl FnOnce(i32) -> i32) -> i32 {
    match process::ending(status) {
        Ok(program) => code(program),
        Err(signal) if refused => code(128 + signal),
        Err(signal) => process::die_of(signal),
    }
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
