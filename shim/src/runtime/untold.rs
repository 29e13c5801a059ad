//! A process that can tell the launcher nothing: its sandbox forbids sockets, and it has another
//! root. Standard error has the message, which decides no exit code.
//!
//! Owns the exit code of such a process: 70 where it would end with 0, so that the run is not taken
//! for a checked one.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// The process; a child that it forks has another number.
static UNTOLD: AtomicU32 = AtomicU32::new(0);
/// What it ends with by itself.
static OWN_CODE: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" {
    /// Has `call` called at the end of the process, with its exit code (on_exit(3)).
    fn on_exit(call: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

extern "C" fn keep(code: c_int, _: *mut c_void) {
    OWN_CODE.store(code, Ordering::Relaxed);
}

/// There was something to tell, and no way.
pub fn note() {
    let process = std::process::id();
    if UNTOLD.swap(process, Ordering::Relaxed) != process {
        // SAFETY: the function has the type that is asked for, and stays: the shim is never
        // unloaded.
        unsafe { on_exit(keep, std::ptr::null_mut()) };
    }
}

/// Whether the exit code of this process, which ends now, has to tell it.
pub fn is_left_to_tell() -> bool {
    let process = UNTOLD.load(Ordering::Relaxed);
    // A sandbox may end who asks for the number.
    process != 0 && process == std::process::id() && OWN_CODE.load(Ordering::Relaxed) == 0
}

/// For the simulated GPU: it has refused something, and could tell nobody.
#[unsafe(no_mangle)]
pub extern "C" fn streamsan_could_tell_nobody() {
    note();
}
