//! The running exact mode: what it holds from start to end.
//!
//! Owns [`Exact`] and the statics by which hooks find out, at the cost of one load, that there is
//! nothing to do. Does not act on launches: its siblings do.

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use cuda_sys::CUcontext;
use trace::codec::List;
use trace::{Epoch, ExactRun, NoteKind, Op, exact_kind};

use super::demand::Demand;
use super::sanitizer_api::SanitizerApi;
use super::settled::SettledLaunches;
use super::table_pool::TablePool;
use crate::log::core::Core;
use crate::log::start::core;
use crate::runtime::lock::Lock;
use crate::runtime::stderr;

/// How long the program is held back for a free table.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// Runs that one record holds: 256 KiB, which even the smallest ring has room for.
const RUNS_A_RECORD: usize = 8192;

/// The running exact mode.
pub(super) struct Exact {
    pub(super) api: SanitizerApi,
    pub(super) image: Vec<u8>,
    /// Names of kernels that are measured from the start; `None`: of none.
    pub(super) pattern: Option<Vec<u8>>,
    /// Launches that are not measured any more, if that was not ruled out.
    pub(super) settled: Option<SettledLaunches>,
    /// Kernels that are measured once the analyzer asks for them, if that was asked for.
    pub(super) demand: Option<Demand>,
    /// Guards the functions that add patches, which the API wants called one at a time: contexts
    /// that have ours.
    pub(super) patched: Lock<Vec<CUcontext>>,
    pub(super) pool: Lock<TablePool>,
    /// Held back in vain once: do not try again before a launch has finished.
    pub(super) stuck: AtomicBool,
    /// Launches that got no table.
    pub(super) missed: AtomicU64,
    /// Executable graphs of which nothing was left to measure when they were launched last, by
    /// their handles.
    pub(super) idle: Lock<HashSet<usize>>,
    /// Modules that were loaded and could not be patched: what they run must not be taken to touch
    /// nothing.
    pub(super) refused: Lock<Vec<*mut c_void>>,
}

// SAFETY: what is not in a lock is read only or atomic.
unsafe impl Sync for Exact {}
// SAFETY: as above.
unsafe impl Send for Exact {}

#[unsafe(link_section = "streamsan_state")]
pub(super) static EXACT: AtomicPtr<Exact> = AtomicPtr::new(std::ptr::null_mut());
#[unsafe(link_section = "streamsan_state")]
pub(super) static PENDING: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// This thread is reading tables.
    pub(super) static DRAINING: Cell<bool> = const { Cell::new(false) };
}

#[inline]
pub(super) fn running() -> Option<&'static Exact> {
    // SAFETY: a published value is never freed.
    unsafe { EXACT.load(Ordering::Acquire).as_ref() }
}

/// Says once that there is no exact mode, in this process and in its coverage.
#[cold]
pub(super) fn fail(why: std::fmt::Arguments<'_>) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        stderr::say(why);
        note("exact mode", 1);
    }
}

pub(super) fn note(text: &str, count: u64) {
    if let Some(core) = core()
        && let Some(mut shared) = core.lock()
    {
        shared.define(&Op::Note { kind: NoteKind::Unobserved, text: text.into(), count });
    }
}

/// Logs what a launch, or a node of a graph's launch, has touched, and what is not ordered of that.
pub(super) fn log_exact(core: &Core, epoch: Epoch, node: u32, flags: u32, runs: &[ExactRun]) {
    if let Some(mut shared) = core.lock() {
        let Epoch { timeline, time } = epoch;
        let is_order = |run: &&ExactRun| run.kind & exact_kind::MASK > exact_kind::ATOMIC_WRITE;
        let (order, touched): (Vec<ExactRun>, Vec<ExactRun>) = runs.iter().partition(is_order);
        for runs in order.chunks(RUNS_A_RECORD) {
            shared.define(&Op::ExactOrder { timeline, time, node, runs: List::new(runs) });
        }
        let mut rest = &touched[..];
        while rest.len() > RUNS_A_RECORD {
            let (now, later) = rest.split_at(RUNS_A_RECORD);
            shared.define(&Op::ExactPart { timeline, time, node, runs: List::new(now) });
            rest = later;
        }
        shared.define(&Op::Exact { timeline, time, node, flags, runs: List::new(rest) });
    }
}
