//! History: the latest ops of each stream and of the host, so that a finding can show the ops
//! around it and the waits between them.
//!
//! Owns a short memory for every lane, and the excerpt that a race takes when it is found. Knows no
//! rule of order: it says which waits the program made, not what they order. Memory is bounded:
//! [`KEPT`] steps a lane, [`MAX_LANES`] lanes.

use crate::race::Race;
use rustc_hash::FxHashMap;
use trace::{CallId, Epoch, EventId, KernelId, Op, Origin, StackId, StreamId, SyncId, SyncScope, ThreadId};

/// Number of steps remembered of a lane.
const KEPT: usize = 16;
/// Maximum number of lanes.
const MAX_LANES: usize = 512;
/// Number of steps shown before the first of the two ops, after it, and before the second.
const SHOWN: [usize; 3] = [2, 4, 5];

/// What a step was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A kernel.
    Kernel(KernelId),
    /// A copy.
    Copy,
    /// A fill.
    Fill,
    /// A graph.
    Graph,
    /// A host function in stream order.
    HostFunction,
    /// A value written by the stream.
    WriteValue,
    /// The stream waited for a value.
    WaitValue,
    /// A stream-ordered allocation.
    Alloc,
    /// A free.
    Free,
    /// An event was recorded.
    Record(EventId),
    /// The stream waits for an event.
    Wait(EventId),
    /// The host has waited.
    HostWait,
    /// The host itself touched memory.
    Host,
}

/// What a step waited for, apart from its own lane and the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// Nothing.
    Nothing,
    /// This step.
    Entry(u64),
    /// Everything submitted up to this step.
    All(u64),
}

/// One step of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistoryEntry {
    /// Counts the steps of the process, from 1.
    pub number: u64,
    /// Counts the steps of the lane, from 1; 0: no longer known.
    pub nth: u64,
    /// The lane: a stream, or [`StreamId::NONE`] for the host.
    pub lane: StreamId,
    /// What it was.
    pub what: What,
    /// The API function.
    pub call: CallId,
    /// Where.
    pub stack: StackId,
    /// Its epoch.
    pub(crate) epoch: Epoch,
    /// What it waited for.
    pub after: After,
    /// Of a wait: the stream that it is for, or that its event was recorded on. None: all of them,
    /// or not known.
    pub of: StreamId,
    /// The host thread.
    pub thread: ThreadId,
}

/// What a wait waits for, and the stream of it.
type Awaited = (After, StreamId);

/// The ops around a race, in the order of submission.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// The steps.
    pub steps: Vec<HistoryEntry>,
    /// Index of the earlier op.
    pub previous: usize,
    /// Index of the later op.
    pub access: usize,
}

#[derive(Default)]
struct Lane {
    /// A ring: step n of the lane stands at n modulo [`KEPT`].
    steps: Vec<HistoryEntry>,
    count: u64,
}

impl Lane {
    fn latest(&self) -> impl Iterator<Item = &HistoryEntry> {
        (0..self.steps.len() as u64).map(|back| &self.steps[((self.count - 1 - back) % KEPT as u64) as usize])
    }
}

/// The history of one process.
#[derive(Default)]
pub struct History {
    /// Where the lane of a stream stands among `lanes`.
    index: FxHashMap<StreamId, usize>,
    lanes: Vec<(StreamId, Lane)>,
    /// The lane of the last step: the next step is often in the same.
    latest: usize,
    records: FxHashMap<EventId, (u64, StreamId)>,
    /// Waits of the host that have begun, each with its place: their end may come without one.
    syncs: FxHashMap<SyncId, (Awaited, StackId)>,
    number: u64,
}

impl History {
    /// Observes an op that has been given its epoch.
    #[inline]
    pub fn observe(&mut self, op: &Op<'_>, origin: &Origin, epoch: Epoch) {
        let nothing = (After::Nothing, StreamId::NONE);
        let mut stack = origin.stack;
        let (lane, what, (after, of)) = match *op {
            Op::Launch { stream, kernel, .. } => (stream, What::Kernel(kernel), nothing),
            Op::Copy { stream, .. } | Op::AttributedCopy { stream, .. } => (stream, What::Copy, nothing),
            Op::Set { stream, .. } => (stream, What::Fill, nothing),
            Op::HostTransfer { request, .. } => (request, What::Copy, nothing),
            Op::RequestDone { request } => (StreamId::NONE, What::HostWait, self.last(request)),
            Op::GraphLaunch { stream, .. } => (stream, What::Graph, nothing),
            Op::HostFunc { stream, .. } => (stream, What::HostFunction, nothing),
            Op::WriteValue { stream, .. } => (stream, What::WriteValue, nothing),
            Op::WaitValue { stream, .. } => (stream, What::WaitValue, nothing),
            Op::Alloc { stream, kind: trace::MemoryKind::Pool, .. } => (stream, What::Alloc, nothing),
            Op::Free { stream, kind, .. } if kind != trace::FreeKind::Block => (stream, What::Free, nothing),
            Op::EventRecord { event, stream, .. } => {
                self.records.insert(event, (self.number + 1, stream));
                (stream, What::Record(event), nothing)
            }
            Op::StreamWait { event, stream, .. } => (stream, What::Wait(event), self.record(event)),
            Op::EventReached { event, .. } => (StreamId::NONE, What::HostWait, self.record(event)),
            Op::StreamIdle { stream, .. } => (StreamId::NONE, What::HostWait, self.last(stream)),
            Op::SyncBegin { sync, scope, stream, event, .. } => {
                let after = match scope {
                    SyncScope::Stream => self.last(stream),
                    SyncScope::Event => self.record(event),
                    SyncScope::Context | SyncScope::Device | SyncScope::Legacy => {
                        (After::All(self.number), StreamId::NONE)
                    }
                };
                self.syncs.insert(sync, (after, origin.stack));
                return;
            }
            Op::SyncEnd { sync } => {
                let (awaited, began) = self.syncs.remove(&sync).unwrap_or((nothing, StackId::NONE));
                if origin.stack.is_none() {
                    stack = began;
                }
                (StreamId::NONE, What::HostWait, awaited)
            }
            Op::EventDestroy { event } => {
                self.records.remove(&event);
                return;
            }
            _ => return,
        };
        self.push(HistoryEntry { after, of, stack, ..entry(lane, what, origin, epoch) });
    }

    /// The same for a launch.
    #[inline(always)]
    pub fn launch(&mut self, lane: StreamId, kernel: KernelId, origin: &Origin, epoch: Epoch) {
        self.push(entry(lane, What::Kernel(kernel), origin, epoch));
    }

    #[inline(always)]
    fn push(&mut self, step: HistoryEntry) {
        self.number += 1;
        if self.lanes.get(self.latest).is_none_or(|(stream, _)| *stream != step.lane) {
            self.find_lane(step.lane);
        }
        let Some((_, lane)) = self.lanes.get_mut(self.latest) else { return };
        let at = (lane.count % KEPT as u64) as usize;
        lane.count += 1;
        let step = HistoryEntry { number: self.number, nth: lane.count, ..step };
        match lane.steps.get_mut(at) {
            Some(slot) => *slot = step,
            None => lane.steps.push(step),
        }
    }

    /// Makes the lane of a stream the latest.
    fn find_lane(&mut self, stream: StreamId) {
        if self.lanes.len() >= MAX_LANES && !self.index.contains_key(&stream) {
            self.forget_oldest();
        }
        self.latest = *self.index.entry(stream).or_insert_with(|| {
            self.lanes.push((stream, Lane::default()));
            self.lanes.len() - 1
        });
    }

    #[cold]
    fn forget_oldest(&mut self) {
        // Half of the lanes at once, so that it is rare.
        let mut ages: Vec<u64> = self.lanes.iter().filter_map(|(_, l)| l.latest().next()).map(|s| s.number).collect();
        ages.sort_unstable();
        let limit = ages.get(ages.len() / 2).copied().unwrap_or_default();
        self.lanes.retain(|(_, lane)| lane.latest().next().is_some_and(|s| s.number > limit));
        self.index.retain(|stream, at| {
            let kept = self.lanes.iter().position(|(kept, _)| kept == stream);
            *at = kept.unwrap_or_default();
            kept.is_some()
        });
        self.latest = 0;
    }

    fn lane(&self, stream: StreamId) -> Option<&Lane> {
        Some(&self.lanes.get(*self.index.get(&stream)?)?.1)
    }

    fn record(&self, event: EventId) -> Awaited {
        let record = self.records.get(&event);
        record.map_or((After::Nothing, StreamId::NONE), |(number, stream)| (After::Entry(*number), *stream))
    }

    fn last(&self, stream: StreamId) -> Awaited {
        let latest = self.lane(stream).and_then(|lane| lane.latest().next());
        (latest.map_or(After::Nothing, |step| After::Entry(step.number)), stream)
    }

    /// The ops around a race that was just found.
    pub(crate) fn around(&self, race: &Race) -> Around {
        let (p, a) = (&race.previous, &race.access);
        let of = |lane: StreamId| self.lane(lane).into_iter().flat_map(Lane::latest);
        let made_up = |access: &crate::memory::Access, number| {
            use crate::memory::Cause;
            let what = match access.site.cause {
                Cause::Kernel => What::Kernel(access.site.kernel),
                Cause::Copy | Cause::Message => What::Copy,
                Cause::Set | Cause::Discard => What::Fill,
                Cause::Value => What::WriteValue,
                Cause::Alloc => What::Alloc,
                Cause::Free => What::Free,
                Cause::Host | Cause::HostBetween => What::Host,
            };
            let s = &access.site;
            let origin = Origin { call: s.call, stack: s.stack, thread: s.thread, ..Origin::default() };
            HistoryEntry { number, ..entry(s.stream, what, &origin, access.epoch) }
        };
        let at = |access: &crate::memory::Access| of(access.site.stream).find(|s| s.epoch == access.epoch).copied();
        // A graph node is shown as itself, at the position of the launch.
        let node = |step: HistoryEntry, access: &crate::memory::Access| match access.site.node {
            0 => step,
            _ => HistoryEntry { nth: step.nth, ..made_up(access, step.number) },
        };
        let previous = node(at(p).unwrap_or_else(|| made_up(p, 0)), p);
        let access = node(at(a).unwrap_or_else(|| made_up(a, self.number + 1)), a);
        let mut steps = vec![previous];
        steps.extend(of(p.site.stream).filter(|s| s.number < previous.number).take(SHOWN[0]));
        let mut later: Vec<&HistoryEntry> =
            of(p.site.stream).filter(|s| s.number > previous.number && s.number < access.number).collect();
        later.reverse();
        steps.extend(later.into_iter().take(SHOWN[1]));
        steps.extend(of(a.site.stream).filter(|s| s.number < access.number).take(SHOWN[2]));
        // The host orders the two by its waits between them.
        let host = of(StreamId::NONE).filter(|s| s.number > previous.number && s.number < access.number);
        steps.extend(host.take(SHOWN[0]));
        // Where a wait leads to a third stream, its record is shown too.
        let sources: Vec<u64> =
            steps.iter().filter_map(|s| if let After::Entry(number) = s.after { Some(number) } else { None }).collect();
        let from =
            self.index.values().flat_map(|lane| self.lanes[*lane].1.latest()).filter(|s| sources.contains(&s.number));
        steps.extend(from.take(SHOWN[1]));
        steps.retain(|s| s.number != previous.number && s.number != access.number);
        steps.sort_by_key(|s| s.number);
        steps.dedup_by_key(|s| s.number);
        let previous_at = steps.partition_point(|s| s.number < previous.number);
        steps.insert(previous_at, previous);
        let access_at = steps.partition_point(|s| s.number <= access.number.max(previous.number));
        steps.insert(access_at, access);
        Around { steps, previous: previous_at, access: access_at }
    }
}

/// A step that waits for nothing, without its numbers.
#[inline(always)]
fn entry(lane: StreamId, what: What, origin: &Origin, epoch: Epoch) -> HistoryEntry {
    let Origin { call, stack, thread, .. } = *origin;
    HistoryEntry {
        number: 0,
        nth: 0,
        lane,
        what,
        call,
        stack,
        epoch,
        after: After::Nothing,
        of: StreamId::NONE,
        thread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Access, AccessKind, AllocationId, Cause, Extent, Site};
    use trace::{EventMode, Region, ThreadId, TimelineId};

    fn epoch(stream: u32, time: u64) -> Epoch {
        Epoch { timeline: TimelineId(stream), time }
    }

    fn fill(recent: &mut History, stream: u32, time: u64) {
        let op = Op::Set { stream: StreamId(stream), dst: Region::linear(0, 8), asynchronous: true };
        recent.observe(&op, &Origin::default(), epoch(stream, time));
    }

    fn access(stream: u32, time: u64) -> Access {
        Access {
            epoch: epoch(stream, time),
            kind: AccessKind::Write,
            extent: Extent::exact(0, 8),
            allocation: AllocationId::NONE,
            site: Site { thread: ThreadId(1), stream: StreamId(stream), ..Site::unknown(Cause::Set) },
            exclusion: crate::memory::Exclusion::NONE,
        }
    }

    fn race(previous: Access, access: Access) -> Race {
        Race::judge(&previous, &access, false).expect("a race")
    }

    #[test]
    fn both_ops_and_the_wait_between_their_neighbours_are_there() {
        let mut recent = History::default();
        fill(&mut recent, 1, 1);
        let event = EventId(7);
        let mode = EventMode::Plain;
        recent.observe(&Op::EventRecord { event, stream: StreamId(1), mode }, &Origin::default(), epoch(1, 2));
        fill(&mut recent, 1, 3);
        recent.observe(&Op::StreamWait { event, stream: StreamId(2), mode }, &Origin::default(), epoch(2, 1));
        fill(&mut recent, 2, 2);
        let around = recent.around(&race(access(1, 3), access(2, 2)));
        let numbers: Vec<u64> = around.steps.iter().map(|s| s.number).collect();
        assert_eq!((numbers, around.previous, around.access), (vec![1, 2, 3, 4, 5], 2, 4));
        assert_eq!(around.steps[3].after, After::Entry(2));
    }

    #[test]
    fn what_is_long_ago_is_made_up_from_the_race_and_nothing_grows() {
        let mut recent = History::default();
        for time in 1..1000 {
            fill(&mut recent, 1, time);
        }
        for stream in 2..5000 {
            fill(&mut recent, stream, 1);
        }
        assert!(recent.lanes.len() <= MAX_LANES && recent.lanes.iter().all(|(_, l)| l.steps.len() <= KEPT));
        let around = recent.around(&race(access(1, 3), access(4999, 1)));
        assert_eq!((around.previous, around.access, around.steps.len()), (0, 1, 2));
        assert_eq!((around.steps[0].nth, around.steps[0].lane), (0, StreamId(1)));
        assert_eq!(around.steps[1].nth, 1);
    }
}
