//! What lives in a process, as records: its memory, streams, graphs, ranges, and its definitions.
//!
//! Owns the choice of what the next segment must be told before it can be read on its own. It is
//! kept by whoever writes the records, in the process of the analyzer: the program pays nothing.
//! Does not write anything.
//!
//! What is told are the very records that made what lives, in their order. Work in flight is not
//! among it: before a gap everything counts as over ([`trace::Op::Gap`]). Events are not either: a
//! wait for one that is not known counts as a wait.
//!
//! Stacks and Python's code objects are many, and most of them are of the past. They are told again
//! in a segment when something in it refers to them, not before. All other definitions are told at
//! its beginning.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, Hasher};

use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};
use smallvec::SmallVec;
use trace::{ContextId, FreeKind, MemoryKind, Op, Record, tag};

/// A record that is told again, and its place among them.
struct Told {
    seq: u64,
    bytes: ToldBytes,
}

/// An allocation's record takes no room of its own.
type ToldBytes = SmallVec<[u8; 64]>;

/// Live memory from its first address on.
struct Range {
    end: u64,
    context: ContextId,
    told: Told,
}

/// Memory that is in use no more, with its allocation and its free. It is told as well: what is
/// done to it is not done to memory that nobody knows.
struct Ghost {
    start: u64,
    end: u64,
    told: [Told; 2],
}

/// As many are remembered as by the analysis.
const MAX_GHOSTS: usize = 1024;

/// Tensor maps are kept by the other bits of their hashes.
const MAP_BITS: u32 = 48;

/// A definition that is told when it is needed, and the segment that has it.
struct Needed {
    bytes: Box<[u8]>,
    segment: u64,
}

/// What an op is about: its tag, an id or an address, and a second id.
type Key = (u16, u64, u32);

/// What lives in one process.
#[derive(Default)]
pub(crate) struct LiveState {
    seq: u64,
    /// Number of the segment that is being written.
    segment: u64,
    definitions: Vec<Box<[u8]>>,
    stacks: FxHashMap<u32, Needed>,
    codes: FxHashMap<u32, Needed>,
    roots: BTreeMap<u64, Range>,
    blocks: BTreeMap<u64, Range>,
    ghosts: VecDeque<Ghost>,
    others: FxHashMap<Key, Told>,
    /// By executable graph, then by index and tag: what the node is, then where it was captured.
    nodes: FxHashMap<u32, BTreeMap<(u32, u16), Told>>,
    ranges: FxHashMap<u32, Vec<Told>>,
    /// Definitions that the records since the last call of [`LiveState::needed`] refer to.
    again: Vec<u8>,
    /// Some memory has had a name.
    has_names: bool,
    last_stack: (u32, u64),
}

/// Appends a record with its length.
pub(crate) fn framed(block: &mut Vec<u8>, record: &[u8]) {
    block.extend_from_slice(&(record.len() as u32).to_le_bytes());
    block.extend_from_slice(record);
}

impl LiveState {
    /// Takes the next record.
    #[inline]
    pub(crate) fn observe(&mut self, bytes: &[u8]) {
        let Some(kind) = bytes.first_chunk().map(|tag| u16::from_le_bytes(*tag)) else { return };
        // Behind the tag: call (2), thread (4), stack (4).
        if let Some(stack) = bytes.get(8..12).and_then(|word| <[u8; 4]>::try_from(word).ok()) {
            self.refer(u32::from_le_bytes(stack));
        }
        match kind {
            // Work, and what orders it: nothing of it lasts.
            tag::Launch
            | tag::Copy
            | tag::AttributedCopy
            | tag::Set
            | tag::Filled
            | tag::EventRecord
            | tag::StreamWait
            | tag::SyncBegin
            | tag::SyncEnd
            | tag::StreamIdle
            | tag::EventReached
            | tag::GraphLaunch => {}
            _ => self.observe_other(bytes),
        }
    }

    /// The records of this segment refer to a stack.
    #[inline]
    fn refer(&mut self, stack: u32) {
        if stack == 0 || self.last_stack == (stack, self.segment) {
            return;
        }
        self.last_stack = (stack, self.segment);
        let Some(known) = self.stacks.get_mut(&stack).filter(|known| known.segment != self.segment) else { return };
        known.segment = self.segment;
        if let Ok(Record { op: Op::Stack { python, .. }, .. }) = Record::decode(&known.bytes) {
            for frame in python.iter() {
                let code = self.codes.get_mut(&frame.code.0).filter(|code| code.segment != self.segment);
                if let Some(code) = code {
                    code.segment = self.segment;
                    framed(&mut self.again, &code.bytes);
                }
            }
        }
        framed(&mut self.again, &known.bytes);
    }

    fn tell(&mut self, bytes: &[u8]) -> Told {
        self.seq += 1;
        Told { seq: self.seq, bytes: ToldBytes::from_slice(bytes) }
    }

    fn put(&mut self, key: Key, bytes: &[u8]) {
        self.has_names |= key.0 == tag::MemoryName;
        let told = self.tell(bytes);
        self.others.insert(key, told);
    }

    fn drop_all(&mut self, tags: &[u16], id: u64) {
        if tags == [tag::MemoryName] && !self.has_names {
            return;
        }
        tags.iter().for_each(|tag| drop(self.others.remove(&(*tag, id, 0))));
    }

    #[inline(never)]
    fn observe_other(&mut self, bytes: &[u8]) {
        let Ok(Record { op, origin }) = Record::decode(bytes) else { return };
        let needed = |segment| Needed { bytes: bytes.into(), segment };
        match op {
            Op::Stack { id, .. } => drop(self.stacks.insert(id.0, needed(self.segment))),
            Op::PyCode { id, .. } => drop(self.codes.insert(id.0, needed(self.segment))),
            // They say what has happened, not what is.
            Op::Note { .. } => {}
            op if op.is_definition() => self.definitions.push(bytes.into()),
            Op::ContextCreate { context, .. } => self.put((op.tag(), context.0.into(), 0), bytes),
            Op::ContextPart { context, .. } => self.put((op.tag(), context.0.into(), 0), bytes),
            Op::ContextSyncMemops { context, .. } => self.put((op.tag(), context.0.into(), 0), bytes),
            Op::ContextDestroy { context } => self.end_context(context),
            Op::StreamCreate { stream, .. }
            | Op::StreamTaken { stream }
            | Op::StreamName { stream, .. }
            | Op::CaptureBegin { stream, .. } => self.put((op.tag(), stream.0.into(), 0), bytes),
            Op::RequestStart { request } => self.put((op.tag(), request.0.into(), 0), bytes),
            Op::CaptureEnd { stream, .. } => self.drop_all(&[tag::CaptureBegin], stream.0.into()),
            Op::StreamDestroy { stream } => self.end_stream(stream.0),
            Op::RequestDone { request } => self.drop_all(&[tag::RequestStart, tag::StreamName], request.0.into()),
            Op::SharedEvent { event, .. } => self.put((op.tag(), event.0.into(), 0), bytes),
            Op::EventDestroy { event } => self.drop_all(&[tag::SharedEvent], event.0.into()),
            // Whether something has released the latest one is not known here.
            Op::WaitValue { .. } | Op::SemaphoreWait { .. } => self.put((op.tag(), 0, 0), bytes),
            Op::HostThreads {} => self.put((op.tag(), 0, 0), bytes),
            Op::Alloc { ptr, size, kind, context, .. } => self.alloc(ptr, size, kind, context, bytes),
            Op::Free { ptr, kind: FreeKind::Block, .. } => self.end_block(ptr),
            Op::Free { ptr, .. } => {
                if let Some(root) = self.end_root(ptr) {
                    let told = [root.told, self.tell(bytes)];
                    self.ghosts.push_back(Ghost { start: ptr, end: root.end, told });
                    if self.ghosts.len() > MAX_GHOSTS {
                        self.ghosts.pop_front();
                    }
                }
            }
            Op::Alias { ptr, .. }
            | Op::SyncMemops { ptr, .. }
            | Op::Global { ptr, .. }
            | Op::MemoryName { ptr, .. }
            | Op::HostWatched { ptr } => self.put((op.tag(), ptr, 0), bytes),
            // Memory may have several keys.
            Op::SharedMemory { ptr, key } => self.put((op.tag(), ptr, FxBuildHasher.hash_one(key) as u32), bytes),
            Op::Unalias { ptr } => self.drop_all(&[tag::Alias], ptr),
            Op::ArrayCreate { array, .. } | Op::ArrayAt { array, .. } | Op::ArrayLevels { array, .. } => {
                self.put((op.tag(), array.0.into(), 0), bytes)
            }
            Op::ArrayDestroy { array } => {
                self.drop_all(&[tag::ArrayCreate, tag::ArrayAt, tag::ArrayLevels], array.0.into())
            }
            Op::ObjectCreate { object, .. } => self.put((op.tag(), object, 0), bytes),
            Op::TensorMap { map, .. } => {
                // Of maps with one hash the last: a program that makes ever new ones does not
                // use ever more memory.
                let mut hasher = FxHasher::default();
                hasher.write(map);
                self.put((op.tag(), hasher.finish() >> MAP_BITS, 0), bytes);
            }
            Op::ObjectDestroy { object } => self.drop_all(&[tag::ObjectCreate], object),
            Op::GraphExec { exec, .. } => {
                self.nodes.remove(&exec.0);
                self.put((op.tag(), exec.0.into(), 0), bytes);
            }
            Op::GraphNode { exec, index, stack, .. } => {
                self.refer(stack.0);
                let told = self.tell(bytes);
                self.nodes.entry(exec.0).or_default().insert((index, op.tag()), told);
            }
            Op::NodeCaptured { exec, index, .. } | Op::NodeConditional { exec, index, .. } => {
                let told = self.tell(bytes);
                self.nodes.entry(exec.0).or_default().insert((index, op.tag()), told);
            }
            Op::GraphExecDestroy { exec } => {
                self.nodes.remove(&exec.0);
                self.drop_all(&[tag::GraphExec], exec.0.into());
            }
            Op::Checking { on: false } => self.put((op.tag(), 0, 0), bytes),
            Op::Checking { on: true } => self.drop_all(&[tag::Checking], 0),
            Op::RangePush { .. } | Op::DomainPush { .. } => {
                let told = self.tell(bytes);
                self.ranges.entry(origin.thread.0).or_default().push(told);
            }
            Op::RangePop {} => self.end_range(origin.thread.0, b""),
            Op::DomainPop { domain } => self.end_range(origin.thread.0, domain.0),
            Op::RangeStart { range, .. } => self.put((op.tag(), range, 0), bytes),
            Op::RangeEnd { range } => self.drop_all(&[tag::RangeStart], range),
            _ => {}
        }
    }

    fn alloc(&mut self, ptr: u64, size: u64, kind: MemoryKind, context: ContextId, bytes: &[u8]) {
        let end = ptr.saturating_add(size);
        let in_root = |(_, root): (&u64, &Range)| ptr < root.end;
        let is_block = kind == MemoryKind::Block && self.roots.range(..=ptr).next_back().is_some_and(in_root);
        let range = Range { end, context, told: self.tell(bytes) };
        self.end_blocks(ptr, end);
        if is_block {
            self.blocks.insert(ptr, range);
        } else {
            for start in within(&self.roots, ptr, end) {
                self.end_root(start);
            }
            self.ghosts.retain(|ghost| ghost.end <= ptr || ghost.start >= end);
            self.roots.insert(ptr, range);
        }
    }

    fn end_block(&mut self, ptr: u64) {
        let known = self.blocks.remove(&ptr).is_some();
        // A block outside of every root is a root of its own.
        if !known && self.roots.get(&ptr).is_some_and(|root| is_block(&root.told.bytes)) {
            self.roots.remove(&ptr);
        }
        self.drop_all(&[tag::MemoryName], ptr);
    }

    fn end_blocks(&mut self, start: u64, end: u64) {
        for ptr in within(&self.blocks, start, end) {
            self.blocks.remove(&ptr);
            self.drop_all(&[tag::MemoryName], ptr);
        }
    }

    fn end_root(&mut self, ptr: u64) -> Option<Range> {
        // The address may be an alias, which alone goes away.
        if !self.roots.contains_key(&ptr) && self.others.remove(&(tag::Alias, ptr, 0)).is_some() {
            return None;
        }
        self.drop_all(&[tag::SyncMemops, tag::MemoryName, tag::HostWatched], ptr);
        let root = self.roots.remove(&ptr)?;
        self.end_blocks(ptr, root.end);
        self.others.retain(|(kind, id, _), told| {
            if *kind == tag::SharedMemory && *id == ptr {
                return false;
            }
            let target = |told: &Told| match Record::decode(&told.bytes) {
                Ok(Record { op: Op::Alias { target, .. }, .. }) => Some(target),
                _ => None,
            };
            *kind != tag::Alias || !target(told).is_some_and(|target| (ptr..root.end).contains(&target))
        });
        Some(root)
    }

    /// Ends the innermost range of a thread in an NVTX domain.
    fn end_range(&mut self, thread: u32, domain: &[u8]) {
        let is_in = |told: &Told| match Record::decode(&told.bytes) {
            Ok(Record { op: Op::DomainPush { domain: of, .. }, .. }) => of.0 == domain,
            _ => domain.is_empty(),
        };
        if let Some(open) = self.ranges.get_mut(&thread)
            && let Some(at) = open.iter().rposition(is_in)
        {
            open.remove(at);
        }
    }

    fn end_stream(&mut self, stream: u32) {
        self.drop_all(&[tag::StreamCreate, tag::StreamTaken, tag::StreamName, tag::CaptureBegin], stream.into());
    }

    fn end_context(&mut self, context: ContextId) {
        self.drop_all(&[tag::ContextCreate, tag::ContextPart, tag::ContextSyncMemops], context.0.into());
        if context.is_none() {
            return;
        }
        let roots = self.roots.iter().filter(|(_, root)| root.context == context);
        for ptr in roots.map(|(ptr, _)| *ptr).collect::<Vec<_>>() {
            self.end_root(ptr);
        }
        let streams: Vec<u32> = self
            .others
            .iter()
            .filter_map(|((kind, ..), told)| match Record::decode(&told.bytes) {
                Ok(Record { op: Op::StreamCreate { stream, context: of, .. }, .. })
                    if *kind == tag::StreamCreate && of == context =>
                {
                    Some(stream.0)
                }
                _ => None,
            })
            .collect();
        streams.into_iter().for_each(|stream| self.end_stream(stream));
    }

    /// Definitions of earlier segments that the records since the last call refer to: records with
    /// their lengths.
    pub(crate) fn needed(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.again)).filter(|again| !again.is_empty())
    }

    /// The stacks that this segment or a later one refers to.
    pub(crate) fn stacks_since(&self, segment: u64) -> impl Iterator<Item = &[u8]> {
        self.stacks.values().filter(move |known| known.segment >= segment).map(|known| &known.bytes[..])
    }

    /// A segment begins. Answers the records that it is told, in their order. Their stacks are
    /// among what [`LiveState::needed`] answers next.
    pub(crate) fn begin(&mut self, segment: u64) -> Vec<Box<[u8]>> {
        self.segment = segment;
        let mut live: Vec<&Told> = self.others.values().collect();
        live.extend(self.roots.values().chain(self.blocks.values()).map(|range| &range.told));
        live.extend(self.ghosts.iter().flat_map(|ghost| &ghost.told));
        live.extend(self.nodes.values().flat_map(BTreeMap::values));
        live.extend(self.ranges.values().flatten());
        live.sort_unstable_by_key(|told| told.seq);
        let live: Vec<Box<[u8]>> = live.into_iter().map(|told| told.bytes.as_slice().into()).collect();
        for bytes in &live {
            if let Ok(Record { op, origin }) = Record::decode(bytes) {
                self.refer(origin.stack.0);
                if let Op::GraphNode { stack, .. } = op {
                    self.refer(stack.0);
                }
            }
        }
        self.definitions.iter().cloned().chain(live).collect()
    }
}

fn is_block(bytes: &[u8]) -> bool {
    matches!(Record::decode(bytes), Ok(Record { op: Op::Alloc { kind: MemoryKind::Block, .. }, .. }))
}

/// The first addresses of what overlaps these addresses.
fn within(ranges: &BTreeMap<u64, Range>, start: u64, end: u64) -> Vec<u64> {
    let before = ranges.range(..start).next_back().filter(|(_, range)| range.end > start);
    before.into_iter().chain(ranges.range(start..end.max(start))).map(|(ptr, _)| *ptr).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{CallId, Origin, PoolId, StackId, StreamId};

    fn record(op: Op<'_>, stack: u32) -> Vec<u8> {
        let mut room = vec![0; 4096];
        let origin = Origin { call: CallId(1), stack: StackId(stack), ..Origin::default() };
        let len = Record { origin, op }.encode(&mut room).expect("room");
        room.truncate(len);
        room
    }

    fn alloc(ptr: u64, size: u64, kind: MemoryKind) -> Vec<u8> {
        let (stream, pool) = (StreamId(0), PoolId(0));
        record(Op::Alloc { ptr, size, kind, context: ContextId(1), stream, pool, flags: 0 }, 7)
    }

    fn free(ptr: u64, kind: FreeKind) -> Vec<u8> {
        record(Op::Free { ptr, kind, stream: StreamId(0) }, 8)
    }

    /// First addresses of what a segment would be told to be live: allocated, and not freed.
    fn live(records: &[Vec<u8>]) -> Vec<u64> {
        let mut state = LiveState::default();
        records.iter().for_each(|record| state.observe(record));
        let told = state.begin(1);
        let mut live: Vec<u64> = Vec::new();
        for bytes in &told {
            match Record::decode(bytes).map(|record| record.op) {
                Ok(Op::Alloc { ptr, .. } | Op::Alias { ptr, .. }) => live.push(ptr),
                Ok(Op::Free { ptr, .. }) => live.retain(|start| *start != ptr),
                _ => {}
            }
        }
        live
    }

    #[test]
    fn what_was_freed_is_not_told() {
        use MemoryKind::{Block, Device};
        let root = alloc(0x1000, 0x1000, Device);
        assert_eq!(live(&[root.clone(), alloc(0x1100, 16, Block)]), [0x1000, 0x1100]);
        assert_eq!(live(&[root.clone(), alloc(0x1100, 16, Block), free(0x1100, FreeKind::Block)]), [0x1000]);
        // A root takes its blocks and aliases along.
        let alias = record(Op::Alias { ptr: 0x9000, target: 0x1000, size: 16 }, 1);
        let all = [root.clone(), alloc(0x1100, 16, Block), alias, free(0x1000, FreeKind::Plain)];
        assert_eq!(live(&all), [0_u64; 0]);
        assert_eq!(live(&all[..3]), [0x1000, 0x1100, 0x9000]);
        // What was allocated over it has ended it, and does not bring it back.
        let over = [root, alloc(0x1100, 16, Block), alloc(0x1080, 0x100, Block), free(0x1080, FreeKind::Block)];
        assert_eq!(live(&over), [0x1000]);
        let destroyed = record(Op::ContextDestroy { context: ContextId(1) }, 1);
        assert_eq!(live(&[over[0].clone(), destroyed]), [0_u64; 0]);
    }

    #[test]
    fn stacks_are_told_again_once_for_each_segment_that_refers_to_them() {
        let mut state = LiveState::default();
        for id in [7, 8] {
            let native = trace::codec::List::new(&[1, 2]);
            let op = Op::Stack { id: StackId(id), native, python: trace::codec::List::new(&[]) };
            state.observe(&record(op, 0));
        }
        state.observe(&alloc(0x1000, 16, MemoryKind::Device));
        assert_eq!(state.needed(), None, "they are in this segment already");
        let stacks = |block: Vec<u8>| {
            block.len()
                / (4 + record(
                    Op::Stack {
                        id: StackId(7),
                        native: trace::codec::List::new(&[1, 2]),
                        python: trace::codec::List::new(&[]),
                    },
                    0,
                )
                .len())
        };
        assert_eq!(state.begin(1).len(), 1);
        assert_eq!(state.needed().map(stacks), Some(1), "that of the live allocation");
        state.observe(&free(0x5000, FreeKind::Plain));
        state.observe(&free(0x6000, FreeKind::Plain));
        assert_eq!(state.needed().map(stacks), Some(1), "that of the frees");
        state.observe(&alloc(0x3000, 16, MemoryKind::Device));
        assert_eq!(state.needed(), None);
    }
}
