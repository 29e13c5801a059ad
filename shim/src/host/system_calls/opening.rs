//! Opens pages for calls of the C library.
//!
//! Owns what [`super`] does to the pages of bytes that a call passes to the kernel or takes.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use crate::arch::page_size;
use crate::host::page_protection::{self, PROTECTED};
use crate::host::{held_touches, holds, in_place, pinned_bounds};
use crate::real::driver_mapping;
use crate::runtime::lock::tid;
use crate::runtime::{guard, thread_state};
use crate::stack::frames::{self, Depth, Frames};

pub(super) fn touch(start: *const c_void, len: usize, writes: bool) {
    let start = start as u64;
    if len > 0 {
        let end = start.saturating_add(len as u64);
        page_protection::touched(start, end, writes, false, |_| false);
        held_touches::given(start, end, writes);
    }
}

/// Opens the pages of bytes that the kernel may touch, and keeps them open until the thread's next
/// call of CUDA. Which bytes it touches is not known: nothing is recorded.
pub fn open_pages(start: u64, len: u64) {
    let end = start.saturating_add(len);
    if (PROTECTED.load(Ordering::Acquire) == 0 && !in_place::exists()) || !concerns(start, end) {
        return;
    }
    page_protection::let_go(start, end);
    if in_place::may_hold(start, end) {
        holds::give(start, end, tid());
    }
}

/// Whether all these bytes can be read, once their pages are open.
pub(super) fn readable(at: usize, len: usize) -> bool {
    open_pages(at as u64, len as u64);
    crate::stack::native::is_readable_range(at as u64, at.saturating_add(len) as u64)
}

/// Whether any of these bytes may be protected now or later.
pub fn concerns(start: u64, end: u64) -> bool {
    start < end && (in_place::may_hold(start, end) || pinned_bounds::may_overlap(start, end))
}

/// Whether the driver calls, for itself: it maps and unmaps memory where the program's was.
fn is_of_driver() -> bool {
    let mut frames = Frames::new();
    frames::capture(&mut frames, Depth::Caller);
    frames.native().iter().take(2).any(|frame| driver_mapping::holds(*frame))
}

/// Leaves the pages of these bytes to the program for as long as the memory exists, if they may be
/// protected: makes them accessible now, and does not protect them again. Not for what the shim
/// and the driver do to memory.
pub fn let_go(start: u64, end: u64) {
    if !concerns(start, end) || guard::is_inside() || thread_state::inside_transport() || is_of_driver() {
        return;
    }
    let end = end.saturating_add(page_size() - 1) & !(page_size() - 1);
    holds::let_go(start & !(page_size() - 1), end);
    page_protection::let_go(start, end);
}
