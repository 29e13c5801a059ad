//! The program as a process: starts it with the shim preloaded, and passes on how it ends.
//!
//! Owns the environment of the program, and its exit. Signals while it runs are
//! [`system::forward`]'s. Does not touch its standard input, output, error or terminal.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use crate::launcher::inherited::Environment;
use crate::launcher::loader_paths::{LoaderPaths, Unnameable, joined};
use crate::launcher::sanitized::Sanitized;
use crate::launcher::simulator::Sim;
use crate::launcher::{descendants, executable, inherited, mpi, sanitized, soname};
use settings::exit_code::{Ending, Reason};
use system::forward;

/// Everything that a program is started with.
pub(crate) struct Plan<'a> {
    /// Program and arguments.
    pub(crate) program: &'a [OsString],
    /// The socket of the run.
    pub(crate) socket: OsString,
    /// What opens its other socket.
    pub(crate) key: OsString,
    /// The folder of the run.
    pub(crate) folder: PathBuf,
    /// The simulated GPU, if it is used.
    pub(crate) sim: Option<&'a Sim>,
    /// The shim under the driver's SONAME, and the real driver, if asked for.
    pub(crate) soname: Option<(PathBuf, OsString)>,
    /// Whether to load the library that observes how host threads synchronise.
    pub(crate) host_threads: bool,
    /// `STREAMSAN_OPTIONS` for the shim: what the environment says and what the command line adds.
    pub(crate) shim_options: Vec<u8>,
    /// Whether PyTorch is to use CUDA's stream-ordered allocator.
    pub(crate) torch_async: bool,
    /// When the program is stopped, with all that it has started; it is the leader of a process
    /// group then.
    pub(crate) limit: Option<Duration>,
}

/// How a program ended.
pub(crate) struct Finished {
    /// Its status.
    pub(crate) status: ExitStatus,
    /// Whether it was stopped because its time was over.
    pub(crate) timed_out: bool,
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    /// A file of StreamSan is missing.
    #[error("{0} is missing: build it, or keep it beside the streamsan program")]
    Missing(PathBuf),
    /// The system does not say where StreamSan lies.
    #[error("cannot find the files of StreamSan beside the streamsan program: /proc/self/exe: {0} (is /proc mounted?)")]
    Nowhere(io::Error),
    /// The program holds the real runtime of ThreadSanitizer, which lets no library come before it.
    #[error(
        "cannot check {0}: it holds ThreadSanitizer's own runtime; link it with the shared one, or with \
         -lstreamsan_host in its place (docs/guide/host-memory.md)"
    )]
    ThreadSanitizer(String),
    /// The installation lies where the dynamic linker cannot be sent.
    #[error(transparent)]
    Unnameable(#[from] Unnameable),
    /// The program can not be run.
    #[error("cannot run {program}: {error}")]
    Program {
        /// The program.
        program: String,
        /// The error of the system.
        error: io::Error,
    },
}

impl LaunchError {
    /// How the command ends: as a shell would.
    pub(crate) fn ending(&self) -> Ending {
        let reason = match self {
            Self::Missing(_) | Self::Nowhere(_) | Self::Unnameable(_) => Reason::Failed,
            Self::Program { error, .. } if error.kind() == io::ErrorKind::NotFound => Reason::NotFound,
            Self::Program { .. } | Self::ThreadSanitizer(_) => Reason::CannotExecute,
        };
        reason.into()
    }
}

/// A file that belongs beside the running program.
pub(crate) fn beside(name: &str) -> Result<PathBuf, LaunchError> {
    let program = std::env::current_exe().map_err(LaunchError::Nowhere)?;
    let path = program.with_file_name(name);
    if path.exists() { Ok(path) } else { Err(LaunchError::Missing(path)) }
}

/// `value` in front of what a path-like variable holds already.
fn in_front(value: &OsStr, variable: &str) -> OsString {
    let mut joined = value.to_os_string();
    if let Some(old) = std::env::var_os(variable).filter(|old| !old.is_empty()) {
        joined.push(":");
        joined.push(old);
    }
    joined
}

/// Runs the program to its end.
pub(crate) fn run(plan: &Plan<'_>) -> Result<Finished, LaunchError> {
    let shim = match &plan.soname {
        Some((shim, _)) => shim.clone(),
        None => beside("libstreamsan.so")?,
    };
    let mut command = Command::new(&plan.program[0]);
    command.args(&plan.program[1..]);
    let mut preload = vec![shim.clone()];
    if plan.host_threads {
        preload.push(beside("libstreamsan_threads.so")?);
    }
    preload.extend(plan.sim.and_then(Sim::preload));
    preload.extend(plan.sim.into_iter().flat_map(Sim::stand_ins));
    let file = executable::find(&plan.program[0]);
    if let Some(file) = &file {
        symbols::hold_program(file);
    }
    let sanitized = file.map_or(Sanitized::No, |file| sanitized::of(&file));
    let stand_in = match sanitized {
        Sanitized::Inside => {
            return Err(LaunchError::ThreadSanitizer(plan.program[0].to_string_lossy().into_owned()));
        }
        Sanitized::Shared => sanitized::folder(),
        Sanitized::No => None,
    };
    // Before the C library: instrumented code calls its memory functions by their own names.
    if stand_in.is_some() {
        preload.push(beside("libstreamsan_host.so")?);
    }
    // In front of the driver that has the same name.
    let mut folders: Vec<PathBuf> = plan.soname.iter().map(|(copy, _)| soname::links(copy)).collect();
    folders.extend(plan.sim.iter().map(|sim| sim.folder.clone()));
    folders.extend(stand_in);
    let mut paths = LoaderPaths::new(&plan.folder);
    let folders: Vec<PathBuf> = folders.iter().map(|folder| paths.folder(folder)).collect::<Result<_, _>>()?;
    let search = (!folders.is_empty()).then(|| in_front(&joined(&folders), "LD_LIBRARY_PATH"));
    if mpi::may_be_used(&plan.program[0], search.as_deref()) {
        preload.push(beside("libstreamsan_mpi.so")?);
    }
    let preload: Vec<PathBuf> = preload.iter().map(|file| paths.file(file)).collect::<Result<_, _>>()?;
    let mut ours: Vec<(&OsStr, OsString)> = Vec::new();
    let mut set = |name: &'static str, value: OsString| ours.push((OsStr::new(name), value));
    if let Some(search) = search {
        set("LD_LIBRARY_PATH", search);
    }
    set("LD_PRELOAD", in_front(&joined(&preload), "LD_PRELOAD"));
    set("STREAMSAN_SOCKET", plan.socket.clone());
    set("STREAMSAN_SOCKET_KEY", plan.key.clone());
    if !plan.shim_options.is_empty() {
        set("STREAMSAN_OPTIONS", OsStr::from_bytes(&plan.shim_options).to_os_string());
    }
    // NVTX passes its ranges to the library named here. A profiler that is already named keeps its
    // place.
    if std::env::var_os("NVTX_INJECTION64_PATH").is_none() {
        set("NVTX_INJECTION64_PATH", shim.into_os_string());
    }
    // A shared runtime of AddressSanitizer insists on being the first library, and ends the program
    // if something was preloaded. It need not be first: the shim wraps none of the functions that
    // it must see first. Other programs ignore this variable.
    const ASAN: &str = "ASAN_OPTIONS";
    if !std::env::var_os(ASAN).is_some_and(|set| set.to_string_lossy().contains("verify_asan_link_order")) {
        set(ASAN, in_front(OsStr::new("verify_asan_link_order=0"), ASAN));
    }
    // The older name and the one since PyTorch 2.9. What the user has set stays.
    let names = ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"];
    if plan.torch_async && names.iter().all(|name| std::env::var_os(name).is_none()) {
        set(names[0], "backend:cudaMallocAsync".into());
    }
    if let Some((_, driver)) = &plan.soname {
        set("STREAMSAN_DRIVER", driver.clone());
    }
    if let Some(sim) = plan.sim {
        ours.extend(sim.variables.iter().map(|(name, value)| (name.as_ref(), OsString::from(value))));
    }
    // With a limit it leads a group, which no signal to ours reaches.
    forward::start(plan.limit.is_none());
    let failed = |error| LaunchError::Program { program: plan.program[0].to_string_lossy().into_owned(), error };
    let environment = Environment::with(&ours).map_err(failed)?;
    // SAFETY: only async-signal-safe calls between fork and exec. Handlers become defaults at exec
    // by themselves.
    unsafe {
        command.pre_exec(move || {
            inherited::restore_signals();
            forward::begin();
            inherited::restore_descriptors();
            environment.install();
            Ok(())
        });
    }
    if plan.limit.is_some() {
        descendants::adopt();
        command.process_group(0);
    }
    let mut child = command.spawn().map_err(failed)?;
    let finished = match plan.limit {
        None => child.wait().map(|status| Finished { status, timed_out: false }),
        Some(limit) => descendants::wait(&mut child, limit),
    };
    forward::stop();
    leave_ignored();
    finished.map_err(failed)
}

/// Without a program, a signal that this process was told to ignore is ignored again.
fn leave_ignored() {
    for signal in forward::PASSED_ON.into_iter().filter(|signal| inherited::is_ignored(*signal)) {
        // SAFETY: replaces an action by one that runs no code.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Dies of the signal that the program died of, so that the parent sees the same status as without
/// StreamSan.
pub(crate) fn die_of(signal: i32) -> ! {
    // SAFETY: restores the default and raises the signal, without a second core dump beside the
    // program's.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        let mut only: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut only);
        libc::sigaddset(&mut only, signal);
        // It may have been blocked from the start.
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &only, std::ptr::null_mut());
        libc::raise(signal);
    }
    std::process::exit(128 + signal)
}

/// Exit code or signal of a program that has ended.
pub(crate) fn ending(status: ExitStatus) -> Result<i32, i32> {
    // A process that was waited for has one or the other.
    status.code().ok_or_else(|| status.signal().unwrap_or(libc::SIGKILL))
}
