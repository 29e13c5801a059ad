//! One program of a hunt: started under `streamsan run`, waited for, judged.
//!
//! Owns the process and its files: the program's output, its own report as text and as JSON. The
//! program gets no input and no terminal; its process group, and whatever else it leaves behind,
//! ends with it. The second run ([`super::second`]) works in the same way. `streamsan run` keeps
//! the time limit, because it has the findings up to then. This is a backstop in case the tool
//! itself hangs.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use super::Under;
use super::handed::Handed;
use super::second::{self, InDoubt, SecondReport};
use super::target::Target;
use crate::launcher::{descendants, inherited};
use report::model::Report;
use report::program::{Checked, Program, SecondRun};
use settings::exit_code;

/// The processor time that the analysis may take when the program's time is over. What else the
/// machine does meanwhile does not count.
const ANALYSIS: Duration = Duration::from_secs(120);
/// It is waited for no longer than this, whatever it takes.
const LONGEST_ANALYSIS: Duration = Duration::from_secs(1200);
const PAUSE: Duration = Duration::from_millis(20);

/// A program that has run, and its own report, which is not judged yet.
pub(crate) struct Ran {
    /// How it came out, as far as findings do not count.
    pub(crate) program: Program,
    /// Its report.
    pub(crate) report: Report,
    /// Exit code or signal, if it came to an end in time.
    ended: Option<Result<i32, i32>>,
}

/// What the threads of a hunt share.
#[derive(Default)]
pub(crate) struct HuntState {
    /// The tools that run.
    pub(crate) running: Mutex<Vec<u32>>,
    /// The signal that ends the hunt; 0: none.
    pub(crate) stop: AtomicI32,
}

impl HuntState {
    fn list(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The state of a program before it has run.
pub(crate) fn program(target: &Target, ended: Checked, why: &str) -> Program {
    Program {
        name: target.name.clone(),
        kind: target.kind,
        command: target.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        folder: target.folder.to_string_lossy().into_owned(),
        ended,
        why: why.to_owned(),
        launches: 0,
        findings: 0,
        took: Duration::ZERO,
        output: String::new(),
        second: None,
    }
}

/// A program that is not run.
pub(crate) fn not_run(target: &Target, outcome: Checked, why: &str) -> Ran {
    Ran { program: program(target, outcome, why), report: Report::merge(Vec::new(), false), ended: None }
}

/// Runs the program; `nth`: its number, from 1.
pub(crate) fn run(target: &Target, nth: usize, under: &Under, shared: &HuntState, tick: &dyn Fn()) -> Ran {
    if let Some((outcome, why)) = &target.left_out {
        return not_run(target, *outcome, why);
    }
    let folder = under.output.join(format!("{nth:03}-{}", file_name(&target.name)));
    once(target, &folder, under, &under.options, shared, tick)
}

/// Where the second run keeps what it prints, in the program's folder.
const SECOND: &str = "second";

/// Runs the program once more, to measure its findings in doubt, and settles them. What that has
/// shown stands in the program and in the report.
pub(crate) fn again(
    target: &Target,
    ran: &mut Ran,
    doubt: &InDoubt,
    under: &Under,
    shared: &HuntState,
    tick: &dyn Fn(),
) {
    let told = match &under.second {
        None => return,
        _ if doubt.findings == 0 => return,
        Some(Err(why)) => SecondRun { stay: doubt.findings, why: why.clone(), ..SecondRun::default() },
        Some(Ok(())) => {
            let folder = Path::new(&ran.program.output).join(SECOND);
            let words = second::words(&under.options, doubt);
            let Ran { program, report, ended } = once(target, &folder, under, &words, shared, tick);
            let why = otherwise(&ran.program, ran.ended, &program, ended);
            let told = second::settle(&mut ran.report, doubt, SecondReport { report, why });
            SecondRun { took: program.took, output: program.output, ..told }
        }
    };
    ran.program.second = Some(told);
}

/// Why the second run proves nothing by what it did not see; empty when it ended as the first one.
fn otherwise(
    first: &Program,
    first_end: Option<Result<i32, i32>>,
    second: &Program,
    second_end: Option<Result<i32, i32>>,
) -> String {
    match second.ended {
        Checked::TimedOut => format!("timed out: {}", second.why),
        Checked::NotChecked if second_end.is_none() => format!("not checked: {}", second.why),
        same if same == first.ended && first_end == second_end => String::new(),
        other if second.why.is_empty() => format!("it ended otherwise: {}", other.name()),
        other => format!("it ended otherwise: {}: {}", other.name(), second.why),
    }
}

/// Runs the program under the tool with these options.
fn once(
    target: &Target,
    folder: &Path,
    under: &Under,
    options: &[OsString],
    shared: &HuntState,
    tick: &dyn Fn(),
) -> Ran {
    let limit = target.limit.filter(|_| !under.limit_for_all).unwrap_or(under.limit);
    let began = Instant::now();
    let options = [options, &target.options].concat();
    let started = start(target, folder, (&under.tool, &options), limit, shared);
    let ended = started.map(|child| wait(child, limit, shared, tick));
    let handed = Handed::read(&folder.join(HANDED));
    // What it holds stands in the report beside it.
    let _ = std::fs::remove_file(folder.join(HANDED));
    let (outcomes, rest) = match handed {
        Some(Handed { outcomes, ended, timed_out, code, unchecked }) => {
            (outcomes, Some(Rest { ended, timed_out, code, unchecked }))
        }
        None => (Vec::new(), None),
    };
    let report = Report::merge(outcomes, under.pedantic);
    let (outcome, why) = match (ended, &rest) {
        (Err(why), _) => (Checked::NotChecked, why),
        (Ok(_), _) if shared.stop.load(Ordering::Relaxed) != 0 => (Checked::NotChecked, "interrupted".to_owned()),
        (Ok(_), Some(rest)) => without_gpu(judge(target, rest, &report, folder, limit), &report, under),
        (Ok(ended), None) => (Checked::NotChecked, nothing_handed(ended, folder)),
    };
    let ended = rest.filter(|rest| !rest.timed_out).map(|rest| rest.ended);
    let mut program = program(target, outcome, &why);
    program.launches = report.coverage.launches;
    program.took = began.elapsed();
    program.output = folder.to_string_lossy().into_owned();
    Ran { program, report, ended }
}

/// What was handed over besides the findings.
struct Rest {
    ended: Result<i32, i32>,
    timed_out: bool,
    code: i32,
    unchecked: Vec<String>,
}

/// How the program came out, if it has no findings, and why.
fn judge(target: &Target, rest: &Rest, report: &Report, folder: &Path, limit: Duration) -> (Checked, String) {
    let unchecked = reasons(rest.unchecked.iter().chain(&report.coverage.unread));
    match rest.ended {
        _ if !unchecked.is_empty() => (Checked::NotChecked, unchecked),
        _ if rest.timed_out => (Checked::TimedOut, format!("{} s were not enough", limit.as_secs())),
        Err(signal) => (Checked::Failed, said(&format!("signal {signal}"), folder)),
        Ok(code) if rest.code == exit_code::INTERNAL && code != exit_code::INTERNAL => {
            (Checked::NotChecked, said("the tool failed", folder))
        }
        Ok(code) if Some(code) == target.skip_code => (Checked::Skipped, said(&format!("exit code {code}"), folder)),
        Ok(code) if code != 0 && !target.any_code => (Checked::Failed, said(&format!("exit code {code}"), folder)),
        Ok(_) if !report.coverage.any_work() => (Checked::NoCuda, String::new()),
        Ok(_) => (Checked::Clean, String::new()),
    }
}

/// A program that failed before it did anything on a GPU, where there is none: that is the reason
/// to tell, whatever it died of.
fn without_gpu((outcome, why): (Checked, String), report: &Report, under: &Under) -> (Checked, String) {
    match under.no_gpu {
        Some(none) if outcome == Checked::Failed && !report.coverage.any_work() => {
            (outcome, format!("{none}: --sim runs it on a simulated GPU ({why})"))
        }
        _ => (outcome, why),
    }
}

/// Reasons in half a sentence, each once: the first of them, for the program's own report has all.
fn reasons<'a>(all: impl Iterator<Item = &'a String>) -> String {
    const SHOWN: usize = 3;
    let mut list: Vec<&str> = Vec::new();
    all.for_each(|why| {
        if !list.contains(&why.as_str()) {
            list.push(why)
        }
    });
    let more = list.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{more}", list.into_iter().take(SHOWN).collect::<Vec<_>>().join("; "))
}

/// Why a run has handed over nothing.
fn nothing_handed(ended: Option<ExitStatus>, folder: &Path) -> String {
    let ours = last_line(&folder.join(STDERR), |line| line.starts_with("streamsan: "));
    let how = match ended.map(|status| (status.code(), status.signal())) {
        None => "the analysis did not end".to_owned(),
        Some((_, Some(signal))) => format!("the tool died of signal {signal}"),
        Some((code, _)) => format!("the tool ended with {}", code.unwrap_or_default()),
    };
    // Without room for what it says, the tool says nothing.
    let no_room = || std::fs::write(folder.join(PROBE), [0; 1 << 12]).err();
    match ours {
        Some(line) => line.trim_start_matches("streamsan: ").to_owned(),
        None => no_room().map_or(how, |error| format!("{}: {error}; --output names another folder", folder.display())),
    }
}

/// How it ended, with the last thing it said.
fn said(how: &str, folder: &Path) -> String {
    let own = |line: &str| !line.starts_with("streamsan: ");
    let last = last_line(&folder.join(STDERR), own).or_else(|| last_line(&folder.join(STDOUT), own));
    last.map_or_else(|| how.to_owned(), |line| format!("{how}: {line}"))
}

/// The last line of a file that is wanted, not too long.
fn last_line(file: &Path, wanted: impl Fn(&str) -> bool) -> Option<String> {
    const TAIL: u64 = 1 << 16;
    const LONGEST: usize = 160;
    let mut file = File::open(file).ok()?;
    let size = file.metadata().ok()?.len();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(size.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    std::io::Read::read_to_end(&mut file, &mut tail).ok()?;
    let text = String::from_utf8_lossy(&tail);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty() && wanted(line))?;
    Some(line.chars().take(LONGEST).collect())
}

const HANDED: &str = "outcome.json";
const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";
/// Written to find out whether files can be.
const PROBE: &str = "probe";

/// `under`: the tool and its options.
fn start(
    target: &Target,
    folder: &Path,
    under: (&Path, &[OsString]),
    limit: Duration,
    shared: &HuntState,
) -> Result<Child, String> {
    let (tool, options) = under;
    let wrong = |path: &Path, error: &std::io::Error| format!("{}: {error}", path.display());
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|error| wrong(folder, &error))?;
    let file = |name: &str| -> Result<File, String> {
        let path = folder.join(name);
        File::create(&path).map_err(|error| wrong(&path, &error))
    };
    let option = |name: &str, file: &str| -> [std::ffi::OsString; 2] {
        [format!("--{name}").into(), folder.join(file).into_os_string()]
    };
    let mut command = Command::new(tool);
    command.arg("run").args(options);
    command.args(["--config=off", "--error-exitcode=0", "--color=never"]);
    command.args(option("log-file", "report.txt")).args(option("json", "report.json")).args(option("outcome", HANDED));
    command.arg(format!("--time-limit={}", limit.as_secs().max(1))).arg("--").args(&target.command);
    command.current_dir(&target.folder).stdin(Stdio::null()).stdout(file(STDOUT)?).stderr(file(STDERR)?);
    // All that it says has been read, and stands in the options above.
    command.env_remove("STREAMSAN_OPTIONS");
    for (name, value) in &target.environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.process_group(0);
    // SAFETY: async-signal-safe calls. The thread that starts the child waits for it.
    unsafe {
        command.pre_exec(|| {
            inherited::restore_signals();
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM, 0, 0, 0);
            Ok(())
        });
    }
    // A child that is not in the list yet could be taken for an orphan.
    let mut running = shared.list();
    if !target.folder.is_dir() {
        return Err(format!("its working folder {} is not there", target.folder.display()));
    }
    let child = command.spawn().map_err(|error| wrong(tool, &error))?;
    running.push(child.id());
    Ok(child)
}

/// Waits for the tool; `None` when it had to be killed.
fn wait(mut child: Child, limit: Duration, shared: &HuntState, tick: &dyn Fn()) -> Option<ExitStatus> {
    let began = Instant::now();
    let tool = child.id();
    let mut asked: Option<Instant> = None;
    let mut before: Option<Duration> = None;
    let status = loop {
        if let Ok(Some(status)) = child.try_wait() {
            break Some(status);
        }
        if asked.is_none() && shared.stop.load(Ordering::Relaxed) != 0 {
            asked = Some(Instant::now());
            // It passes the signal on to the program.
            descendants::signal(tool as i32, libc::SIGTERM);
        }
        let patience = descendants::GRACE + Duration::from_secs(2);
        let late = began.elapsed() > limit && {
            let taken = processor_time(tool).unwrap_or_default();
            let analysis = taken.saturating_sub(*before.get_or_insert(taken));
            analysis > ANALYSIS || began.elapsed() > limit + LONGEST_ANALYSIS
        };
        if late || asked.is_some_and(|at| at.elapsed() > patience) {
            descendants::signal(-(tool as i32), libc::SIGKILL);
            let _ = child.wait();
            break None;
        }
        tick();
        std::thread::sleep(PAUSE);
    };
    let mut running = shared.list();
    running.retain(|pid| *pid != tool);
    if status.is_none_or(|status| status.code().is_none()) {
        // The program may run on without the tool.
        descendants::sweep(&running);
    }
    status
}

/// The processor time of all threads of a process, in steps of 10 ms (proc(5): `stat`, fields 14
/// and 15).
fn processor_time(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    // SAFETY: a plain query.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|n| *n > 0)?;
    Some(Duration::from_millis(ticks * 1000 / per_second))
}

/// A name as that of a folder.
fn file_name(name: &str) -> String {
    const LONGEST: usize = 80;
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.=+".contains(c) { c } else { '-' };
    name.chars().rev().take(LONGEST).collect::<Vec<_>>().into_iter().rev().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_checked_goes_before_how_it_ended() {
        let target =
            Target { skip_code: Some(77), ..Target::new("ctest", "t".into(), Vec::new(), Path::new("").into()) };
        let free = Target { any_code: true, ..target.clone() };
        let mut report = Report::merge(Vec::new(), false);
        let rest = |ended, code, timed_out, unchecked: &[&str]| Rest {
            ended,
            timed_out,
            code,
            unchecked: unchecked.iter().map(|why| (*why).to_owned()).collect(),
        };
        let of = |target: &Target, report: &Report, rest: Rest| {
            judge(target, &rest, report, Path::new("/nowhere"), Duration::from_secs(5))
        };
        assert_eq!(of(&target, &report, rest(Ok(0), 0, false, &[])), (Checked::NoCuda, String::new()));
        report.coverage.launches = 1;
        assert_eq!(of(&target, &report, rest(Ok(0), 0, false, &[])).0, Checked::Clean);
        for ended in [Ok(0), Ok(3), Err(11)] {
            assert_eq!(of(&target, &report, rest(ended, 70, false, &["a", "b"])), (Checked::NotChecked, "a; b".into()));
        }
        let many = rest(Ok(0), 70, false, &["a", "b", "a", "c", "d", "e"]);
        assert_eq!(of(&target, &report, many).1, "a; b; c; and 2 more");
        assert_eq!(of(&target, &report, rest(Ok(0), 70, false, &[])).0, Checked::NotChecked);
        assert_eq!(of(&target, &report, rest(Ok(70), 70, false, &[])).0, Checked::Failed);
        let late = of(&target, &report, rest(Err(15), 0, true, &[]));
        assert_eq!(late, (Checked::TimedOut, "5 s were not enough".into()));
        assert_eq!(of(&target, &report, rest(Err(11), 0, false, &[])), (Checked::Failed, "signal 11".into()));
        assert_eq!(of(&target, &report, rest(Ok(3), 3, false, &[])), (Checked::Failed, "exit code 3".into()));
        assert_eq!(of(&free, &report, rest(Ok(3), 3, false, &[])).0, Checked::Clean);
        assert_eq!(of(&target, &report, rest(Ok(77), 77, false, &[])).0, Checked::Skipped);
    }

    #[test]
    fn a_program_that_finds_no_gpu_is_told_so_whatever_it_dies_of() {
        let under = |no_gpu| Under {
            tool: std::path::PathBuf::new(),
            options: Vec::new(),
            limit: Duration::ZERO,
            limit_for_all: false,
            output: std::path::PathBuf::new(),
            no_gpu,
            fail_fast: false,
            pedantic: false,
            second: None,
        };
        let mut report = Report::merge(Vec::new(), false);
        let failed = |report: &Report, none| without_gpu((Checked::Failed, "signal 11".into()), report, &under(none)).1;
        let told = "no driver: --sim runs it on a simulated GPU (signal 11)";
        assert_eq!(failed(&report, Some("no driver")), told);
        assert_eq!(failed(&report, None), "signal 11");
        let clean = without_gpu((Checked::NoCuda, String::new()), &report, &under(Some("no driver")));
        assert_eq!(clean, (Checked::NoCuda, String::new()));
        report.coverage.launches = 1;
        assert_eq!(failed(&report, Some("no driver")), "signal 11");
    }

    #[test]
    fn what_a_process_computes_is_its_processor_time() {
        let before = processor_time(std::process::id()).expect("it runs");
        let mut number = 1_u64;
        let began = Instant::now();
        while processor_time(std::process::id()).expect("it runs") < before + Duration::from_millis(100) {
            (0..100_000).for_each(|_| number = std::hint::black_box(number.wrapping_mul(3)));
            assert!(began.elapsed() < Duration::from_secs(60), "it never grows");
        }
        assert_eq!(processor_time(u32::MAX), None);
    }

    #[test]
    fn names_of_folders_are_plain() {
        assert_eq!(file_name("a/b c::d"), "a-b-c--d");
        assert_eq!(file_name(&"x".repeat(300)).len(), 80);
    }
}
