//! ThreadSanitizer's own runtime in the same process.
//!
//! Owns what is said and done then. Its wrappers of the C library's functions need it to be
//! started, which instrumented code would do: what arrives here is passed on. Loads and stores
//! arrive at one of the two only, at the one that was linked or loaded first.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::gate::{global, say};

/// The real `__tsan_init`; this library's own address stands for none, null for not looked for.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Starts the real runtime, where it is loaded behind this library, whose `__tsan_init` is `own`.
pub(crate) fn start(own: *mut c_void) {
    let mut real = REAL.load(Ordering::Relaxed);
    if real.is_null() {
        // SAFETY: a string that ends in NUL.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"__tsan_init".as_ptr()) };
        real = if found.is_null() { own } else { found };
        REAL.store(real, Ordering::Relaxed);
    }
    if real != own {
        // SAFETY: ThreadSanitizer's function of this name takes nothing and answers nothing.
        unsafe { core::mem::transmute::<*mut c_void, extern "C" fn()>(real)() };
    }
}

/// Says so if the real runtime is there: its users would look for its reports in vain, or for ours.
pub(crate) fn warn() {
    // Exported by every version of the real runtime, and not by this library.
    if !global(c"__tsan_get_current_report").is_null() {
        say("streamsan: ThreadSanitizer's runtime is in this process too; each access reaches only one of the two: \
             link without it (docs/guide/host-memory.md)\n");
    }
}
