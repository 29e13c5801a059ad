//! How much of a run goes into measuring when nobody asked for it, and which launches get it.
//!
//! Owns that choice. A launch is judged twice: inside the call that makes it, by what it is worth
//! ([`Budget::worth`]), and when it starts to run, by what has been spent until then
//! ([`Budget::grants`]). A program may enqueue thousands of launches before the first one runs.
//!
//! All measured launches together may run for [`FREE`] and a share of the time since the start, so
//! a short run is measured from end to end. The first launches of each kernel and shape, and then
//! those that findings rest on, may use all of it; others only half, which leaves them room.
//! Kernels that signal to other processes by PyTorch's signal pads are all measured: the words that
//! each of them updates say which launch of the other process it waits for, and one that is missing
//! would leave all that follow unknown. They take nothing from the budget, because most of their
//! time they wait. What is not measured has no cost: it ends like a launch whose bytes were lost,
//! and the analyzer counts it.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use trace::{NoteKind, Op};

use crate::exact::settled::GridAndBlock;
use crate::log::start::core;
use crate::runtime::lock::Lock;

/// What measured launches may take before the share counts.
const FREE: Duration = Duration::from_secs(5);

/// Launches of a kernel and shape that are its first ones.
const FIRST: u32 = 4;

/// Of launches that the code decides, one in so many is measured, to check the prediction.
const SAMPLE: u32 = 64;

/// Kernels and shapes that are told apart. With more, all begin again as first ones.
const CLASSES: usize = 1 << 16;

/// Kernels of the simulator's stand-ins begin so. Their PTX stands there to say what they touch,
/// and to interpret it takes a hundred times as long as what they compute.
pub(super) const STAND_IN: &[u8] = b"streamsan_";

/// What it is worth to measure a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Worth {
    /// It is among the first ones of its kernel and shape.
    First,
    /// A finding rests on its kernel.
    Asked,
    /// It signals to other processes.
    Signals,
    /// Nothing special.
    Other,
}

/// The budget of one process.
pub(super) struct Budget {
    share: u64,
    begun: Instant,
    spent: AtomicU64,
    seen: Lock<HashMap<(u64, GridAndBlock), u32>>,
    open: Lock<HashMap<u64, Worth>>,
    noted: AtomicBool,
}

impl Budget {
    /// This percentage of the run.
    pub(super) fn of(share: u64) -> Self {
        let (seen, open) = (Lock::new(HashMap::new()), Lock::new(HashMap::new()));
        let (spent, noted) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { share, begun: Instant::now(), spent, seen, open, noted }
    }

    /// What a launch is worth that is being made; `None`: it needs no measuring.
    pub(super) fn worth(
        &self,
        class: (u64, GridAndBlock),
        name: *const c_char,
        asked: bool,
        settled: bool,
    ) -> Option<Worth> {
        self.note();
        // SAFETY: the simulator passes a C string.
        let name = if name.is_null() { &[] } else { unsafe { CStr::from_ptr(name) }.to_bytes() };
        if name.starts_with(STAND_IN) && !asked {
            return None;
        }
        if trace::OF_SIGNAL_PADS.iter().any(|part| name.windows(part.len()).any(|at| at == part.as_bytes())) {
            return Some(Worth::Signals);
        }
        let mut seen = self.seen.lock().ok()?;
        if seen.len() >= CLASSES {
            seen.clear();
        }
        let count = seen.entry(class).or_default();
        *count = count.wrapping_add(1);
        worth(*count, asked, settled)
    }

    /// The launch of this number is on its way.
    pub(super) fn begins(&self, number: u64, worth: Worth) {
        if let Ok(mut open) = self.open.lock() {
            open.insert(number, worth);
        }
    }

    /// Whether the launch of this number, which starts to run, is still to be measured.
    pub(super) fn grants(&self, number: u64) -> bool {
        let Some(worth) = self.open.lock().ok().and_then(|open| open.get(&number).copied()) else { return true };
        is_granted(worth, self.spent.load(Ordering::Relaxed), self.begun.elapsed(), self.share)
    }

    /// The launch of this number has ended, and took so long.
    pub(super) fn spent(&self, number: u64, time: Duration) {
        let worth = self.open.lock().ok().and_then(|mut open| open.remove(&number));
        if worth != Some(Worth::Signals) {
            self.spent.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// Says in the trace, once, that launches are measured.
    fn note(&self) {
        if !self.noted.load(Ordering::Relaxed)
            && let Some(core) = core()
            && let Some(mut shared) = core.lock()
            && !self.noted.swap(true, Ordering::Relaxed)
        {
            shared.define(&Op::Note { kind: NoteKind::Info, text: trace::SIM_MEASURES.into(), count: 1 });
        }
    }
}

/// What the `count`th launch of a class is worth.
fn worth(count: u32, asked: bool, settled: bool) -> Option<Worth> {
    match (asked, settled) {
        (true, _) => Some(Worth::Asked),
        (_, true) => count.is_multiple_of(SAMPLE).then_some(Worth::Other),
        _ if count <= FIRST => Some(Worth::First),
        _ => Some(Worth::Other),
    }
}

/// Whether so much may be spent after this time. `spent`: nanoseconds.
fn is_granted(worth: Worth, spent: u64, run: Duration, share: u64) -> bool {
    let all = FREE.as_nanos() as u64 + run.as_nanos() as u64 / 100 * share;
    match worth {
        Worth::Signals => true,
        Worth::First | Worth::Asked => spent <= all,
        Worth::Other => spent <= all / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_launches_come_first_and_settled_ones_are_sampled() {
        let of = |counts: std::ops::RangeInclusive<u32>, asked, settled| {
            counts.map(|count| worth(count, asked, settled)).collect::<Vec<_>>()
        };
        assert_eq!(of(1..=FIRST, false, false), [Some(Worth::First); FIRST as usize]);
        assert_eq!(worth(FIRST + 1, false, false), Some(Worth::Other));
        assert_eq!(worth(FIRST + 1, true, false), Some(Worth::Asked));
        let sampled = of(1..=3 * SAMPLE, false, true).into_iter().flatten().count();
        assert_eq!(sampled, 3);
    }

    #[test]
    fn signals_are_measured_whatever_was_spent_and_take_nothing() {
        let budget = Budget::of(33);
        let worth = |name: &CStr| budget.worth((7, GridAndBlock::new([1; 3], [32, 1, 1])), name.as_ptr(), false, true);
        let barrier = c"_ZN4c10d16symmetric_memoryL14barrier_kernelEPPjiiim";
        let reduce = c"_ZN70_GLOBAL__N__2b_26_CUDASymmetricMemoryOps_cu_26one_shot_all_reduce_kernelEv";
        assert_eq!([barrier, reduce, c"_Z4fillPfi"].map(worth), [Some(Worth::Signals), Some(Worth::Signals), None]);
        for (number, worth, granted) in [(1, Worth::First, true), (2, Worth::Signals, false), (3, Worth::First, false)]
        {
            budget.begins(number, worth);
            assert_eq!(budget.grants(number), granted || worth == Worth::Signals);
            budget.spent(number, Duration::from_secs(60));
        }
        assert_eq!(budget.spent.load(Ordering::Relaxed), 120_000_000_000);
    }

    #[test]
    fn a_short_run_is_measured_and_a_long_one_to_a_share() {
        let seconds = |n: u64| n * 1_000_000_000;
        let granted = |worth, spent, run| is_granted(worth, seconds(spent), Duration::from_secs(run), 33);
        for worth in [Worth::First, Worth::Asked] {
            assert!(granted(worth, 5, 5) && granted(worth, 37, 100) && !granted(worth, 39, 100));
        }
        assert!(granted(Worth::Other, 2, 5) && granted(Worth::Other, 18, 100) && !granted(Worth::Other, 20, 100));
        // What a run settles at, when each granted launch takes a second and each other one a
        // tenth.
        let (mut spent, mut run) = (0.0, 0.0);
        while run < 1000.0 {
            let is_measured = is_granted(Worth::Asked, (spent * 1e9) as u64, Duration::from_secs_f64(run), 33);
            let took = if is_measured { 1.0 } else { 0.1 };
            spent += if is_measured { took } else { 0.0 };
            run += took;
        }
        assert!((0.32..0.345).contains(&(spent / run)), "{}", spent / run);
    }
}
