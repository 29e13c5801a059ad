//! Where the driver is mapped.
//!
//! Owns the start and the end of that mapping, by which calls of the driver to itself are
//! distinguished from the program's. Does not open the driver: see [`super::driver`].

use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Start and end of the real driver's mapping, once known: what it looks up for itself is not
/// redirected.
static DRIVER: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Look-ups that were answered as without us because they found another driver than the one that is
/// observed.
pub static OTHER_DRIVERS: AtomicUsize = AtomicUsize::new(0);

/// Whether `caller` lies in the object that `found` lies in: a driver that asks for its own
/// functions (the WSL stub does).
pub fn is_within_driver(caller: usize, found: *mut c_void) -> bool {
    let (start, end) = (DRIVER[0].load(Ordering::Relaxed), DRIVER[1].load(Ordering::Relaxed));
    if end != 0 && (start..end).contains(&(found as usize)) {
        return (start..end).contains(&caller);
    }
    let base = |address: *const c_void| {
        // SAFETY: an all-null Dl_info is a valid value to be overwritten, and dladdr takes any
        // address.
        unsafe {
            let mut info: libc::Dl_info = std::mem::zeroed();
            if libc::dladdr(address, &mut info) != 0 { info.dli_fbase as usize } else { 0 }
        }
    };
    let (driver, theirs) = (base(found), base(caller as *const c_void));
    driver != 0 && driver == theirs
}

/// Whether an address lies in the driver, as far as its place is known.
pub fn holds(address: u64) -> bool {
    let (start, end) = (DRIVER[0].load(Ordering::Relaxed), DRIVER[1].load(Ordering::Relaxed));
    (start..end).contains(&(address as usize))
}

/// Remembers where the driver is mapped, to spare later look-ups.
pub fn note(mapping: Range<usize>) {
    DRIVER[0].store(mapping.start, Ordering::Relaxed);
    DRIVER[1].store(mapping.end, Ordering::Relaxed);
}
