//! Faults: errors that end a context (illegal address, device-side assert) or a capture, and the
//! launches that may have caused them.
//!
//! Owns the list of launches that the host has not seen finish. CUDA reports such an error at some
//! later call. Without `--launch-blocking`, all that can be said is which launches were still in
//! flight, by stream and place in the program.

use crate::state::captures::Capture;
use rustc_hash::FxHashMap;
use trace::{CallId, Epoch, KernelId, Origin, StackId, StreamId};

/// Maximum number of launches kept for a stream: more than the driver queues.
const MOST: usize = 4096;

/// `CUDA_ERROR_STREAM_CAPTURE_UNJOINED`.
pub const UNJOINED: u32 = 904;

#[derive(Clone, Copy)]
struct Launched {
    epoch: Epoch,
    kernel: KernelId,
    stack: StackId,
}

/// The latest launches of a stream.
struct Lane {
    stream: StreamId,
    /// At most [`MOST`], then a ring.
    launches: Vec<Launched>,
    oldest: usize,
}

impl Lane {
    fn in_order(&self) -> impl Iterator<Item = &Launched> {
        let (late, early) = self.launches.split_at(self.oldest);
        early.iter().chain(late)
    }
}

/// Places that launched, each with its number of launches.
type Places = Vec<((KernelId, StackId), u64)>;

/// An error that ended a context or a capture.
pub struct Failure {
    /// The driver's answer (`CUresult`).
    pub result: u32,
    /// The call that returned it.
    pub call: CallId,
    /// Where that was.
    pub stack: StackId,
    /// The launch that caused it, if every launch was waited for.
    pub culprit: Option<(StreamId, KernelId, StackId)>,
    /// Otherwise: the launches in flight, by stream, with their number.
    pub running: Vec<(StreamId, u64, Places)>,
    /// The capture with unjoined work.
    pub capture: Option<Capture>,
}

/// Launches in flight and failures of one process.
#[derive(Default)]
pub struct Faults {
    index: FxHashMap<StreamId, usize>,
    lanes: Vec<Lane>,
    /// The lane of the last launch: the next launch is often in the same.
    last: usize,
    failures: Vec<Failure>,
}

impl Faults {
    /// Notes a kernel launch.
    #[inline(always)]
    pub fn launched(&mut self, stream: StreamId, kernel: KernelId, stack: StackId, epoch: Epoch) {
        if self.lanes.get(self.last).is_none_or(|lane| lane.stream != stream) {
            self.find_lane(stream);
        }
        let Some(Lane { launches, oldest, .. }) = self.lanes.get_mut(self.last) else { return };
        let launched = Launched { epoch, kernel, stack };
        if launches.len() < MOST {
            launches.push(launched);
        } else {
            launches[*oldest] = launched;
            *oldest = (*oldest + 1) % MOST;
        }
    }

    /// Makes the lane of a stream the last one.
    fn find_lane(&mut self, stream: StreamId) {
        self.last = *self.index.entry(stream).or_insert_with(|| {
            self.lanes.push(Lane { stream, launches: Vec::new(), oldest: 0 });
            self.lanes.len() - 1
        });
    }

    /// Notes that a call returned an error that ends the context. `blamed`: the stream whose last
    /// launch caused it, if every launch is waited for. `finished`: whether the host has seen a
    /// launch finish.
    /// `capture`: what was not joined.
    pub fn failed(
        &mut self,
        result: u32,
        blamed: StreamId,
        origin: &Origin,
        capture: Option<Capture>,
        finished: impl Fn(Epoch) -> bool,
    ) {
        let last = self.index.get(&blamed).and_then(|lane| self.lanes[*lane].in_order().last());
        let culprit = last.map(|l| (blamed, l.kernel, l.stack));
        let mut running = Vec::new();
        for lane in self.lanes.iter().filter(|_| culprit.is_none() && result != UNJOINED) {
            let mut places: Places = Vec::new();
            let mut total = 0;
            for l in lane.in_order().filter(|l| !finished(l.epoch)) {
                total += 1;
                match places.iter_mut().find(|(place, _)| *place == (l.kernel, l.stack)) {
                    Some((_, count)) => *count += 1,
                    None => places.push(((l.kernel, l.stack), 1)),
                }
            }
            if total > 0 {
                running.push((lane.stream, total, places));
            }
        }
        running.sort_by_key(|(stream, ..)| stream.0);
        self.failures.push(Failure { result, call: origin.call, stack: origin.stack, culprit, running, capture });
    }

    /// The failures, in their order.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }
}
