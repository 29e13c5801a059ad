//! Start, fork and switching off, as the state of this process.
//!
//! ```text
//! Dormant --first op--> Running --internal fault, dead analyzer--> Off
//!    ^                     |
//!    +------- fork --------+     (the child starts anew if it uses CUDA, with a ring of its own)
//! ```
//!
//! Owns the state and its transitions, and nothing that they start: `crate::log::start` makes the
//! log, attaches the analyzer, and handles the end of the process. A page that the kernel wipes in
//! forked children distinguishes parent and child without a system call per op.

use std::fmt;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use trace::ring::Header;

use super::{attach, lock, stderr};

const DORMANT: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const OFF: u32 = 3;

#[unsafe(link_section = "streamsan_state")]
static STATE: AtomicU32 = AtomicU32::new(DORMANT);
/// Counts forks, so that numbers given out before one are not used after it.
#[unsafe(link_section = "streamsan_state")]
static GENERATION: AtomicU32 = AtomicU32::new(0);
#[unsafe(link_section = "streamsan_state")]
static CANARY: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// The header of the ring, once there is one.
static RING: AtomicPtr<Header> = AtomicPtr::new(std::ptr::null_mut());

/// The thread that is starting the shim: others wait for it, and a re-entry by the same thread is
/// recognised.
static STARTER: AtomicU64 = AtomicU64::new(0);

/// How many forks lie between the first ancestor that used CUDA and this process.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Whether the shim has been switched off for good.
#[inline]
pub fn is_off() -> bool {
    STATE.load(Ordering::Relaxed) == OFF
}

/// Whether this process has made no call of CUDA yet, and neither has one that it was forked from.
pub fn is_dormant() -> bool {
    STATE.load(Ordering::Relaxed) == DORMANT
}

/// Whether the shim is at work in this process: CUDA has been used.
#[inline]
pub fn is_running() -> bool {
    STATE.load(Ordering::Acquire) == RUNNING && !is_forked()
}

/// Whether this process was forked off the one that the shim runs in, and has not used CUDA itself.
#[inline]
pub fn is_forked() -> bool {
    let canary = CANARY.load(Ordering::Acquire);
    // SAFETY: a published canary is never unmapped.
    !canary.is_null() && unsafe { &*canary }.load(Ordering::Relaxed) == 0
}

/// What a thread that finds the shim not running has to do.
pub enum StartTurn {
    /// Start it: one thread gets this answer. To be followed by [`running`], or by switching off.
    Now,
    /// Look again: another thread has started it meanwhile.
    Done,
    /// Nothing: it runs already.
    Running,
    /// Stay out: it is off, or this thread is starting it further up its stack.
    No,
}

/// Asks who starts the shim. Waits while another thread does.
pub fn begin_start() -> StartTurn {
    let me = lock::tid() as u64;
    match STATE.compare_exchange(DORMANT, STARTING, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            STARTER.store(me, Ordering::Relaxed);
            StartTurn::Now
        }
        Err(STARTING) if STARTER.load(Ordering::Relaxed) != me => {
            while STATE.load(Ordering::Acquire) == STARTING {
                std::thread::sleep(Duration::from_micros(50));
            }
            StartTurn::Done
        }
        Err(RUNNING) => StartTurn::Running,
        Err(_) => StartTurn::No,
    }
}

/// There is a ring: whoever reads it is told when the shim switches itself off.
pub fn attached(header: *const Header) {
    RING.store(header.cast_mut(), Ordering::Release);
}

/// The start is over.
pub fn running() {
    STATE.store(RUNNING, Ordering::Release);
}

/// From now on forked children are distinguished from this process.
pub fn watch_for_forks() {
    // Nobody finds the word before it holds 1.
    CANARY.store(make_canary(), Ordering::Release);
}

/// In a child that has just been forked, where only one thread lives: back to dormant, under a
/// generation of its own.
pub fn start_anew_in_child() {
    lock::forget_tid();
    // The parent's ring is not mapped here.
    RING.store(std::ptr::null_mut(), Ordering::Relaxed);
    GENERATION.fetch_add(1, Ordering::Relaxed);
    CANARY.store(std::ptr::null_mut(), Ordering::Relaxed);
    let _ = STATE.compare_exchange(RUNNING, DORMANT, Ordering::Relaxed, Ordering::Relaxed);
    let _ = STATE.compare_exchange(STARTING, DORMANT, Ordering::Relaxed, Ordering::Relaxed);
}

/// A word that holds 1 here and 0 in every child forked from here.
fn make_canary() -> *mut AtomicU32 {
    // SAFETY: maps one fresh page; MADV_WIPEONFORK (Linux 4.14) works on private anonymous memory.
    unsafe {
        let page = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if page == libc::MAP_FAILED || libc::madvise(page, 4096, libc::MADV_WIPEONFORK) != 0 {
            return std::ptr::null_mut();
        }
        let word = page.cast::<AtomicU32>();
        (*word).store(1, Ordering::Relaxed);
        word
    }
}

/// Switches the shim off for the rest of this process, and says why, once: to the user, and to the
/// analyzer, whose report is not clean then.
#[cold]
pub fn switch_off(why: fmt::Arguments<'_>) {
    if STATE.swap(OFF, Ordering::AcqRel) == OFF {
        return;
    }
    stderr::say(format_args!("{why}; the program runs on unchecked"));
    let header = RING.load(Ordering::Acquire);
    if header.is_null() {
        attach::tell_launcher(why);
    } else if !is_forked() {
        // SAFETY: a ring is never unmapped in the process that made it.
        unsafe { &*header }.producer_off.store(1, Ordering::Release);
    }
}

/// Switches the shim off for the rest of this process without a word.
pub fn stay_out() {
    STATE.store(OFF, Ordering::Release);
}

/// Replaces the message of a panic by one line of [`switch_off`]: a fault of ours must not fill the
/// program's standard error.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location();
        let (file, line) = place.map_or(("?", 0), |p| (p.file(), p.line()));
        switch_off(format_args!("internal fault at {file}:{line}, please report it"));
    }));
}
