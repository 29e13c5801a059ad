//! Lets a thread execute the one instruction that touched a held page, and closes the page behind
//! it.
//!
//! Owns the trap flag and the handler of `SIGTRAP` for it. What the page is held for is not known
//! here ([`super::holds`]). Where single steps do not work (a debugger has the process, a sandbox
//! does not deliver them) [`is_available`] says so, and pages stay open until the next call.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::{holds, page_protection, sigsegv};
use crate::arch;
use crate::runtime::thread_state;

const TRAP: u64 = 1 << (libc::SIGTRAP - 1);
const UNKNOWN: u32 = 0;
const WORKS: u32 = 1;
const NEVER: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);
static TRYING: AtomicBool = AtomicBool::new(false);
static TRIED: AtomicBool = AtomicBool::new(false);

/// Whether another process traces this one, and would get its traps.
fn is_traced() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("TracerPid:")).is_none_or(|tracer| tracer.trim() != "0")
}

/// Finds out whether single steps work here. Not for signal handlers.
pub fn prepare() {
    if STATE.load(Ordering::Acquire) != UNKNOWN {
        return;
    }
    if is_traced() || !sigsegv::install_for(libc::SIGTRAP, on_trap as *const () as usize) {
        return STATE.store(NEVER, Ordering::Release);
    }
    let mut before = 0;
    page_protection::mask(libc::SIG_UNBLOCK, Some(TRAP), Some(&mut before));
    TRYING.store(true, Ordering::Release);
    // The handler, installed just now, clears the flag.
    arch::try_step();
    TRYING.store(false, Ordering::Release);
    page_protection::mask(libc::SIG_SETMASK, Some(before), None);
    STATE.store(if TRIED.load(Ordering::Acquire) { WORKS } else { NEVER }, Ordering::Release);
}

/// Whether single steps work.
pub fn is_available() -> bool {
    STATE.load(Ordering::Acquire) == WORKS
}

/// Makes the interrupted thread stop behind its next instruction and close this page. False: it has
/// its hands full. Only after [`holds::open`] has said so, in a handler with this context.
///
/// # Safety
/// `context` is what the kernel passed to the handler of a signal.
pub unsafe fn begin(page: u64, context: *mut c_void) -> bool {
    thread_state::with(|thread| {
        let Some(free) = thread.stepping.iter().find(|cell| cell.get() == 0) else { return false };
        free.set(page);
        // SAFETY: the caller's promise.
        let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
        arch::set_stepping(context, true);
        let set = (&raw mut context.uc_sigmask).cast::<u64>();
        // SAFETY: a signal set begins with the 64 bits that the kernel knows.
        let blocked = unsafe { *set };
        if blocked & TRAP != 0 {
            // A trap that is blocked would kill the process.
            thread.trap_blocked.set(true);
            // SAFETY: as above.
            unsafe { *set = blocked & !TRAP };
        }
        true
    })
}

unsafe extern "C" fn on_trap(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: errno of this thread always exists.
    let errno = unsafe { *libc::__errno_location() };
    let (pages, blocked) = thread_state::with(|thread| {
        let pages = [0, 1, 2, 3].map(|i: usize| thread.stepping[i].replace(0));
        (pages, thread.trap_blocked.replace(false))
    });
    let mine = pages[0] != 0;
    let trial = TRYING.load(Ordering::Acquire) && !TRIED.swap(true, Ordering::AcqRel);
    if !mine && !trial {
        // SAFETY: the kernel passes valid structures.
        return unsafe { sigsegv::theirs(signal, info, context, (*info).si_code) };
    }
    // SAFETY: as above.
    let interrupted = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    arch::set_stepping(interrupted, false);
    if blocked {
        // SAFETY: a signal set begins with the 64 bits that the kernel knows.
        unsafe { *(&raw mut interrupted.uc_sigmask).cast::<u64>() |= TRAP };
    }
    pages.into_iter().filter(|page| *page != 0).for_each(holds::stepped);
    // SAFETY: errno of this thread always exists.
    unsafe { *libc::__errno_location() = errno };
}
