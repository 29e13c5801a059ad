//! Signals that are passed on to a program that this process has started.
//!
//! Owns which signals, and whether the program has one already: a terminal and `kill -- -GROUP`
//! signal a whole process group, which the program is in as well. A signal does not say whom it was
//! sent to. So a witness lies in the same group: a child of this process that does nothing and
//! blocks every signal. A signal to the group is pending there; one to this process alone is not.
//!
//! The kernel walks a group from its youngest member to its oldest (`attach_pid` puts a process at
//! the head of the group's list), so the witness has a signal before this process does.
//!
//! The program begins at an instant that both processes agree on: its word in the pipe that the
//! signals of this process go through. What stands before the word came too early for the program,
//! which gets it then; what stands behind it, the program has if its group has it. Until it has
//! written the word, the child runs this process's handler, which writes what the child took.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Signals that are passed on, all that a supervisor sends.
pub const PASSED_ON: [i32; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];

/// The pipe from the handlers to the thread that passes signals on.
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// This process. In a child that has not called `exec` yet, a number that is not its own.
static OWN: AtomicI32 = AtomicI32::new(0);
static FORWARD: Mutex<Forward> =
    Mutex::new(Forward { program: Program::Before, same_group: false, early: 0, witness: None });

/// What a handler, or the child before exec, writes into the pipe.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Word {
    /// A process has sent this process the signal.
    Sent,
    /// The kernel has: a key of the terminal, which signals the foreground group.
    FromKernel,
    /// The child has taken the signal before it became the program.
    Taken,
    /// The child is the program from here on.
    Begun,
}

/// Bytes of a word: its kind, the signal, and a process: the sender, or the program.
const WORD: usize = 6;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    Before,
    /// Its process id.
    Runs(i32),
    Ended,
}

struct Forward {
    program: Program,
    /// Whether the program is in the process group of this process; else it leads its own, and
    /// signals go to that group.
    same_group: bool,
    /// Signals that came before the program: a bit for each.
    early: u64,
    /// The witness, where there is one.
    witness: Option<Witness>,
}

/// Begins to pass signals on. `same_group`: the program will be in the process group of this
/// process. The child must call [`begin`] before exec.
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
    // SAFETY: asks only.
    OWN.store(unsafe { libc::getpid() }, Ordering::Release);
    let witness = if same_group { Witness::new() } else { None };
    *forward() = Forward { program: Program::Before, same_group, early: 0, witness };
    std::thread::spawn(move || {
        let mut word = [0_u8; WORD];
        // SAFETY: a pipe of this thread's own, and room for what is read.
        while unsafe { libc::read(ends[0], word.as_mut_ptr().cast(), WORD) } == WORD as isize {
            let [kind, signal, process @ ..] = word;
            forward().judge(kind, i32::from(signal), i32::from_ne_bytes(process));
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

/// In the child, between fork and exec, when its signals are what the program inherits: from now on
/// it is the program, and takes its signals itself.
pub fn begin() {
    // SAFETY: async-signal-safe calls; all-zero is a valid sigaction to be filled.
    unsafe {
        for signal in PASSED_ON {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut action);
            if action.sa_sigaction == handle as *const () as usize {
                // As exec would.
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        // The pipe is full after ten thousand signals that the thread has not read.
        while !write(Word::Begun, 0, libc::getpid()) && *libc::__errno_location() == libc::EAGAIN {
            libc::sched_yield();
        }
    }
}

/// Sends a signal of this process's own to the program, while it runs.
pub fn send(signal: i32) {
    forward().send(signal);
}

/// The program has ended.
pub fn stop() {
    let mut forward = forward();
    forward.program = Program::Ended;
    forward.witness.take();
}

fn forward() -> MutexGuard<'static, Forward> {
    FORWARD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a word, in a handler or before exec. Whether it is written.
fn write(kind: Word, signal: i32, process: i32) -> bool {
    let [a, b, c, d] = process.to_ne_bytes();
    let word = [kind as u8, signal as u8, a, b, c, d];
    // SAFETY: six bytes of this function's own. A write this short is whole or nothing (pipe(7)),
    // and the pipe does not block.
    unsafe { libc::write(PIPE.load(Ordering::Acquire), word.as_ptr().cast(), WORD) == WORD as isize }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: errno is the thread's own; with SA_SIGINFO the kernel passes a valid siginfo_t. The
    // sender is asked for only if it is there: a process has sent the signal, with kill, tgkill or
    // sigqueue.
    unsafe {
        let errno = *libc::__errno_location();
        if libc::getpid() != OWN.load(Ordering::Acquire) {
            write(Word::Taken, signal, 0);
        } else if (*info).si_code <= 0 {
            write(Word::Sent, signal, (*info).si_pid());
        } else {
            write(Word::FromKernel, signal, 0);
        }
        *libc::__errno_location() = errno;
    }
}

impl Forward {
    /// Takes a word of the pipe.
    fn judge(&mut self, kind: u8, signal: i32, process: i32) {
        if kind == Word::Begun as u8 {
            if self.program == Program::Before {
                self.program = Program::Runs(process);
                let early = std::mem::take(&mut self.early);
                PASSED_ON.into_iter().filter(|signal| early & 1 << signal != 0).for_each(|signal| self.send(signal));
            }
            return;
        }
        let has_group = self.same_group && self.group_has(kind, signal);
        match self.program {
            // The children of a later time are none of ours.
            Program::Runs(_) if kind == Word::Taken as u8 => {}
            // The program that signals its process group has the signal already.
            Program::Runs(program) if !has_group && process != program => self.send(signal),
            Program::Before => self.early |= 1 << signal,
            Program::Runs(_) | Program::Ended => {}
        }
    }

    /// Whether the process group was sent the signal, and so the program, if there is one.
    fn group_has(&mut self, kind: u8, signal: i32) -> bool {
        let is_pending = self.witness.as_ref().is_some_and(|witness| witness.has(signal));
        if is_pending {
            // It keeps the signal, so that another of the same number would not show.
            self.witness = None;
            self.witness = Witness::new();
        }
        is_pending || kind == Word::FromKernel as u8 && matches!(signal, libc::SIGINT | libc::SIGQUIT)
    }

    fn send(&self, signal: i32) {
        if let Program::Runs(program) = self.program {
            // SAFETY: kill takes numbers only. Between its end and `stop` its number is hardly
            // given out again.
            unsafe { libc::kill(if self.same_group { program } else { -program }, signal) };
        }
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
