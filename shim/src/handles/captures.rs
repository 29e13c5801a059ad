//! How many streams are being captured now.
//!
//! Owns one counter for the whole process: while it is 0, no call asks the driver whether its
//! stream is captured. The question itself is in `crate::ids::captures`.

use std::sync::atomic::{AtomicU32, Ordering};

/// Streams that are being captured now, over all threads.
#[unsafe(link_section = "streamsan_state")]
static CAPTURES: AtomicU32 = AtomicU32::new(0);

/// Whether any stream is being captured.
#[inline(always)]
pub fn any() -> bool {
    CAPTURES.load(Ordering::Acquire) != 0
}

/// A capture has begun.
pub fn begun() {
    CAPTURES.fetch_add(1, Ordering::AcqRel);
}

/// A capture has ended.
pub fn ended() {
    let _ = CAPTURES.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
}
