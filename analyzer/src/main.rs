//! The `streamsan` command: understands the command line, runs or reads what it names, prints the
//! report, answers the exit code.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use analyzer::cli::{Command, CommandLine, parse};
use analyzer::exact::learned::{self, Learned};
use analyzer::gate::Gate;
use analyzer::ingest::live::{Recorder, Sink};
use analyzer::ingest::progress::Progress;
use analyzer::ingest::{attach, recorded};
use analyzer::ipc::Across;
use analyzer::launcher::executable;
use analyzer::launcher::process;
use analyzer::launcher::process::{LaunchError, Plan};
use analyzer::launcher::server::Server;
use analyzer::launcher::simulator::Sim;
use analyzer::options::Options;
use analyzer::report::format::Reporters;
use analyzer::report::model::{Outcome, Report};
use analyzer::tools::function_coverage;
use analyzer::{AnalysisOptions, cli, exit_code, output, private_file, tools};

fn main() {
    let args: Vec<String> = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let run = move || run(&args);
    let thread = std::thread::Builder::new().stack_size(analyzer::ingest::STACK).spawn(run);
    // A panic has printed its own message.
    let code = thread.map(|thread| thread.join().unwrap_or(exit_code::INTERNAL));
    std::process::exit(code.unwrap_or_else(|error| {
        eprintln!("streamsan: no thread: {error}");
        exit_code::INTERNAL
    }));
}

fn run(args: &[String]) -> i32 {
    let environment = std::env::var("STREAMSAN_OPTIONS").ok();
    if let [word, fd, pid] = args
        && word == "attach-ring"
        && let (Ok(fd), Ok(pid)) = (fd.parse(), pid.parse())
    {
        return attach(fd, pid, environment.as_deref());
    }
    // `explain` prints its JSON: there the option takes no file.
    let explain_json = args.first().is_some_and(|word| word == "explain") && args.iter().any(|arg| arg == "--json");
    let kept: Vec<String>;
    let args = if explain_json {
        kept = args.iter().filter(|arg| *arg != "--json").cloned().collect();
        &kept
    } else {
        args
    };
    let CommandLine { command, options } = match parse(args, environment.as_deref()) {
        Ok(line) => line,
        Err(error) => {
            eprintln!("streamsan: {error}");
            return exit_code::USAGE;
        }
    };
    match command {
        Command::Run { program } => run_program(&program, options, true),
        Command::Record { program } => run_program(&program, options, false),
        Command::Check { files } => check(&files, options),
        Command::Dump { file } => dump(&file),
        Command::Explain { file, kernel } => {
            analyzer::set_cache(options.cache.last().map(String::as_str));
            explain(&file, kernel.as_deref(), explain_json)
        }
        Command::Timeline { file } => timeline(&file, options),
        Command::Memory { file } => memory(&file, options),
        Command::Coverage { file } => coverage(file.as_deref()),
        Command::Help => {
            print!("{}", cli::help());
            exit_code::CLEAN
        }
        Command::Version => {
            println!("streamsan {}", env!("CARGO_PKG_VERSION"));
            exit_code::CLEAN
        }
    }
}

fn analysis_options(options: &Options) -> AnalysisOptions {
    AnalysisOptions {
        policy: options.policy,
        latent: options.latent,
        pedantic: options.pedantic,
        hints: options.hints,
        host_threads: options.host_threads,
        compare: options.exact.compare.is_some(),
        confirm: options.exact.confirm,
        // Some kernels by name, all, or all beside predictions: then nothing is left out.
        settle: options.exact.kernels.as_deref() == Some("") && options.exact.compare.is_none(),
    }
}

/// What the options say of files, before anything runs: names are expanded, suppressions and the
/// baseline are read, what will be written can be written. The error has been said.
fn prepare(options: &mut Options, pid: u32) -> Result<Gate, i32> {
    analyzer::set_cache(options.cache.last().map(String::as_str));
    analyzer::symbols::set_search_path(options.symbol_path.iter().map(PathBuf::from).collect());
    let ready = output::expand_all(options, pid).and_then(|()| Gate::open(options));
    let ready = ready.and_then(|gate| output::check_writable(options).map(|()| gate));
    let ready = ready.and_then(|gate| {
        if let Some(path) = &options.exact.learned {
            learned::give(Learned::read(path)?);
        }
        Ok(gate)
    });
    ready.map_err(|error| {
        eprintln!("streamsan: {error}");
        exit_code::USAGE
    })
}

/// The report of these outcomes, judged. Second: whether everything could be written.
fn report(
    outcomes: Vec<Outcome>,
    gate: &Gate,
    options: &Options,
    not_simulated: impl FnOnce(bool) -> Vec<String>,
) -> (Report, bool) {
    let mut report = Report::merge(outcomes, options.pedantic);
    report.coverage.not_simulated = not_simulated(!report.coverage.any_work());
    gate.judge(&mut report);
    let mut written = Reporters::asked_for(options).write(&report);
    if let Some(path) = &options.exact.compare {
        written &= report.oracle.write(path);
    }
    if let Some(path) = options.exact.learned.as_ref().filter(|_| report.learned.counts() != (0, 0)) {
        match std::mem::take(&mut report.learned).add_to(path) {
            Ok((known, 0)) => eprintln!("streamsan: LEARNED: {path} knows the ranges of {known} launches"),
            Ok((known, differ)) => eprintln!(
                "streamsan: LEARNED: {path} knows the ranges of {known} launches; {differ} more differed from run to run"
            ),
            Err(error) => {
                eprintln!("streamsan: {error}");
                written = false;
            }
        }
    }
    (report, written)
}

fn recorder(options: &Options) -> Result<Option<Recorder>, i32> {
    let Some(path) = &options.output else { return Ok(None) };
    if path == output::STANDARD {
        eprintln!("streamsan: a trace can not go to standard output ('-'): name a file");
        return Err(exit_code::USAGE);
    }
    let made =
        private_file::create(Path::new(path)).and_then(|file| trace::file::Writer::new(std::io::BufWriter::new(file)));
    match made {
        Ok(writer) => Ok(Some(Arc::new(Mutex::new(writer)))),
        Err(error) => {
            eprintln!("streamsan: {path} can not be written: {error}");
            Err(exit_code::USAGE)
        }
    }
}

fn run_program(program: &[String], mut options: Options, analyse: bool) -> i32 {
    let gate = match prepare(&mut options, std::process::id()) {
        Ok(gate) => gate,
        Err(code) => return code,
    };
    let options = &options;
    let exact = match exact(options) {
        Ok(words) => words,
        Err(error) => {
            eprintln!("streamsan: {error}");
            return exit_code::USAGE;
        }
    };
    let recorder = match recorder(options) {
        Ok(recorder) => recorder,
        Err(code) => return code,
    };
    let across = Across::new(true);
    let compared = (analyse && !options.host_threads).then(|| across.clone());
    let sink = Sink { analysis: analyse.then(|| analysis_options(options)), recorder, across: compared };
    let mut server = match Server::open(sink) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("streamsan: no socket for this run: {error}");
            return exit_code::INTERNAL;
        }
    };
    let sim = match options.sim.then(|| Sim::prepare(server.folder(), &options.sim_options)).transpose() {
        Ok(sim) => sim,
        Err(error) => {
            eprintln!("streamsan: {error}");
            return exit_code::INTERNAL;
        }
    };
    let sim_folder = sim.as_ref().map(|sim| sim.folder.as_path());
    let soname = match options.soname.then(|| soname(server.folder(), sim_folder)).transpose() {
        Ok(soname) => soname,
        Err(error) => {
            eprintln!("streamsan: {error}");
            return exit_code::INTERNAL;
        }
    };
    let plan = Plan {
        program,
        socket: server.path(),
        sim: sim.as_ref(),
        soname,
        host_threads: options.host_threads,
        torch_async: options.torch_async,
        shim_options: shim_options(options, exact),
    };
    let status = process::run(&plan);
    let mut outcomes = server.finish();
    across.finish(&mut outcomes);
    if analyse
        && outcomes.is_empty()
        && status.is_ok()
        && let Some(why) =
            program.first().and_then(|name| executable::find(name)).and_then(|file| executable::closed(&file))
    {
        eprintln!("streamsan: {} was not checked: {why}", program[0]);
    }
    let failed = server.failed();
    let complaints = |idle| sim.as_ref().map(|sim| sim.complaints(idle)).unwrap_or_default();
    let (impossible, in_vain) = (complaints(false), complaints(true));
    drop(server);
    let status = match status {
        Ok(status) => status,
        Err(error) => {
            eprintln!("streamsan: {error}{}", hint(&error, program));
            return error.exit_code();
        }
    };
    if !analyse {
        let note = options.output.as_deref().unwrap_or_default();
        eprintln!("streamsan: recorded; check it with: streamsan check {note}");
        return ending(status, |code| if impossible.is_empty() { code } else { exit_code::INTERNAL });
    }
    let (report, printed) = report(outcomes, &gate, options, |idle| if idle { in_vain } else { impossible });
    ending(status, |code| {
        let code = exit_code::of(&report, code, options.error_exitcode, options.require_cuda);
        if code == exit_code::CLEAN && (failed > 0 || !printed) { exit_code::INTERNAL } else { code }
    })
}

/// The shim under the driver's name, and the driver that it is to open.
fn soname(folder: &Path, sim: Option<&Path>) -> Result<(PathBuf, OsString), String> {
    let shim = process::beside("libstreamsan.so").map_err(|error| error.to_string())?;
    let driver = match sim {
        Some(sim) => sim.join("libcuda.so.1").into_os_string(),
        None => analyzer::launcher::soname::driver()?,
    };
    Ok((analyzer::launcher::soname::copy(&shim, folder)?, driver))
}

fn hint(error: &LaunchError, program: &[String]) -> String {
    let is_missing =
        matches!(error, LaunchError::Program { error, .. } if error.kind() == std::io::ErrorKind::NotFound);
    let meant = program.first().filter(|_| is_missing).and_then(|word| cli::meant(word));
    meant.map_or_else(String::new, |word| format!(" (did you mean 'streamsan {word}'?)"))
}

fn ending(status: std::process::ExitStatus, code: impl FnOnce(i32) -> i32) -> i32 {
    match process::ending(status) {
        Ok(program) => code(program),
        Err(signal) => process::die_of(signal),
    }
}

/// What the shim needs for `--exact`.
fn exact(options: &Options) -> Result<Vec<String>, String> {
    let shim = process::beside("libstreamsan.so").unwrap_or_default();
    analyzer::exact::setup::shim_options(&options.exact, shim.parent().unwrap_or(Path::new("")))
}

/// What the shim in the program is to know: the environment's options, then what the command line
/// says of its own.
fn shim_options(options: &Options, exact: Vec<String>) -> String {
    let mut words: Vec<String> =
        std::env::var("STREAMSAN_OPTIONS").ok().filter(|t| !t.is_empty()).into_iter().collect();
    if !options.stacks {
        words.push("stacks=0".into());
    }
    if options.shim.ring_mib > 0 {
        words.push(format!("ring-mib={}", options.shim.ring_mib));
    }
    if !options.shim.host_writes {
        words.push("host-writes=0".into());
    }
    if options.shim.host_accesses {
        words.push("host-accesses=1".into());
    }
    words.push(format!("host-sample={}", options.shim.host_sample));
    if options.host_threads {
        words.push("host-order=threads".into());
    }
    if options.shim.launch_blocking {
        words.push("launch-blocking=1".into());
    }
    if options.shim.count_calls {
        words.push("count-calls=1".into());
    }
    if options.shim.off {
        words.push("off=1".into());
    }
    words.extend(exact);
    words.join(":")
}

fn attach(fd: i32, pid: i32, environment: Option<&str>) -> i32 {
    let mut options = Options::default();
    if let Some(Err(error)) = environment.map(|text| options.read_env(text)) {
        // The program runs already: the wrong option is named, the others hold.
        eprintln!("streamsan: in STREAMSAN_OPTIONS: {error}");
    }
    let gate = prepare(&mut options, pid.unsigned_abs()).unwrap_or_default();
    let recorder = recorder(&options).ok().flatten();
    let sink = Sink { analysis: Some(analysis_options(&options)), recorder, across: None };
    attach::attach_ring(fd, pid, &sink, |outcome| {
        let (report, _) = report(outcome.into_iter().collect(), &gate, &options, |_| Vec::new());
        report.failures().count() as u32
    })
}

fn check(files: &[String], mut options: Options) -> i32 {
    let gate = match prepare(&mut options, std::process::id()) {
        Ok(gate) => gate,
        Err(code) => return code,
    };
    let options = &options;
    let files = match recorded::files(files) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("streamsan: {error}");
            return exit_code::USAGE;
        }
    };
    let size = |file: &String| std::fs::metadata(file).map_or(0, |m| m.len());
    let mut progress = Progress::new(files.iter().map(size).sum());
    let across = Across::new(false);
    let (mut outcomes, mut unread, mut done) = (Vec::new(), Vec::new(), 0);
    for file in &files {
        let (mut found, error) = recorded::check(
            file,
            analysis_options(options),
            Some(&across).filter(|_| !options.host_threads),
            done,
            &mut progress,
        );
        done += size(file);
        if files.len() > 1 {
            found.iter_mut().for_each(|outcome| outcome.process.trace = Some(file.clone()));
        }
        if let Some(error) = error {
            unread.push(format!("{file}: {error}"));
            if let Some(first) = found.first_mut() {
                first.coverage.unread.push(format!("{file}: {error}"));
            }
        }
        outcomes.extend(found);
    }
    across.finish(&mut outcomes);
    drop(progress);
    // The report names them too, if there is one and it is seen.
    if outcomes.is_empty() || options.log_file.is_some() {
        unread.iter().for_each(|error| eprintln!("streamsan: {error}"));
    }
    if outcomes.is_empty() && !unread.is_empty() {
        return exit_code::INTERNAL;
    }
    let (report, printed) = report(outcomes, &gate, options, |_| Vec::new());
    let code = exit_code::of(&report, 0, options.error_exitcode, options.require_cuda);
    if code == exit_code::CLEAN && (!unread.is_empty() || !printed) { exit_code::INTERNAL } else { code }
}

fn dump(file: &str) -> i32 {
    match recorded::dump(file, std::io::BufWriter::new(std::io::stdout().lock())) {
        Ok(()) => exit_code::CLEAN,
        Err(error) => {
            eprintln!("streamsan: {file}: {error}");
            exit_code::INTERNAL
        }
    }
}

fn timeline(file: &str, mut options: Options) -> i32 {
    if let Err(code) = prepare(&mut options, std::process::id()) {
        return code;
    }
    let path = options.output.unwrap_or_default();
    let to: std::io::Result<Box<dyn Write>> = match &*path {
        output::STANDARD => Ok(Box::new(std::io::stdout().lock())),
        path => std::fs::File::create(path).map(|file| Box::new(file) as Box<dyn Write>),
    };
    let made = to.and_then(|to| tools::timeline::draw(file, std::io::BufWriter::new(to)));
    match made {
        // A reader that has seen enough (head) closes the pipe: no error of ours.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => exit_code::CLEAN,
        Err(error) => {
            eprintln!("streamsan: {path} can not be written: {error}");
            exit_code::INTERNAL
        }
        Ok((drawn, error)) => {
            let tell =
                format!("{} ops and {} arrows, in logical time; open it at ui.perfetto.dev", drawn.slices, drawn.flows);
            eprintln!("streamsan: {path}: {tell}");
            unreadable(file, error)
        }
    }
}

fn memory(file: &str, mut options: Options) -> i32 {
    if let Err(code) = prepare(&mut options, std::process::id()) {
        return code;
    }
    let mut report = tools::memory::read(file);
    let mut fine = true;
    let mut write = |path: &str, bytes: Result<Vec<u8>, String>| {
        let written = bytes.and_then(|bytes| output::write(path, &bytes).map_err(|error| error.to_string()));
        if let Err(error) = written {
            eprintln!("streamsan: {path} can not be written: {error}");
            fine = false;
        }
    };
    if let Some(path) = &options.json {
        write(path, Ok(format!("{:#}\n", report.json()).into_bytes()));
    }
    if let Some(path) = &options.snapshot {
        let snapshot = tools::snapshot::snapshot(&mut report);
        let pickle = serde_pickle::to_vec(&snapshot, serde_pickle::SerOptions::new());
        write(path, pickle.map_err(|error| error.to_string()));
    }
    let taken = [&options.json, &options.snapshot].iter().any(|name| name.as_deref() == Some(output::STANDARD));
    if !taken {
        let _ = std::io::stdout().lock().write_all(report.text().as_bytes());
    }
    match unreadable(file, report.error) {
        exit_code::CLEAN if !fine => exit_code::INTERNAL,
        code => code,
    }
}

fn unreadable(file: &str, error: Option<trace::file::FileError>) -> i32 {
    let Some(error) = error else { return exit_code::CLEAN };
    eprintln!("streamsan: {file}: {error}");
    exit_code::INTERNAL
}

fn coverage(file: Option<&str>) -> i32 {
    let seen = match file.map(|file| function_coverage::seen(file).map_err(|error| (file, error))).transpose() {
        Ok(seen) => seen,
        Err((file, error)) => {
            eprintln!("streamsan: {file}: {error}");
            return exit_code::INTERNAL;
        }
    };
    // A reader that has seen enough (head) closes the pipe: no error of ours.
    let _ = std::io::stdout().lock().write_all(function_coverage::listing(seen.as_ref()).as_bytes());
    exit_code::CLEAN
}

fn explain(file: &str, kernel: Option<&str>, json: bool) -> i32 {
    match analyzer::tools::explain::describe(file, kernel, json) {
        Ok(text) => {
            // A reader that has seen enough (head) closes the pipe: no error of ours.
            let _ = std::io::stdout().lock().write_all(text.as_bytes());
            exit_code::CLEAN
        }
        Err(error) => {
            eprintln!("streamsan: {error}");
            exit_code::INTERNAL
        }
    }
}
