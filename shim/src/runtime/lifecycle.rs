//! Start, fork, exit and switching off.
//!
//! ```text
//! Dormant --first op--> Running --internal fault, dead analyzer--> Off
//!    ^                     |
//!    +------- fork --------+        (the child starts anew if it uses CUDA; the parent's ring is not mapped there)
//! ```
//!
//! A page that the kernel wipes in forked children tells parent and child apart without a system
//! call per op.

use std::fmt;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::options::Options;
use super::{attach, lock};
use crate::log::core::Core;
use crate::runtime::stderr;

const DORMANT: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const OFF: u32 = 3;

#[unsafe(link_section = "streamsan_state")]
static STATE: AtomicU32 = AtomicU32::new(DORMANT);
#[unsafe(link_section = "streamsan_state")]
static CORE: AtomicPtr<Core> = AtomicPtr::new(std::ptr::null_mut());
/// Counts forks, so that numbers given out before one are not used after it.
#[unsafe(link_section = "streamsan_state")]
static GENERATION: AtomicU32 = AtomicU32::new(0);
#[unsafe(link_section = "streamsan_state")]
static CANARY: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// Thread that is starting the shim, for others to wait on; also tells a re-entry by the same
/// thread.
static STARTER: AtomicU64 = AtomicU64::new(0);

/// What the shim works on, started now if this is the first op of the process. `None`: stay out.
#[inline]
pub fn core() -> Option<&'static Core> {
    let core = CORE.load(Ordering::Acquire);
    if !core.is_null() && STATE.load(Ordering::Relaxed) == RUNNING && !is_forked() {
        // SAFETY: a published core is never freed.
        return Some(unsafe { &*core });
    }
    core_slow()
}

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

/// Whether the shim is at work in this process: CUDA has been used.
pub fn is_running() -> bool {
    STATE.load(Ordering::Relaxed) == RUNNING && !is_forked()
}

/// Whether this process was forked off the one that the shim runs in, and has not used CUDA itself.
#[inline]
pub fn is_forked() -> bool {
    let canary = CANARY.load(Ordering::Relaxed);
    // SAFETY: a published canary is never unmapped.
    !canary.is_null() && unsafe { &*canary }.load(Ordering::Relaxed) == 0
}

#[cold]
fn core_slow() -> Option<&'static Core> {
    if is_forked() {
        // Only one thread lives in a child that has just been forked. The parent's core is left
        // alone: its lock may be held by a thread that does not exist here, and its ring is not
        // mapped.
        lock::forget_tid();
        GENERATION.fetch_add(1, Ordering::Relaxed);
        crate::handles::tables::forget_recent();
        crate::stack::native::after_fork_in_child();
        CORE.store(std::ptr::null_mut(), Ordering::Relaxed);
        CANARY.store(std::ptr::null_mut(), Ordering::Relaxed);
        let _ = STATE.compare_exchange(RUNNING, DORMANT, Ordering::Relaxed, Ordering::Relaxed);
        let _ = STATE.compare_exchange(STARTING, DORMANT, Ordering::Relaxed, Ordering::Relaxed);
    }
    let me = lock::tid() as u64;
    match STATE.compare_exchange(DORMANT, STARTING, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            STARTER.store(me, Ordering::Relaxed);
            start()
        }
        Err(STARTING) if STARTER.load(Ordering::Relaxed) != me => {
            while STATE.load(Ordering::Acquire) == STARTING {
                std::thread::sleep(Duration::from_micros(50));
            }
            core()
        }
        Err(RUNNING) => {
            // SAFETY: a published core is never freed.
            unsafe { CORE.load(Ordering::Acquire).as_ref() }
        }
        Err(_) => None,
    }
}

fn start() -> Option<&'static Core> {
    quiet_panics();
    let options = Options::from_environment();
    if options.off {
        STATE.store(OFF, Ordering::Release);
        return None;
    }
    let attached = match attach::attach(&options) {
        Ok(attached) => attached,
        Err(error) => {
            switch_off(format_args!("can not check this process: {error}"));
            return None;
        }
    };
    CANARY.store(make_canary(), Ordering::Relaxed);
    let core = Box::leak(Box::new(Core::new(options, attached)));
    core.introduce();
    CORE.store(core, Ordering::Release);
    STATE.store(RUNNING, Ordering::Release);
    Some(core)
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

/// Switches the shim off for the rest of this process, and says why, once.
#[cold]
pub fn switch_off(why: fmt::Arguments<'_>) {
    if STATE.swap(OFF, Ordering::AcqRel) != OFF {
        stderr::say(format_args!("{why}; the program runs on unchecked"));
    }
}

/// A fault of ours must not print through the program's standard error twice: the line of
/// [`switch_off`] says it all.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location();
        let (file, line) = place.map_or(("?", 0), |p| (p.file(), p.line()));
        switch_off(format_args!("internal fault at {file}:{line}, please report it"));
    }));
}

/// The program ends: under plain `LD_PRELOAD`, waits until the analyzer has printed its report, as
/// long as that one lives; then the exit code is replaced if the user asked for it.
pub fn at_exit() {
    let core = CORE.load(Ordering::Acquire);
    if core.is_null() || is_forked() {
        return;
    }
    // SAFETY: a published core is never freed.
    let core = unsafe { &*core };
    crate::log::call_counts::tell(core);
    core.say_goodbye();
    if !core.own_analyzer {
        return;
    }
    let header = core.header();
    header.producer_done.store(1, Ordering::Release);
    let mut beat = (header.heartbeat.load(Ordering::Relaxed), Instant::now());
    while header.consumer_done.load(Ordering::Acquire) == 0 {
        std::thread::sleep(Duration::from_millis(1));
        let now = header.heartbeat.load(Ordering::Relaxed);
        if now != beat.0 {
            beat = (now, Instant::now());
        } else if beat.1.elapsed() > Duration::from_secs(5) {
            switch_off(format_args!("the analyzer has died: this run was not checked"));
            return;
        }
    }
    STATE.store(OFF, Ordering::Release);
    if let Some(code) = core.options.error_exitcode
        && header.findings.load(Ordering::Relaxed) > 0
    {
        // SAFETY: everything else has run (we are among the last destructors); what stdio still
        // holds is written first.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::_exit(code);
        }
    }
}
