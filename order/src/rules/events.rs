//! Events: records and waits of streams, and of whole contexts.

use trace::{ContextId, Epoch, EventId, EventMode, StreamId, TimelineId};

use crate::clock::{Clock, Entry, NO_LINEAGE, TimelineSnapshot};
use crate::engine::Engine;

impl Engine {
    /// An event captures "the contents of the stream at the time of the call"; recording again
    /// replaces the snapshot. An event fired by a kernel (programmatic, launch completion) says no
    /// more than that the kernel has started. Without programmatic dependent launch no block fires
    /// a programmatic event before it ends.
    #[unsafe(link_section = "streamsan_hot")]
    pub(crate) fn event_record_op(&mut self, event: EventId, stream: StreamId, mode: EventMode) -> Epoch {
        match mode {
            EventMode::Plain | EventMode::External => {
                let epoch = self.stream_op(stream);
                let slot = epoch.timeline.0;
                let now = self.streams.slots[slot as usize].snapshot(slot);
                self.events.entry(event.0).or_default().set(now);
                epoch
            }
            EventMode::Programmatic | EventMode::LaunchCompletion => {
                let slot = self.slot(stream);
                let early = mode == EventMode::LaunchCompletion || self.has_programmatic_launches(slot);
                let s = &self.streams.slots[slot as usize];
                let time = s.kernel_start.filter(|_| early).unwrap_or(s.time);
                let snapshot = TimelineSnapshot { own: Entry { slot, time }, clock: s.clock.clone(), exact: !early };
                self.events.entry(event.0).or_default().set(snapshot);
                Epoch { timeline: TimelineId(slot), time: s.time }
            }
        }
    }

    /// `cuStreamWaitEvent`. A wait for an event that was never recorded ("the empty set") is
    /// nothing at all, not even an action of the legacy stream: measured on an H200
    /// (`tests/gpu/programs/what_waits.cu`), a record on one blocking stream does not wait for
    /// another one across it. Its epoch is the stream's as it was.
    #[unsafe(link_section = "streamsan_hot")]
    pub(crate) fn stream_wait(&mut self, stream: StreamId, event: EventId) -> Epoch {
        let known = self.events.get(&event.0);
        let unseen = self.resumed && known.is_none_or(|e| !e.created);
        let recorded = unseen || known.is_some_and(|e| e.current().is_some());
        if !recorded {
            let slot = self.slot(stream);
            self.host_op();
            let s = &mut self.streams.slots[slot as usize];
            // Whether a kernel may still overlap one on the far side of such a wait was not
            // measured.
            s.kernel_start = None;
            return Epoch { timeline: TimelineId(slot), time: s.time };
        }
        let slot = self.begin(stream);
        self.join_event(slot, event);
        let upto = self.streams.slots[slot as usize].time;
        self.advance(slot, upto)
    }

    /// A clock takes in what the event captured last; an event never recorded is no order.
    #[unsafe(link_section = "streamsan_hot")]
    pub(crate) fn join_event(&mut self, slot: u32, event: EventId) {
        let floor = self.host.floor_ref();
        let s = &mut self.streams.slots[slot as usize];
        if let Some(snapshot) = self.events.get(&event.0).and_then(|e| e.current()) {
            Self::join_stream(s, slot, snapshot, floor);
        }
    }

    /// `cuCtxRecordEvent`: the event captures the work of all streams of the context.
    pub(crate) fn context_record(&mut self, event: EventId, context: ContextId) -> Epoch {
        let snapshot = match self.streams.find_context(context) {
            Some(index) => {
                let floor = self.host.floor_ref();
                let context = &self.streams.contexts[index as usize];
                let mut clock = Clock::default();
                let mut many: Vec<Entry> = context.uncovered.iter().map(|slot| self.frontier(slot)).collect();
                for e in &many {
                    clock.join(&self.streams.slots[e.slot as usize].clock, NO_LINEAGE, floor);
                }
                clock.raise_many(&mut many, NO_LINEAGE, floor);
                TimelineSnapshot { clock, ..TimelineSnapshot::default() }
            }
            None => TimelineSnapshot::default(),
        };
        self.events.entry(event.0).or_default().set(snapshot);
        self.host_op()
    }

    /// `cuCtxWaitEvent`: all future work of the context waits for the event.
    pub(crate) fn context_wait(&mut self, context: ContextId, event: EventId) -> Epoch {
        let index = self.streams.context(context);
        if let Some(snapshot) = self.events.get(&event.0).and_then(|e| e.current()) {
            let floor = self.host.floor_ref();
            let context = &mut self.streams.contexts[index as usize];
            // Lineage of its own: no stream has a number like this one.
            let owner = u32::MAX - index;
            context.waits.raise(snapshot.own, owner, floor);
            context.waits.join(&snapshot.clock, owner, floor);
            context.wait_version += 1;
            context.version += 1;
        }
        self.host_op()
    }
}
