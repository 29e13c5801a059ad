//! Starts an analyzer for this process, under plain `LD_PRELOAD`.
//!
//! Owns doing so without a trace in the program. The analyzer is no child of it (a `wait` for any
//! child would find it). It gets none of the program's descriptors but standard error, no signals
//! of its terminal, and raises no `SIGCHLD`. Hence two generations of `clone` that share memory
//! until `exec` (as `vfork` does), the first without an exit signal.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::options::Options;

/// What the two generations need, all allocated beforehand: they run on borrowed stacks and must
/// not allocate.
struct Plan {
    program: CString,
    args: Vec<*const c_char>,
    env: Vec<*const c_char>,
    ring: c_int,
    has_stderr: bool,
    signals: libc::sigset_t,
    stack: *mut u8,
    error: c_int,
}

const STACK: usize = 32 << 10;

/// Starts `streamsan` on a ring. The error is a fragment of a message.
pub fn analyzer(options: &Options, ring: &OwnedFd) -> Result<(), String> {
    let path =
        options.analyzer.clone().or_else(beside_library).ok_or("the library does not know where it was loaded from")?;
    if let Err(error) = std::fs::metadata(&path) {
        let shown = path.to_string_lossy();
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "does not exist".to_owned(),
            _ => format!("can not be read: {error}"),
        };
        return Err(format!("{shown} {why} (set STREAMSAN_OPTIONS=analyzer=PATH)"));
    }
    let string = |bytes: Vec<u8>| CString::new(bytes).map_err(|_| "a path holds a NUL byte".to_owned());
    let program = string(path.into_vec())?;
    let pid = string(std::process::id().to_string().into_bytes())?;
    let words = [program.as_c_str(), c"attach-ring", c"3", &pid];
    let args: Vec<_> = words.iter().map(|w| w.as_ptr()).chain([std::ptr::null()]).collect();
    // SAFETY: the variable is only read; setenv on another thread at the same moment is the
    // program's own race.
    let env = unsafe { environment_without_preload() };
    // SAFETY: reserves fresh memory, no preconditions.
    let stack = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            2 * STACK,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK,
            -1,
            0,
        )
    };
    if stack == libc::MAP_FAILED {
        return Err("no memory".to_owned());
    }
    // The report must not go into a file of data that the program has opened as descriptor 2.
    let has_stderr = signal_free::stderr::is_unchanged();
    // SAFETY: all-zero is a valid sigset_t to be overwritten.
    let mut signals: libc::sigset_t = unsafe { std::mem::zeroed() };
    let mut plan = Plan {
        program: program.clone(),
        args,
        env,
        ring: ring.as_raw_fd(),
        has_stderr,
        signals,
        stack: stack.cast(),
        error: 0,
    };
    // SAFETY: signals are blocked so that no handler of the program runs in the children, which
    // share its memory. The stack is large enough for first(); CLONE_VFORK holds this thread until
    // first() has ended, so plan outlives it.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut signals);
        plan.signals = signals;
        let top = stack.byte_add(2 * STACK);
        let how = libc::CLONE_VM | libc::CLONE_VFORK;
        let mut child = libc::clone(first, top, how, (&raw mut plan).cast());
        let mut kind = libc::__WCLONE;
        if child < 0 && *libc::__errno_location() == libc::EINVAL {
            // Emulators know children with this exit signal only.
            child = libc::clone(first, top, how | libc::SIGCHLD, (&raw mut plan).cast());
            kind = 0;
        }
        if child > 0 {
            libc::waitpid(child, std::ptr::null_mut(), kind);
        } else {
            plan.error = *libc::__errno_location();
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &signals, std::ptr::null_mut());
        libc::munmap(stack, 2 * STACK);
    }
    if plan.error != 0 {
        let error = std::io::Error::from_raw_os_error(plan.error);
        return Err(format!("{}: {error}", program.to_string_lossy()));
    }
    Ok(())
}

/// First generation: makes the second and ends, so that the second has no parent in the program.
extern "C" fn first(plan: *mut c_void) -> c_int {
    let plan = plan.cast::<Plan>();
    // SAFETY: plan outlives both generations (CLONE_VFORK); the second one's stack is the lower
    // half, which is free.
    unsafe {
        let top = (*plan).stack.add(STACK);
        let child = libc::clone(second, top.cast(), libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD, plan.cast());
        if child < 0 {
            (*plan).error = *libc::__errno_location();
        }
        libc::_exit(0)
    }
}

/// Second generation: becomes the analyzer.
extern "C" fn second(plan: *mut c_void) -> c_int {
    let plan = plan.cast::<Plan>();
    // SAFETY: only system calls on values prepared beforehand; plan outlives this process until
    // exec.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        // The ring first: its number may be any, also 0 or 1.
        let ring = libc::fcntl((*plan).ring, libc::F_DUPFD, 10);
        libc::dup2(null, 0);
        libc::dup2(null, 1);
        if !(*plan).has_stderr {
            libc::dup2(null, 2);
        }
        libc::dup2(ring, 3);
        if libc::syscall(libc::SYS_close_range, 4, u32::MAX, 0) != 0 {
            (4..1024).for_each(|fd| {
                libc::close(fd);
            });
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        libc::execve((*plan).program.as_ptr(), (*plan).args.as_ptr(), (*plan).env.as_ptr());
        (*plan).error = *libc::__errno_location();
        libc::_exit(127)
    }
}

/// `streamsan` in the folder of this library.
fn beside_library() -> Option<OsString> {
    // SAFETY: an all-null Dl_info is a valid value to be overwritten; the address is our own.
    let library = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(beside_library as *const c_void, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        std::ffi::CStr::from_ptr(info.dli_fname)
    };
    let library = std::path::Path::new(OsStr::from_bytes(library.to_bytes()));
    Some(library.parent()?.join("streamsan").into_os_string())
}

/// # Safety
/// No other thread changes the environment meanwhile.
unsafe fn environment_without_preload() -> Vec<*const c_char> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    let mut kept = Vec::new();
    // SAFETY: environ is a null-terminated list of C strings, or null.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = std::ffi::CStr::from_ptr(*entry).to_bytes();
            if !text.starts_with(b"LD_PRELOAD=") && !text.starts_with(b"LD_AUDIT=") {
                kept.push(*entry);
            }
            entry = entry.add(1);
        }
    }
    kept.push(std::ptr::null());
    kept
}
