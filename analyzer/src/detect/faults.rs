//! Faults: errors that end a context (illegal address, device-side assert) or a capture, and the
//! launches that may have caused them.
//!
//! Owns the list of launches that the host has not seen finish. CUDA reports such an error at some
//! later call. Without `--launch-blocking`, all that can be said is which launches were still in
//! flight, by stream and place in the program.

use crate::report::call_site::site;
use crate::report::elaborate::{Elaborator, called};
use crate::report::fault::UNJOINED;
use crate::report::fault::UnjoinedStream;
use crate::report::model::{Fault, FaultSite, Running};
use crate::state::captures::{Capture, Unjoined};
use rustc_hash::FxHashMap;
use trace::{CallId, Epoch, KernelId, Origin, StackId, StreamId};

/// Maximum number of launches kept for a stream: more than the driver queues.
const MOST: usize = 4096;
/// Maximum number of places reported for a stream.
const PLACES: usize = 16;

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

struct Failure {
    result: u32,
    call: CallId,
    stack: StackId,
    culprit: Option<(StreamId, KernelId, StackId)>,
    running: Vec<(StreamId, u64, Places)>,
    capture: Option<Capture>,
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

    /// Failures with names and lines.
    pub fn finish(&self, elaborator: &mut Elaborator<'_>) -> Vec<Fault> {
        let launched = |elaborator: &mut Elaborator<'_>, kernel: KernelId, stack: StackId, count: u64| FaultSite {
            kernel: elaborator.kernel_name(kernel),
            stack: elaborator.stacks.resolve(stack),
            count,
        };
        let one = |f: &Failure| {
            let stack = elaborator.stacks.resolve(f.stack);
            let (origin, unjoined) = f.capture.as_ref().map(|f| unjoined(elaborator, f)).unwrap_or_default();
            Fault {
                origin,
                unjoined,
                pid: elaborator.names.process.pid,
                result: f.result,
                call: called(&stack, elaborator.names.call(f.call)),
                culprit: f.culprit.map(|(_, kernel, stack)| launched(elaborator, kernel, stack, 1)),
                stream: f.culprit.map(|(stream, ..)| elaborator.stream_name(stream)).unwrap_or_default(),
                running: f
                    .running
                    .iter()
                    .map(|(stream, total, places)| Running {
                        stream: elaborator.stream_name(*stream),
                        total: *total,
                        places: places.len() as u64,
                        oldest: places
                            .iter()
                            .take(PLACES)
                            .map(|((kernel, stack), count)| launched(elaborator, *kernel, *stack, *count))
                            .collect(),
                    })
                    .collect(),
                stack,
            }
        };
        self.failures.iter().map(one).collect()
    }
}

/// The stream that a capture began on, as lines name it, and the streams that were not joined.
fn unjoined(elaborator: &mut Elaborator<'_>, capture: &Capture) -> (String, Vec<UnjoinedStream>) {
    let at =
        |elaborator: &mut Elaborator<'_>, stack: StackId| site(&elaborator.stacks.resolve(stack)).unwrap_or_default();
    let one = |unjoined: &Unjoined| {
        let name = elaborator.stream(unjoined.stream);
        let drawn_in = unjoined.brought_by.and_then(|wait| capture.waits.get(wait as usize));
        UnjoinedStream {
            stream: name.long,
            short: name.short,
            drawn_in: drawn_in.map_or_else(String::new, |wait| at(elaborator, wait.stack)),
            last: capture.nodes.get(unjoined.node as usize).map_or_else(String::new, |node| at(elaborator, node.stack)),
        }
    };
    let streams = capture.replay(&|_| false).unjoined.iter().map(one).collect();
    (elaborator.stream(capture.origin).short, streams)
}

/// CUDA's name of an error.
pub fn error_name(result: u32) -> &'static str {
    match result {
        700 => "CUDA_ERROR_ILLEGAL_ADDRESS",
        702 => "CUDA_ERROR_LAUNCH_TIMEOUT",
        710 => "CUDA_ERROR_ASSERT",
        714 => "CUDA_ERROR_HARDWARE_STACK_ERROR",
        715 => "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        716 => "CUDA_ERROR_MISALIGNED_ADDRESS",
        717 => "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        718 => "CUDA_ERROR_INVALID_PC",
        719 => "CUDA_ERROR_LAUNCH_FAILED",
        904 => "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
        _ => "CUDA error",
    }
}
