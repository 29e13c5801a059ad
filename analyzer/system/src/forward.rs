//! Signals that are passed on to a program that this process has started.
//!
//! Owns which signals, and whether the program has one already: a terminal and `kill -- -GROUP`
//! signal a whole process group, which the program is in as well. A signal does not say whom it was
//! sent to. So a witness lies in the same group: a child of this process that does nothing and
//! blocks every signal. A signal to the group is pending there; one to this process alone is not.
//!
//! The kernel walks a group from its youngest member to its oldest (`attach_pid` puts a process at
//! the head of the group's list), so the witness has a signal before this process does.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Signals that are passed on, all that a supervisor sends.
pub const PASSED_ON: [i32; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];

/// What signals are passed on to: a process id, or a process group (negative); 0 before and after
/// the run.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that has come before there was a program.
static EARLY: AtomicI32 = AtomicI32::new(0);
/// The pipe from the handler to the thread that passes signals on.
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// The witness, where there is one.
static WITNESS: Mutex<Option<Witness>> = Mutex::new(None);

/// Begins to pass signals on. `same_group`: the program will be in the process group of this
/// process.
pub fn start(same_group: bool) {
    let mut ends = [-1; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return;
    }
    // The thread waits; the handler never does.
    // SAFETY: takes numbers only.
    unsafe { libc::fcntl(ends[0], libc::F_SETFL, 0) };
    PIPE.store(ends[1], Ordering::Release);
    if same_group {
        *witness() = Witness::new();
    }
    std::thread::spawn(move || {
        let mut word = [0_u8; 2];
        // SAFETY: a pipe of this thread's own, and room for what is read.
        while unsafe { libc::read(ends[0], word.as_mut_ptr().cast(), 2) } == 2 {
            pass_on(i32::from(word[0]), word[1] != 0);
        }
    });
    for signal in PASSED_ON {
        // SAFETY: all-zero is a valid sigaction to be filled; the handler is async-signal-safe.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// From now on this is the program: a process id, or a process group (negative).
pub fn to(child: i32) {
    CHILD.store(child, Ordering::SeqCst);
    send_early();
}

/// Sends a signal of this process's own to the program, while it runs.
pub fn send(signal: i32) {
    let child = CHILD.load(Ordering::SeqCst);
    if child != 0 {
        // SAFETY: kill takes numbers only. Between its end and `stop` its number is hardly given
        // out again.
        unsafe { libc::kill(child, signal) };
    }
}

/// The program has ended.
pub fn stop() {
    CHILD.store(0, Ordering::SeqCst);
    witness().take();
}

/// Sends what has come before there was a program.
fn send_early() {
    let (child, early) = (CHILD.load(Ordering::SeqCst), EARLY.swap(0, Ordering::SeqCst));
    if child != 0 && early != 0 {
        // SAFETY: kill takes numbers only.
        unsafe { libc::kill(child, early) };
    }
}

fn witness() -> MutexGuard<'static, Option<Witness>> {
    WITNESS.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: errno is the thread's own; with SA_SIGINFO the kernel passes a valid siginfo_t. The
    // sender is asked for only if it is there: a process has sent the signal, with kill, tgkill or
    // sigqueue. The pipe does not block.
    unsafe {
        let errno = *libc::__errno_location();
        let child = CHILD.load(Ordering::SeqCst);
        let sender = ((*info).si_code <= 0).then(|| (*info).si_pid());
        let is_from_terminal = sender.is_none() && matches!(signal, libc::SIGINT | libc::SIGQUIT);
        // The program that signals its process group has the signal already.
        let is_from_program = child != 0 && sender == Some(child.abs());
        if !is_from_terminal && !is_from_program {
            let word = [signal as u8, u8::from(child == 0)];
            libc::write(PIPE.load(Ordering::Acquire), word.as_ptr().cast(), 2);
        }
        *libc::__errno_location() = errno;
    }
}

/// Passes a signal on, unless the program has it already. `early`: there was no program yet.
fn pass_on(signal: i32, early: bool) {
    if early {
        EARLY.store(signal, Ordering::SeqCst);
        send_early();
        return;
    }
    let mut witness = witness();
    if witness.as_ref().is_some_and(|witness| witness.has(signal)) {
        // It keeps the signal, so that another of the same number would not show.
        *witness = None;
        *witness = Witness::new();
        return;
    }
    let child = CHILD.load(Ordering::SeqCst);
    if child != 0 {
        // SAFETY: kill takes numbers only.
        unsafe { libc::kill(child, signal) };
    }
}

/// A child that keeps the signals of its process group.
struct Witness(i32);

impl Witness {
    fn new() -> Option<Self> {
        // SAFETY: all-zero is a valid sigset_t. The child has one thread and makes system calls
        // only. It inherits a mask in which every signal is blocked, so no handler runs in it.
        unsafe {
            let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            let own = libc::getpid();
            let child = libc::fork();
            if child == 0 {
                // A launcher that is killed takes it along.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() != own {
                    libc::_exit(0);
                }
                // A pipe that the launcher closes must be closed.
                if libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) != 0 {
                    for descriptor in 0..4096 {
                        libc::close(descriptor);
                    }
                }
                loop {
                    libc::pause();
                }
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
            (child > 0).then_some(Self(child))
        }
    }

    /// Whether the signal was sent to it as well. Without `/proc` it knows nothing.
    fn has(&self, signal: i32) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap_or_default();
        let pending = status.lines().filter_map(|line| line.strip_prefix("ShdPnd:"));
        let pending = pending.filter_map(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        pending.fold(0, |all, mask| all | mask) & 1 << (signal - 1) != 0
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // SAFETY: a child of this process that nobody else waits for.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}
