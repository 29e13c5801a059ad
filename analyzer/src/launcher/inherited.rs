//! The state that a process inherits over exec, as this process was started with it: the program
//! under test gets it as if nothing stood before it.
//!
//! Owns the look at that state before Rust's runtime changes it, and how it is restored in a
//! child. The runtime ignores SIGPIPE and opens `/dev/null` in place of standard descriptors that
//! are closed (`std::rt`); a `Command` empties the signal mask, restores SIGPIPE, sorts the
//! environment and drops entries of it that have no name or appear twice.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Signals that were ignored, a bit for each, the first in bit 0.
static IGNORED: AtomicU64 = AtomicU64::new(0);
/// Signals that were blocked.
static BLOCKED: AtomicU64 = AtomicU64::new(0);
/// Standard descriptors that were closed.
static CLOSED: AtomicU32 = AtomicU32::new(0);

/// The kernel has so many signals.
const LAST: i32 = 64;

/// Signals whose action this process changes, and which have the default in a child if they were
/// not ignored. A signal that has a handler gets the default at exec by itself.
const CHANGED: [i32; 3] = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGCHLD];

unsafe extern "C" {
    static mut environ: *const *const c_char;
}

/// Constructors run before Rust's runtime (System V ABI, "Initialization and Termination
/// Functions").
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: all-zero is valid for both; each call fills or asks only.
    unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
        for signal in 1..=LAST {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN {
                IGNORED.fetch_or(bit(signal), Ordering::Relaxed);
            }
            if libc::sigismember(&mask, signal) == 1 {
                BLOCKED.fetch_or(bit(signal), Ordering::Relaxed);
            }
        }
        for descriptor in 0..=2 {
            if libc::fcntl(descriptor, libc::F_GETFD) < 0 {
                CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
            }
        }
    }
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Whether this process was started with the signal ignored.
pub(crate) fn is_ignored(signal: i32) -> bool {
    IGNORED.load(Ordering::Relaxed) & bit(signal) != 0
}

/// Sets the actions of signals that this process needs for itself. A file that grows past its limit
/// (`ulimit -f`) is an error from now on, and no signal. Children can be waited for: they can not
/// while SIGCHLD is ignored (wait(2)).
pub fn take_signals() {
    // SAFETY: replaces actions by ones that run no code.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// Restores the signals in a child, between fork and exec.
pub(crate) fn restore_signals() {
    // SAFETY: async-signal-safe calls; all-zero is a valid sigset_t.
    unsafe {
        for signal in 1..=LAST {
            if is_ignored(signal) {
                libc::signal(signal, libc::SIG_IGN);
            } else if CHANGED.contains(&signal) {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut mask);
        for signal in (1..=LAST).filter(|signal| BLOCKED.load(Ordering::Relaxed) & bit(*signal) != 0) {
            libc::sigaddset(&mut mask, signal);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
    }
}

/// Closes the standard descriptors that were closed, in a child, between fork and exec.
pub(crate) fn restore_descriptors() {
    for descriptor in (0..=2).filter(|descriptor| CLOSED.load(Ordering::Relaxed) & 1 << descriptor != 0) {
        // SAFETY: a descriptor that Rust's runtime has opened and that nothing in the child uses.
        unsafe { libc::close(descriptor) };
    }
}

/// This process's environment, in its order, with some variables added or replaced.
pub(crate) struct Environment {
    /// What `pointers` point to.
    _entries: Vec<CString>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers point into strings that the value owns and nobody changes.
unsafe impl Send for Environment {}
// SAFETY: as above.
unsafe impl Sync for Environment {}

impl Environment {
    /// `ours`: names and values. The error: one of them holds a NUL.
    pub(crate) fn with<N: AsRef<OsStr>, V: AsRef<OsStr>>(ours: &[(N, V)]) -> io::Result<Self> {
        // SAFETY: this process never changes its environment, which is a list of strings that ends
        // with a null pointer.
        let inherited = unsafe { list(environ) };
        let set =
            |(name, value): &(N, V)| CString::new([name.as_ref().as_bytes(), value.as_ref().as_bytes()].join(&b'='));
        let named = |entry: &CStr, name: &[u8]| {
            entry.to_bytes().strip_prefix(name).is_some_and(|rest| rest.first() == Some(&b'='))
        };
        let mut entries = Vec::new();
        for entry in &inherited {
            match ours.iter().find(|(name, _)| named(entry, name.as_ref().as_bytes())) {
                Some(own) => entries.push(set(own)?),
                None => entries.push((*entry).to_owned()),
            }
        }
        for own in ours {
            if !inherited.iter().any(|entry| named(entry, own.0.as_ref().as_bytes())) {
                entries.push(set(own)?);
            }
        }
        let pointers = entries.iter().map(|entry| entry.as_ptr()).chain([std::ptr::null()]).collect();
        Ok(Self { _entries: entries, pointers })
    }

    /// Makes it the environment of a child, between fork and exec.
    pub(crate) fn install(&self) {
        // SAFETY: the child has one thread, and a copy of the list.
        unsafe { environ = self.pointers.as_ptr() };
    }
}

/// # Safety
/// A null pointer, or a list of strings that ends with one.
unsafe fn list<'a>(mut at: *const *const c_char) -> Vec<&'a CStr> {
    let mut entries = Vec::new();
    // SAFETY: the caller vouches for the list and its end.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            entries.push(CStr::from_ptr(*at));
            at = at.add(1);
        }
    }
    entries
}
