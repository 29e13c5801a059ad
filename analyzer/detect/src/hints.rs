//! Hints: calls that are no race but probably a mistake. Off by default, listed apart, never
//! failing a run.
//!
//! Owns when each kind of hint ([`HintKind`]) is reported. A hint is about calls of the program, so
//! only their call sites are kept; `report::fault` makes sentences of them. Events whose creation
//! was not seen, and those shared with other processes, are left alone: code that is not observed
//! may record or wait for them.

pub use crate::hint_kind::HintKind;
use crate::memory::Allocations;
use crate::state::communicators::{Communicators, Disagreement, Enqueued, disagreements};
use crate::state::happens_before::View;
use crate::state::names::Names;
use crate::state::signal_pads::PadUse;
use crate::state::streams::Streams;
use kernels::{FlagLoad, LoadScope, UnfencedCopy};
use rustc_hash::{FxHashMap, FxHashSet};
use trace::{Epoch, EventId, KernelId, Op, Origin, Region, Space, StackId, StreamId, StreamKind, SyncScope};

/// Maximum number of hints kept for one process.
const MAX_HINTS: usize = 256;

/// Maximum number of call sites kept of kernels on the legacy stream.
const MAX_SITES: usize = 64;

/// `CU_EVENT_INTERPROCESS`.
const INTERPROCESS: u32 = 4;

#[derive(Clone, Copy)]
struct RecordedAt {
    stream: StreamId,
    epoch: Epoch,
    stack: StackId,
}

#[derive(Default)]
struct Event {
    /// Whether its creation was seen, and it belongs to this process alone.
    known: bool,
    last: Option<RecordedAt>,
    /// Whether the last record was waited for or queried.
    consumed: bool,
    /// Whether any record ever was waited for or queried.
    used: bool,
    /// The previous record, when recording again has lost it.
    lost: Option<RecordedAt>,
}

/// One hint, by its call sites.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// What it is about.
    pub kind: HintKind,
    /// Where.
    pub stack: StackId,
    /// Where the other call was made, if there are two.
    pub other: StackId,
    /// The kernel whose code it is about, and where in it.
    pub inside: Option<(KernelId, CodeSpot)>,
}

/// What a hint about the code of a kernel is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CodeSpot {
    /// It polls a flag of another process by too weak a load.
    Flag(FlagLoad),
    /// It lacks a fence between the proxies.
    Copy(UnfencedCopy),
}

/// A launch of a kernel whose code has such a place.
#[derive(Clone, Copy, Debug)]
pub struct DoubtfulLaunch {
    /// Where it was launched.
    pub stack: StackId,
    /// On which stream.
    pub stream: StreamId,
    /// The kernel.
    pub kernel: KernelId,
    /// The place.
    pub spot: CodeSpot,
}

/// A hint with the number of its occurrences.
#[derive(Clone, Copy)]
pub struct Said {
    /// The hint.
    pub key: Key,
    /// The streams that the sentence names.
    pub streams: (StreamId, StreamId),
    /// Occurrences.
    pub count: u64,
}

/// The hints of one process.
#[derive(Default)]
pub struct Hints {
    events: FxHashMap<EventId, Event>,
    index: FxHashMap<Key, usize>,
    said: Vec<Said>,
    legacy: FxHashMap<StackId, (StreamId, u64)>,
    legacy_launches: u64,
    non_blocking_launches: u64,
    blocking_launches: u64,
    communicators: Communicators,
}

impl Hints {
    /// The collectives of communicators that the process has enqueued.
    pub fn communicators(&self) -> &Communicators {
        &self.communicators
    }

    /// Observes an op that has just been given its epoch.
    pub fn observe(&mut self, op: &Op<'_>, origin: &Origin, view: &View<'_>, names: &Names, streams: &Streams) {
        match *op {
            Op::EventCreate { event, flags, .. } => {
                // Events that became known in other ways (used before they were seen, IPC) carry
                // the name of another call.
                let known = names.call(origin.call) == "cuEventCreate" && flags & INTERPROCESS == 0;
                self.events.insert(event, Event { known, ..Event::default() });
            }
            Op::EventDestroy { event } => {
                if let Some(event) = self.events.remove(&event) {
                    self.ended(&event);
                }
            }
            Op::EventRecord { event, stream, .. } => self.recorded(event, stream, origin.stack, view),
            Op::ContextRecord { event, .. } => self.recorded(event, StreamId::NONE, origin.stack, view),
            Op::StreamWait { stream, event, .. } => self.waited(event, stream, origin.stack),
            Op::ContextWait { event, .. } => self.waited(event, StreamId::NONE, origin.stack),
            Op::SyncBegin { scope: SyncScope::Event, event, .. } => self.waited(event, StreamId::NONE, origin.stack),
            Op::EventReached { event, .. } => self.used(event),
            Op::Collective { stream, communicator, members, number, group } => {
                let operation = Enqueued { communicator, number, group, stack: origin.stack, stream };
                let context = streams.get(stream).map(|stream| stream.context);
                self.communicators.enqueued(context, members, operation);
            }
            Op::Launch { stream, .. } => self.launched(stream, origin.stack, streams),
            _ => {}
        }
    }

    /// Observes a copy node of a graph that is launched. Such a node goes on using what a program
    /// takes for a temporary: a vector that a captured upload was made from.
    pub fn copy_node(&mut self, op: &Op<'_>, stream: StreamId, stack: StackId, memory: &Allocations) {
        let Op::Copy { ref dst, ref src, dst_space, src_space, .. } = *op else { return };
        let is_pageable = |region: &Region, space: Space| {
            matches!(space, Space::Host | Space::Unified)
                && region.array.is_none()
                && !region.is_empty()
                && memory.locate(region.start).is_none()
        };
        // A side in no memory at all is one of the two only where the other one is a device's.
        if is_pageable(dst, dst_space) != is_pageable(src, src_space) {
            let key = Key { kind: HintKind::PageableNode, stack, other: StackId::NONE, inside: None };
            self.say(key, (stream, StreamId::NONE), 1);
        }
    }

    /// Observes an event node of a graph that is launched.
    pub fn event_node(&mut self, op: &Op<'_>, stream: StreamId, stack: StackId, view: &View<'_>) {
        match *op {
            Op::EventRecord { event, .. } => self.recorded(event, stream, stack, view),
            Op::StreamWait { event, .. } => self.waited(event, stream, stack),
            _ => {}
        }
    }

    /// Observes a launch of a kernel whose code is doubtful.
    pub fn doubtful_launch(&mut self, launch: &DoubtfulLaunch) {
        let DoubtfulLaunch { stack, stream, kernel, spot } = *launch;
        let kinds = match spot {
            CodeSpot::Flag(load) => {
                let narrow = (load.scope != LoadScope::System).then_some(HintKind::FlagScope);
                [narrow, load.data.map(|_| HintKind::FlagUnordered)]
            }
            CodeSpot::Copy(_) => [Some(HintKind::UnfencedCopy), None],
        };
        for kind in kinds.into_iter().flatten() {
            let key = Key { kind, stack, other: StackId::NONE, inside: Some((kernel, spot)) };
            self.say(key, (stream, StreamId::NONE), 1);
        }
    }

    /// Two launches use one word of a signal pad without order.
    pub fn signal_pad(&mut self, [first, second]: [PadUse; 2]) {
        let key = Key { kind: HintKind::SignalPad, stack: second.stack, other: first.stack, inside: None };
        self.say(key, (second.stream, first.stream), 1);
    }

    fn recorded(&mut self, event: EventId, stream: StreamId, stack: StackId, view: &View<'_>) {
        let Some(e) = self.events.get_mut(&event) else { return };
        if let Some(last) = e.last {
            let covered = last.stream == stream || view.covers(last.epoch);
            if !e.consumed && !covered {
                e.lost = Some(last);
            } else if covered {
                e.lost = None;
            }
        }
        e.last = Some(RecordedAt { stream, epoch: view.epoch, stack });
        e.consumed = false;
    }

    fn used(&mut self, event: EventId) {
        if let Some(e) = self.events.get_mut(&event) {
            (e.used, e.consumed, e.lost) = (true, true, None);
        }
    }

    fn waited(&mut self, event: EventId, stream: StreamId, stack: StackId) {
        let Some(e) = self.events.get(&event).filter(|e| e.known) else { return };
        let hint = match (e.last, e.lost) {
            (None, _) => Some((HintKind::WaitNeverRecorded, StackId::NONE, (stream, StreamId::NONE))),
            (Some(last), Some(lost)) => Some((HintKind::RecordedAgain, lost.stack, (lost.stream, last.stream))),
            _ => None,
        };
        let place = match (hint, e.last) {
            (Some((HintKind::RecordedAgain, ..)), Some(last)) => last.stack,
            _ => stack,
        };
        if let Some((kind, other, streams)) = hint {
            self.say(Key { kind, stack: place, other, inside: None }, streams, 1);
        }
        self.used(event);
    }

    fn ended(&mut self, e: &Event) {
        if e.known
            && !e.used
            && let Some(last) = e.last
        {
            let key = Key { kind: HintKind::NeverWaitedFor, stack: last.stack, other: StackId::NONE, inside: None };
            self.say(key, (last.stream, StreamId::NONE), 1);
        }
    }

    fn launched(&mut self, stream: StreamId, stack: StackId, streams: &Streams) {
        match streams.get(stream).map(|s| s.kind) {
            Some(StreamKind::Legacy) => {
                self.legacy_launches += 1;
                if self.legacy.len() < MAX_SITES || self.legacy.contains_key(&stack) {
                    self.legacy.entry(stack).or_insert((stream, 0)).1 += 1;
                }
            }
            Some(StreamKind::NonBlocking) => self.non_blocking_launches += 1,
            Some(StreamKind::Blocking) => self.blocking_launches += 1,
            _ => {}
        }
    }

    fn say(&mut self, key: Key, streams: (StreamId, StreamId), count: u64) {
        match self.index.get(&key) {
            Some(&at) => self.said[at].count += count,
            None if self.said.len() < MAX_HINTS => {
                self.index.insert(key, self.said.len());
                self.said.push(Said { key, streams, count });
            }
            None => {}
        }
    }

    /// Two members in this process disagree about the order of two communicators.
    fn members_disagree(&mut self) {
        let (places, mut known) = (self.communicators.places(), FxHashSet::default());
        for (at, here) in places.iter().enumerate() {
            for there in &places[..at] {
                for Disagreement { here: [first, second], count } in disagreements(here, there, &mut known) {
                    let (kind, stack, other) = (HintKind::CommunicatorOrder, second.stack, first.stack);
                    self.say(Key { kind, stack, other, inside: None }, (first.stream, second.stream), count);
                }
            }
        }
    }

    /// All hints of the process, in the order in which they came up.
    pub fn finish(&mut self) -> &[Said] {
        self.members_disagree();
        let mut events: Vec<(EventId, Event)> = self.events.drain().collect();
        events.sort_by_key(|(id, _)| id.0);
        for (_, event) in &events {
            self.ended(event);
        }
        // A program that uses several streams on purpose: most of its kernels are where it wants
        // them, these few may have been forgotten.
        let otherwise = self.blocking_launches == 0 && self.non_blocking_launches > self.legacy_launches;
        if otherwise {
            let mut sites: Vec<(StackId, (StreamId, u64))> = self.legacy.drain().collect();
            sites.sort_by_key(|(stack, (_, count))| (std::cmp::Reverse(*count), stack.0));
            for (stack, (stream, count)) in sites {
                self.say(
                    Key { kind: HintKind::LegacyKernel, stack, other: StackId::NONE, inside: None },
                    (stream, StreamId::NONE),
                    count,
                );
            }
        }
        &self.said
    }
}
