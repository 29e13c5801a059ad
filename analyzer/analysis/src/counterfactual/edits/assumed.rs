//! What is assumed of a program: another default stream, synchronisations that are left out.
//!
//! Owns the state of the assumptions ([`settings::Assumptions`]) during one pass. How they act
//! on an analysis is in [`super::assuming`].

use super::sync::SyncSite;
use rustc_hash::{FxHashMap, FxHashSet};
use settings::{Assumptions, DefaultStream};
use trace::{ContextId, GraphExecId, Op, StreamId, ThreadId};

/// The first stream that is made up for an assumption. The shim counts from 1.
const FIRST_STREAM: u32 = 0xe000_0000;

/// Which synchronisations are left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LeftOut {
    /// Those that the assumptions name.
    Named(&'static Assumptions),
    /// All.
    All,
}

/// What becomes of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EditedRecord<'a> {
    /// It is applied. With an op: this is what the order gets of it.
    Applied(Option<Op<'a>>),
    /// It is left out.
    LeftOut,
}

/// The assumptions during one pass.
#[derive(Debug)]
pub(crate) struct Assumed {
    /// What is assumed.
    pub(crate) left_out: LeftOut,
    /// Which word names a site, if one does. Resolving a stack takes long.
    pub(crate) known: FxHashMap<SyncSite, Option<usize>>,
    /// How often each word left something out.
    pub(crate) counts: Vec<u64>,
    /// For each executable graph: the words that name one of its waits, once for each wait.
    pub(crate) in_graphs: FxHashMap<GraphExecId, Vec<usize>>,
    /// Ops on default streams that are assumed to be of another kind.
    pub(crate) moved: u64,
    /// For each context: its legacy default stream.
    legacy: FxHashMap<ContextId, StreamId>,
    /// The streams that are no longer what they were: their contexts.
    changed: FxHashMap<StreamId, ContextId>,
    /// What stands for them, by host thread.
    stand_ins: FxHashMap<(StreamId, ThreadId), StreamId>,
    /// The streams that are of another kind, and nothing else.
    altered: FxHashSet<StreamId>,
    streams: u32,
}

impl Assumed {
    /// Nothing has been seen yet.
    pub(crate) fn new(left_out: LeftOut) -> Self {
        let words = if let LeftOut::Named(assumptions) = left_out { assumptions.without.len() } else { 0 };
        Self {
            left_out,
            known: FxHashMap::default(),
            counts: vec![0; words],
            in_graphs: FxHashMap::default(),
            moved: 0,
            legacy: FxHashMap::default(),
            changed: FxHashMap::default(),
            stand_ins: FxHashMap::default(),
            altered: FxHashSet::default(),
            streams: 0,
        }
    }

    /// The kind that default streams are assumed to have.
    pub(crate) fn default_stream(&self) -> Option<DefaultStream> {
        if let LeftOut::Named(assumptions) = self.left_out { assumptions.default_stream } else { None }
    }

    /// Notes a default stream whose ops go elsewhere.
    pub(crate) fn change(&mut self, stream: StreamId, context: ContextId) {
        self.changed.insert(stream, context);
    }

    /// Notes a default stream that is of another kind.
    pub(crate) fn alter(&mut self, stream: StreamId) {
        self.altered.insert(stream);
    }

    /// Counts an op of a stream, if that is of another kind.
    pub(crate) fn count(&mut self, stream: StreamId) {
        self.moved += u64::from(self.altered.contains(&stream));
    }

    /// Notes the legacy default stream of a context.
    pub(crate) fn set_legacy(&mut self, context: ContextId, stream: StreamId) {
        self.legacy.insert(context, stream);
    }

    /// Forgets a stream whose number may be given out again.
    pub(crate) fn forget(&mut self, stream: StreamId) {
        self.changed.remove(&stream);
        self.altered.remove(&stream);
    }

    /// What stands for a stream on a host thread. Second: its context, if it has to be made first.
    /// `None`: the stream is what it was.
    pub(crate) fn stand_in(&mut self, stream: StreamId, thread: ThreadId) -> Option<(StreamId, Option<ContextId>)> {
        let context = *self.changed.get(&stream)?;
        let next = StreamId(FIRST_STREAM + self.streams);
        let kept = match self.default_stream() {
            Some(DefaultStream::PerThread) => self.stand_ins.entry((stream, thread)).or_insert(next),
            _ => self.legacy.entry(context).or_insert(next),
        };
        let is_new = *kept == next;
        self.streams += u32::from(is_new);
        Some((*kept, is_new.then_some(context)))
    }

    /// The lines that say in a report what was assumed, and how often it mattered.
    pub(crate) fn lines(&self) -> Vec<String> {
        let LeftOut::Named(assumptions) = self.left_out else { return Vec::new() };
        let kind = assumptions.default_stream.map(|kind| {
            let ops = report::words::counted(self.moved, "operation", "operations");
            format!("the default stream is {} ({ops} on it)", kind.word())
        });
        let without = assumptions.without.iter().zip(&self.counts).map(|(word, count)| match count {
            0 => format!("without {word}: nothing that synchronises is called so"),
            _ => {
                let times = report::words::counted(*count, "synchronisation", "synchronisations");
                format!("without {word}: {times} left out")
            }
        });
        kind.into_iter().chain(without).collect()
    }
}
