//! Call sites of streams and events: where streams were created, events recorded and waited for.
//!
//! Owns these *places in the program*, so that a report can say which synchronisation is there and
//! which is missing. Does not own the order: that is the crate `order`. Memory is bounded:
//! destroyed streams are forgotten after a while.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use trace::{CallId, ContextId, Epoch, EventId, Origin, StackId, StreamId, StreamKind, ThreadId};

/// Maximum number of destroyed streams that are remembered.
const MAX_DESTROYED: usize = 4096;
/// Maximum number of linked pairs that are remembered.
const MAX_LINKS: usize = 1 << 16;

/// One lifetime of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Its id.
    pub id: StreamId,
    /// Its kind.
    pub kind: StreamKind,
    /// Its context.
    pub context: ContextId,
    /// Where it was created.
    pub stack: StackId,
    /// The host thread that created it.
    pub thread: ThreadId,
    /// CUDA's handle.
    pub handle: u64,
    /// Where a pool that creates many at once handed it out last.
    pub taken: Option<StackId>,
}

/// A stream waited for an event that another one recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The event.
    pub(crate) event: EventId,
    /// What the record captured.
    pub upto: Epoch,
    /// Where it was recorded.
    pub recorded: StackId,
    /// Where it was waited for.
    pub waited: StackId,
}

/// The events that link two streams directly.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Links {
    /// The last time the later stream waited for the earlier one.
    pub forward: Option<Link>,
    /// The last time the earlier stream waited for the later one.
    pub backward: Option<Link>,
    /// Where the later stream last waited for an event that was never recorded.
    pub empty: Option<StackId>,
    /// The host thread's last query was there, for an event that had never been recorded.
    pub vain: Option<StackId>,
    /// The last record on the earlier stream that failed.
    pub no_record: Option<FailedCall>,
    /// The last wait of the later stream that failed.
    pub no_wait: Option<FailedCall>,
}

/// A call that would have ordered, and failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailedCall {
    /// The function.
    pub call: CallId,
    /// Where it was called.
    pub stack: StackId,
    /// The driver's answer (`CUresult`).
    pub result: u32,
}

#[derive(Clone, Copy)]
struct Recorded {
    stream: StreamId,
    upto: Epoch,
    stack: StackId,
}

/// All streams and events of one process.
#[derive(Default)]
pub struct Streams {
    streams: FxHashMap<StreamId, Stream>,
    destroyed: VecDeque<StreamId>,
    events: FxHashMap<EventId, Recorded>,
    links: FxHashMap<(StreamId, StreamId), Link>,
    empty: FxHashMap<StreamId, StackId>,
    /// Host threads whose last query was for an event that had never been recorded, and where.
    vain: FxHashMap<ThreadId, StackId>,
    /// The last record, or the last wait, of each stream that failed.
    failed: FxHashMap<(StreamId, bool), FailedCall>,
    /// The program's names.
    names: FxHashMap<StreamId, String>,
    /// Whether events may have been recorded unseen.
    unseen: bool,
}

impl Streams {
    /// Adds a stream that was created or first seen.
    pub fn create(&mut self, stream: Stream) {
        self.names.remove(&stream.id);
        self.streams.insert(stream.id, stream);
    }

    /// Notes that a pool handed a stream out.
    pub fn taken(&mut self, stream: StreamId, stack: StackId) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.taken = Some(stack).filter(|stack| !stack.is_none());
        }
    }

    /// Notes the program's name for a stream.
    pub fn name(&mut self, stream: StreamId, name: &str) {
        self.names.insert(stream, name.to_string());
    }

    /// The program's name for a stream.
    pub fn named(&self, stream: StreamId) -> Option<&str> {
        self.names.get(&stream).map(String::as_str)
    }

    /// Notes that a stream was destroyed. Its description is still needed for a while.
    pub fn destroy(&mut self, stream: StreamId) {
        self.destroyed.push_back(stream);
        if self.destroyed.len() > MAX_DESTROYED
            && let Some(oldest) = self.destroyed.pop_front()
        {
            self.streams.remove(&oldest);
            self.empty.remove(&oldest);
            self.names.remove(&oldest);
            self.failed.retain(|(stream, _), _| *stream != oldest);
            self.links.retain(|(a, b), _| *a != oldest && *b != oldest);
        }
    }

    /// Notes that an event was recorded in a stream. `upto`: the epoch of the record.
    pub fn record(&mut self, event: EventId, stream: StreamId, upto: Epoch, stack: StackId) {
        self.events.insert(event, Recorded { stream, upto, stack });
    }

    /// Notes that a stream waits for an event.
    pub fn wait(&mut self, stream: StreamId, event: EventId, stack: StackId) {
        match self.events.get(&event) {
            Some(r) => {
                if self.links.len() < MAX_LINKS || self.links.contains_key(&(r.stream, stream)) {
                    let link = Link { event, upto: r.upto, recorded: r.stack, waited: stack };
                    self.links.insert((r.stream, stream), link);
                }
            }
            None if self.unseen => {}
            None => {
                self.empty.insert(stream, stack);
            }
        }
    }

    /// Notes that a query of a host thread found an event complete. `record`: which one it found, 0
    /// for none.
    pub fn reached(&mut self, thread: ThreadId, record: u64, stack: StackId) {
        match record {
            0 => drop(self.vain.insert(thread, stack)),
            _ => drop(self.vain.remove(&thread)),
        }
    }

    /// Notes that a call failed which would have recorded an event on a stream, or made it wait.
    pub fn failed(&mut self, stream: StreamId, records: bool, result: u32, origin: &Origin) {
        let failed = FailedCall { call: origin.call, stack: origin.stack, result };
        self.failed.insert((stream, records), failed);
    }

    /// Records are missing: what was recorded last is not known of any event.
    pub fn forget_events(&mut self) {
        self.events.clear();
        self.empty.clear();
        self.vain.clear();
        self.unseen = true;
    }

    /// Forgets an event.
    pub fn destroy_event(&mut self, event: EventId) {
        self.events.remove(&event);
    }

    /// The description of a stream.
    pub fn get(&self, stream: StreamId) -> Option<&Stream> {
        self.streams.get(&stream)
    }

    /// What links two streams. `thread`: the host thread of the later operation.
    pub(crate) fn links(&self, earlier: StreamId, later: StreamId, thread: ThreadId) -> Links {
        Links {
            forward: self.links.get(&(earlier, later)).copied(),
            backward: self.links.get(&(later, earlier)).copied(),
            empty: self.empty.get(&later).copied(),
            vain: self.vain.get(&thread).copied(),
            no_record: self.failed.get(&(earlier, true)).copied(),
            no_wait: self.failed.get(&(later, false)).copied(),
        }
    }
}
