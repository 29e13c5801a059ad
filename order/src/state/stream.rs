//! Timelines of streams: their state, the table of slots, and how slots are used again.
//!
//! Owns slots, the lists of streams with work that is still to be joined, and recycling. The rules
//! that read and change clocks are in `engine` and `rules`.

use trace::{ContextId, Epoch, StreamId, StreamKind};

use crate::clock::{Clock, Entry, TimelineSnapshot};
use crate::id_map::IdMap;
use crate::state::last_kernel::LastKernel;

/// Position in a [`WorkList`] of something that is not in it.
const ABSENT: u32 = u32::MAX;

/// How many earlier clocks a stream remembers for queries that were overtaken.
const PAST: usize = 4;

/// One timeline of a stream, possibly several lives of streams one after the other. What every op
/// touches comes first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Stream {
    /// Time of its latest op. Goes on from one life to the next.
    pub(crate) time: u64,
    /// Version of the context's shared order that `clock` has taken in.
    pub(crate) joined_version: u64,
    /// When the latest op was a kernel launch, apart from records of events and waits for what is
    /// over: the time up to which its predecessors had finished when it made its first access that
    /// counts as ordered.
    pub(crate) kernel_start: Option<u64>,
    /// The latest kernel. It counts while `kernel_start` is known.
    pub(crate) kernel: LastKernel,
    /// First time that lies behind an open wait; `u64::MAX`: none.
    pub(crate) blocked_from: u64,
    /// Index of its context.
    pub context: u32,
    /// Batch whose members were applied last, and the time before it. 0: none.
    pub(crate) batch: u32,
    /// Position in the list of streams whose work the host has not covered.
    pub(crate) in_host_list: u32,
    /// Position in the list of blocking streams that the legacy stream has not joined.
    pub(crate) in_legacy_list: u32,
    /// Its kind.
    pub kind: StreamKind,
    /// Whether the stream has been destroyed (its work goes on).
    pub(crate) destroyed: bool,
    /// What its next op is ordered after, beyond the floor and its own earlier ops.
    pub(crate) clock: Clock,
    /// Which stream lives here.
    pub id: StreamId,
    /// See `batch`.
    pub(crate) batch_start: u64,
    /// Clocks before the latest changes, each with the last time for which it was the clock.
    past: Vec<(u64, Clock)>,
    past_next: u8,
}

impl Stream {
    fn new(id: StreamId, context: u32, kind: StreamKind) -> Self {
        Self {
            id,
            context,
            kind,
            destroyed: false,
            time: 0,
            clock: Clock::default(),
            joined_version: 0,
            in_host_list: ABSENT,
            in_legacy_list: ABSENT,
            kernel_start: None,
            kernel: LastKernel::default(),
            batch: 0,
            batch_start: 0,
            blocked_from: u64::MAX,
            past: Vec::new(),
            past_next: 0,
        }
    }

    /// Whether the stream takes part in the order of the legacy default stream (other than as the
    /// legacy stream).
    #[inline]
    pub(crate) fn is_blocking(&self) -> bool {
        matches!(self.kind, StreamKind::Blocking | StreamKind::PerThread)
    }

    /// To be called before `clock` changes. Of several changes by one op, the first counts.
    #[inline]
    #[unsafe(link_section = "streamsan_hot")]
    pub(crate) fn save_clock(&mut self) {
        if self.past.iter().any(|(valid, _)| *valid == self.time) {
            return;
        }
        let entry = (self.time, self.clock.clone());
        if self.past.len() < PAST {
            self.past.push(entry);
        } else {
            self.past[usize::from(self.past_next)] = entry;
            self.past_next = (self.past_next + 1) % PAST as u8;
        }
    }

    /// All that it has done and waited for is over.
    pub(crate) fn forget(&mut self) {
        self.clock.release_waits();
        self.clock = Clock::default();
        self.past.clear();
        self.past_next = 0;
        self.blocked_from = u64::MAX;
        self.kernel_start = None;
        self.batch = 0;
    }

    /// The stream's state just after its op at `upto`. When that is too long ago, the oldest clock
    /// still known, which holds at least as much.
    pub(crate) fn snapshot_at(&self, slot: u32, upto: u64) -> TimelineSnapshot {
        let upto = upto.min(self.time);
        let clock = self.past.iter().filter(|(valid, _)| *valid >= upto).min_by_key(|(valid, _)| *valid);
        let clock = clock.map_or(&self.clock, |(_, c)| c);
        TimelineSnapshot { own: Entry { slot, time: upto }, clock: clock.clone(), exact: true }
    }

    /// The stream's state now.
    #[inline]
    pub(crate) fn snapshot(&self, slot: u32) -> TimelineSnapshot {
        TimelineSnapshot { own: Entry { slot, time: self.time }, clock: self.clock.clone(), exact: true }
    }
}

/// Slots with work that is still to be joined; membership is found in the stream itself, so
/// that adding and removing cost nothing.
#[derive(Debug, Default)]
pub(crate) struct WorkList(Vec<u32>);

impl WorkList {
    #[inline]
    pub(crate) fn add(&mut self, slot: u32, position: &mut u32) {
        if *position == ABSENT {
            *position = self.0.len() as u32;
            self.0.push(slot);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes one out; `position` names the field that holds positions of this list.
    pub(crate) fn remove(&mut self, slot: u32, streams: &mut [Stream], position: fn(&mut Stream) -> &mut u32) {
        let at = std::mem::replace(position(&mut streams[slot as usize]), ABSENT);
        if at == ABSENT {
            return;
        }
        self.0.swap_remove(at as usize);
        if let Some(&moved) = self.0.get(at as usize) {
            *position(&mut streams[moved as usize]) = at;
        }
    }

    /// Takes all out.
    pub(crate) fn clear(&mut self, streams: &mut [Stream], position: fn(&mut Stream) -> &mut u32) {
        for slot in self.0.drain(..) {
            *position(&mut streams[slot as usize]) = ABSENT;
        }
    }
}

/// What the streams of one context share.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Context {
    /// Rises when the legacy stream or the whole context does something that blocking streams must
    /// take in.
    pub(crate) version: u64,
    /// Rises when the whole context does something that every stream must take in.
    pub(crate) wait_version: u64,
    /// Blocking streams with ops that the legacy stream has not joined.
    pub(crate) unjoined: WorkList,
    /// Streams with work that the host has not covered.
    pub(crate) uncovered: WorkList,
    /// Slot of its legacy default stream; 0: not seen.
    pub(crate) legacy: u32,
    /// Ordinal of its device, when known.
    pub(crate) device: Option<u32>,
    /// The context that it is a part of (a green context): index.
    pub(crate) part_of: Option<u32>,
    /// Synchronous memory operations always synchronise.
    pub(crate) sync_memops: bool,
    /// Its timelines are requests of libraries: work beside the device ([`ContextId::REQUESTS`]).
    pub(crate) is_host: bool,
    /// What every stream of the context waits for (`cuCtxWaitEvent`), beyond the floor.
    pub(crate) waits: Clock,
}

impl Context {
    /// Puts one of its streams into the lists that its kind belongs in.
    #[inline]
    pub(crate) fn enter(&mut self, stream: &mut Stream, slot: u32) {
        self.uncovered.add(slot, &mut stream.in_host_list);
        if stream.is_blocking() {
            self.unjoined.add(slot, &mut stream.in_legacy_list);
        }
    }
}

/// All streams.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Streams {
    /// Last lookup: programs use the same stream many times in a row.
    last: (StreamId, u32),
    /// By slot; slot 0 is the host's and unused here.
    pub(crate) slots: Vec<Stream>,
    /// By index.
    pub(crate) contexts: Vec<Context>,
    ids: IdMap<u32, u32>,
    context_ids: IdMap<u32, u32>,
    /// Slots of destroyed streams that the floor did not cover when last looked at.
    zombies: Vec<u32>,
    /// Slots that a new stream may have.
    free: Vec<u32>,
    /// Count of floor changes when `zombies` were last looked at.
    swept: u64,
}

impl Streams {
    pub(crate) fn new() -> Self {
        Self {
            slots: vec![Stream::new(StreamId::NONE, 0, StreamKind::NonBlocking)],
            contexts: vec![Context::default()],
            ids: IdMap::default(),
            context_ids: IdMap::default(),
            last: (StreamId::NONE, 0),
            zombies: Vec::new(),
            free: Vec::new(),
            swept: 0,
        }
    }

    /// The slot of a living stream, if it is known.
    #[inline]
    pub(crate) fn find(&self, id: StreamId) -> Option<u32> {
        if self.last.0 == id && self.last.1 != 0 {
            return Some(self.last.1);
        }
        self.ids.get(&id.0).copied()
    }

    /// Remembers a lookup.
    #[inline]
    pub(crate) fn remember(&mut self, id: StreamId, slot: u32) {
        self.last = (id, slot);
    }

    /// A slot for a host thread.
    pub(crate) fn host_slot(&mut self) -> u32 {
        self.slots.push(Stream::new(StreamId::NONE, 0, StreamKind::NonBlocking));
        (self.slots.len() - 1) as u32
    }

    /// Index of a context, made when it is new. [`ContextId::NONE`] is index 0.
    pub(crate) fn context(&mut self, id: ContextId) -> u32 {
        if id.is_none() {
            return 0;
        }
        *self.context_ids.entry(id.0).or_insert_with(|| {
            self.contexts.push(Context { is_host: id == ContextId::REQUESTS, ..Context::default() });
            (self.contexts.len() - 1) as u32
        })
    }

    /// Index of a context, if it is known.
    pub(crate) fn find_context(&self, id: ContextId) -> Option<u32> {
        if id.is_none() { Some(0) } else { self.context_ids.get(&id.0).copied() }
    }

    /// Gives a stream a slot. A stream that is known already keeps its own and takes the new kind.
    pub(crate) fn create(
        &mut self,
        id: StreamId,
        context: ContextId,
        kind: StreamKind,
        floor: &[u64],
        floor_changes: u64,
    ) -> u32 {
        let context = self.context(context);
        let slot = match self.find(id) {
            Some(slot) => {
                self.leave_lists(slot);
                let had_work = self.slots[slot as usize].time > 0;
                let stream = &mut self.slots[slot as usize];
                stream.kind = kind;
                stream.context = context;
                if had_work {
                    self.enter_lists(slot);
                }
                slot
            }
            None => self.new_slot(Stream::new(id, context, kind), floor, floor_changes),
        };
        self.ids.insert(id.0, slot);
        if kind == StreamKind::Legacy {
            self.contexts[context as usize].legacy = slot;
        }
        slot
    }

    /// A slot for a stream: a new one, or that of a dead stream whose work the floor covers.
    fn new_slot(&mut self, stream: Stream, floor: &[u64], floor_changes: u64) -> u32 {
        if self.free.is_empty() && !self.zombies.is_empty() && self.swept != floor_changes {
            self.sweep(floor, floor_changes);
        }
        match self.free.pop() {
            Some(slot) => {
                let old = &mut self.slots[slot as usize];
                *old = Stream { time: old.time, ..stream };
                slot
            }
            None => {
                self.slots.push(stream);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// A slot for a part of an executable graph, which is no stream of the program.
    pub(crate) fn part(&mut self, context: u32, floor: &[u64], floor_changes: u64) -> u32 {
        self.new_slot(Stream::new(StreamId::NONE, context, StreamKind::NonBlocking), floor, floor_changes)
    }

    /// A launch of the executable graph uses its part: it is work of this stream now.
    pub(crate) fn use_part(&mut self, slot: u32, stream: StreamId, context: u32) {
        if self.slots[slot as usize].context != context {
            self.leave_lists(slot);
        }
        let part = &mut self.slots[slot as usize];
        (part.id, part.context) = (stream, context);
    }

    /// The executable graph is gone; its work goes on.
    pub(crate) fn destroy_part(&mut self, slot: u32) {
        self.slots[slot as usize].destroyed = true;
        self.zombies.push(slot);
        self.swept = u64::MAX;
    }

    /// Puts a stream into the lists that its kind belongs in.
    #[inline]
    pub(crate) fn enter_lists(&mut self, slot: u32) {
        let stream = &mut self.slots[slot as usize];
        self.contexts[stream.context as usize].enter(stream, slot);
    }

    fn leave_lists(&mut self, slot: u32) {
        let context = &mut self.contexts[self.slots[slot as usize].context as usize];
        context.uncovered.remove(slot, &mut self.slots, |s| &mut s.in_host_list);
        context.unjoined.remove(slot, &mut self.slots, |s| &mut s.in_legacy_list);
    }

    /// Takes a stream out of its context's list when the floor covers it.
    pub(crate) fn settle(&mut self, slot: u32, floor: &[u64]) {
        let stream = &self.slots[slot as usize];
        if floor.get(slot as usize).is_some_and(|&t| t >= stream.time) {
            self.contexts[stream.context as usize].uncovered.remove(slot, &mut self.slots, |s| &mut s.in_host_list);
        }
    }

    /// A stream's handle is gone; its work goes on.
    pub(crate) fn destroy(&mut self, id: StreamId) {
        let Some(slot) = self.ids.remove(&id.0) else { return };
        if self.last.0 == id {
            self.last = (StreamId::NONE, 0);
        }
        let stream = &mut self.slots[slot as usize];
        stream.destroyed = true;
        let context = &mut self.contexts[stream.context as usize];
        if context.legacy == slot {
            context.legacy = 0;
        }
        self.zombies.push(slot);
        self.swept = u64::MAX;
    }

    /// No context waits for an event any more.
    pub(crate) fn forget_waits(&mut self) {
        self.contexts.iter_mut().for_each(|context| context.waits = Clock::default());
    }

    /// All handles are gone.
    pub(crate) fn destroy_all(&mut self) {
        let ids: Vec<u32> = self.ids.keys().copied().collect();
        ids.into_iter().for_each(|id| self.destroy(StreamId(id)));
    }

    /// A context is gone with all its streams.
    pub(crate) fn destroy_context(&mut self, id: ContextId) {
        let Some(index) = self.context_ids.remove(&id.0) else { return };
        // The parts of graphs have the number of a stream, perhaps of another context.
        let is_own = |(slot, s): &(usize, &Stream)| {
            s.context == index && !s.destroyed && self.ids.get(&s.id.0) == Some(&(*slot as u32))
        };
        let gone: Vec<StreamId> = self.slots.iter().enumerate().skip(1).filter(is_own).map(|(_, s)| s.id).collect();
        for stream in gone {
            self.destroy(stream);
        }
        self.contexts[index as usize].waits = Clock::default();
    }

    /// Frees the slots of destroyed streams whose work the floor covers: everything that a new
    /// stream does comes after it.
    fn sweep(&mut self, floor: &[u64], floor_changes: u64) {
        self.swept = floor_changes;
        let zombies = std::mem::take(&mut self.zombies);
        for slot in zombies {
            let covered = floor.get(slot as usize).copied().unwrap_or(0) >= self.slots[slot as usize].time;
            if covered {
                self.leave_lists(slot);
                self.free.push(slot);
            } else {
                self.zombies.push(slot);
            }
        }
    }

    /// Whether an epoch lies behind an open wait: then it is in the future of everything that may
    /// still release the wait.
    #[inline]
    pub(crate) fn is_behind_open_wait(&self, epoch: Epoch) -> bool {
        self.slots.get(epoch.timeline.0 as usize).is_some_and(|s| epoch.time >= s.blocked_from)
    }

    /// Whether a timeline is a request of a library, which no device waits for.
    pub(crate) fn is_request(&self, slot: u32) -> bool {
        let stream = self.slots.get(slot as usize);
        stream.and_then(|s| self.contexts.get(s.context as usize)).is_some_and(|context| context.is_host)
    }

    /// How many slots exist, those of dead and waiting streams included (for tests and statistics).
    pub(crate) fn slot_count(&self) -> usize {
        self.slots.len() - 1
    }
}
