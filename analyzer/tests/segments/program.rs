//! Random programs as records, numbered and stamped as the shim does it. Every op has a line of its
//! own, which is the only address of its stack.

use order::{Engine, Options};
use proptest::prelude::*;
use trace::codec::List;
use trace::*;

pub const CELL: u64 = 256;
const ROOT: u64 = 0x7f00_0000_0000;
const POOL: u64 = 0x7e00_0000_0000;
const PINNED: u64 = 0x5000_0000;
const CONTEXT: ContextId = ContextId(1);
const STREAMS: u32 = 5;
const EVENTS: u32 = 3;
const THREAD: ThreadId = ThreadId(1);

/// What a program does. Streams, events and places are numbers below a small bound.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Write(u32, u64, u64),
    Copy(u32, u64, u64),
    Record(u32, u32),
    Wait(u32, u32),
    Sync(u32),
    SyncDevice,
    SyncEvent(u32),
    /// The first half of a synchronisation, and the second.
    Begin(u32, u32),
    End(u32),
    IdleQuery(u32),
    EventQuery(u32),
    RemakeEvent(u32),
    RemakeStream(u32),
    RemakeRoot,
    PoolAlloc(u32, u64),
    PoolFree(u32, u64),
    BlockAlloc(u64),
    BlockFree(u64),
    WriteValue(u32, u64),
    WaitValue(u32, u64),
    HostFunc(u32, u32),
    HostFuncRun(u32),
    /// The host touches pinned memory, inside of a host function or not.
    Touch(u32, u64, bool),
    RemakeGraph(u64, u32),
    GraphLaunch(u32),
    Pause(bool),
}

fn step() -> impl Strategy<Value = Step> {
    use Step::*;
    let (s, e) = (0..STREAMS, 0..EVENTS);
    prop_oneof![
        8 => (s.clone(), 0..10_u64, 1..3_u64).prop_map(|(s, c, n)| Write(s, c, n)),
        8 => (s.clone(), 0..10_u64, 0..10_u64).prop_map(|(s, a, b)| Copy(s, a, b)),
        4 => (s.clone(), e.clone()).prop_map(|(s, e)| Record(s, e)),
        4 => (s.clone(), e.clone()).prop_map(|(s, e)| Wait(s, e)),
        1 => s.clone().prop_map(Sync),
        1 => Just(SyncDevice),
        1 => e.clone().prop_map(SyncEvent),
        1 => (0..2_u32, s.clone()).prop_map(|(n, s)| Begin(n, s)),
        1 => (0..2_u32).prop_map(End),
        1 => s.clone().prop_map(IdleQuery),
        1 => e.clone().prop_map(EventQuery),
        1 => e.prop_map(RemakeEvent),
        1 => s.clone().prop_map(RemakeStream),
        1 => Just(RemakeRoot),
        1 => (s.clone(), 0..2_u64).prop_map(|(s, p)| PoolAlloc(s, p)),
        1 => (s.clone(), 0..2_u64).prop_map(|(s, p)| PoolFree(s, p)),
        1 => (0..2_u64).prop_map(BlockAlloc),
        1 => (0..2_u64).prop_map(BlockFree),
        1 => (s.clone(), 0..3_u64).prop_map(|(s, v)| WriteValue(s, v)),
        1 => (s.clone(), 0..3_u64).prop_map(|(s, v)| WaitValue(s, v)),
        1 => (s.clone(), 0..2_u32).prop_map(|(s, f)| HostFunc(s, f)),
        1 => (0..2_u32).prop_map(HostFuncRun),
        2 => (0..3_u32, 8..10_u64, any::<bool>()).prop_map(|(f, c, w)| Touch(f, c, w)),
        1 => (0..10_u64, 0..EVENTS).prop_map(|(c, e)| RemakeGraph(c, e)),
        2 => s.prop_map(GraphLaunch),
        1 => prop_oneof![3 => Just(true), 1 => Just(false)].prop_map(Pause),
    ]
}

pub fn programs() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 10..120)
}

/// The address of a cell: eight of device memory, two of pinned memory.
fn cell(n: u64) -> u64 {
    if n < 8 { ROOT + n * CELL } else { PINNED + (n - 8) * CELL }
}

/// Writes the records of a program.
pub struct Program {
    pub records: Vec<Vec<u8>>,
    engine: Engine,
    /// Ids of the streams, events and host functions that live.
    streams: Vec<u32>,
    events: Vec<u32>,
    funcs: Vec<u32>,
    last: u32,
    line: u32,
}

impl Program {
    pub fn new() -> Self {
        let mut options = Options::default();
        options.host_functions_signal = true;
        let mut p = Self {
            records: Vec::new(),
            engine: Engine::with_options(options),
            streams: Vec::new(),
            events: Vec::new(),
            funcs: vec![0; 2],
            last: 100,
            line: 0,
        };
        let (exe, args, cwd) = ("/opt/app".into(), "".into(), "/".into());
        p.raw(Op::Process { pid: 77, parent: 1, exe, args, cwd, driver: 13000 });
        p.raw(Op::CallName { id: CallId(1), name: "cuCall".into() });
        p.raw(Op::Device { ordinal: 0, arch: 90, name: "GPU".into() });
        p.raw(Op::Thread { id: THREAD, tid: 77, name: "app".into() });
        p.does(Op::ContextCreate { context: CONTEXT, device: 0, handle: 1 });
        for n in 0..STREAMS {
            p.streams.push(0);
            p.make_stream(n);
        }
        for n in 0..EVENTS {
            p.events.push(0);
            p.make_event(n);
        }
        p.alloc(ROOT, 8 * CELL, MemoryKind::Device, 0);
        p.alloc(PINNED, 2 * CELL, MemoryKind::PinnedHost, 0);
        p
    }

    pub fn of(steps: &[Step]) -> Self {
        let mut p = Self::new();
        steps.iter().for_each(|step| p.step(*step));
        p
    }

    pub fn raw(&mut self, op: Op<'_>) {
        self.push(Origin::default(), op);
    }

    fn push(&mut self, origin: Origin, op: Op<'_>) {
        let mut room = vec![0; 4096];
        let len = Record { origin, op }.encode(&mut room).expect("fits");
        room.truncate(len);
        self.records.push(room);
    }

    /// The program makes a call in its next line.
    pub fn does(&mut self, op: Op<'_>) {
        self.line += 1;
        let (stack, native) = (StackId(self.line), [u64::from(self.line)]);
        self.raw(Op::Stack { id: stack, native: List::new(&native), python: List::new(&[]) });
        let epoch = self.engine.apply(&op, THREAD);
        self.push(Origin { call: CallId(1), thread: THREAD, stack, epoch }, op);
    }

    /// The program asks whether a stream is idle, with this stack.
    pub fn asks_at(&mut self, stack: u32) {
        let stream = self.stream(3);
        let op = Op::StreamIdle { stream, upto: self.engine.stream_time(stream) };
        let epoch = self.engine.apply(&op, THREAD);
        self.push(Origin { call: CallId(1), thread: THREAD, stack: StackId(stack), epoch }, op);
    }

    fn id(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    pub fn stream(&self, n: u32) -> StreamId {
        StreamId(self.streams[n as usize])
    }

    fn event(&self, n: u32) -> EventId {
        EventId(self.events[n as usize])
    }

    fn make_stream(&mut self, n: u32) {
        let (stream, kind) = match n {
            0 | 1 => (StreamId(self.id()), StreamKind::NonBlocking),
            2 | 3 => (StreamId(self.id()), StreamKind::Blocking),
            _ => (StreamId(3), StreamKind::Legacy),
        };
        self.streams[n as usize] = stream.0;
        self.does(Op::StreamCreate { stream, context: CONTEXT, kind, priority: 0, handle: 0 });
    }

    fn make_event(&mut self, n: u32) {
        let event = EventId(self.id());
        self.events[n as usize] = event.0;
        self.does(Op::EventCreate { event, context: CONTEXT, flags: 0, handle: 0 });
    }

    pub fn alloc(&mut self, ptr: u64, size: u64, kind: MemoryKind, stream: u32) {
        let (stream, pool) = (StreamId(stream), PoolId(1));
        self.does(Op::Alloc { ptr, size, kind, context: CONTEXT, stream, pool, flags: 0 });
    }

    pub fn free(&mut self, ptr: u64, kind: FreeKind, stream: u32) {
        self.does(Op::Free { ptr, kind, stream: StreamId(stream) });
    }

    fn sync_begin(&mut self, sync: u32, scope: SyncScope, stream: StreamId, event: EventId) {
        self.does(Op::SyncBegin { sync: SyncId(sync), scope, stream, event, context: CONTEXT });
    }

    fn sync(&mut self, scope: SyncScope, stream: StreamId, event: EventId) {
        let sync = self.id();
        self.sync_begin(sync, scope, stream, event);
        self.does(Op::SyncEnd { sync: SyncId(sync) });
    }

    pub fn step(&mut self, step: Step) {
        match step {
            Step::Write(s, c, n) => {
                // The pool's memory takes the place of two cells.
                let start = if c == 7 { POOL } else { cell(c) };
                let (stream, dst) = (self.stream(s), Region::linear(start, n.min(if c == 9 { 1 } else { 2 }) * CELL));
                self.does(Op::Set { stream, dst, asynchronous: true });
            }
            Step::Copy(s, a, b) => {
                let (dst, src) = (Region::linear(cell(a), CELL), Region::linear(cell(b), CELL));
                let (stream, dst_space, src_space) = (self.stream(s), Space::Unified, Space::Unified);
                self.does(Op::Copy { stream, dst, src, dst_space, src_space, asynchronous: true, batch: 0 });
            }
            Step::Record(s, e) => {
                let (stream, event) = (self.stream(s), self.event(e));
                self.does(Op::EventRecord { event, stream, mode: EventMode::Plain });
            }
            Step::Wait(s, e) => {
                let (stream, event) = (self.stream(s), self.event(e));
                self.does(Op::StreamWait { stream, event, mode: EventMode::Plain });
            }
            Step::Sync(s) => self.sync(SyncScope::Stream, self.stream(s), EventId(0)),
            Step::SyncDevice => {
                self.sync(SyncScope::Device, StreamId(0), EventId(0));
                // No function runs after its stream was waited for.
                self.funcs.fill(0);
            }
            Step::SyncEvent(e) => self.sync(SyncScope::Event, StreamId(0), self.event(e)),
            Step::Begin(n, s) => self.sync_begin(1 + n, SyncScope::Stream, self.stream(s), EventId(0)),
            Step::End(n) => self.does(Op::SyncEnd { sync: SyncId(1 + n) }),
            Step::IdleQuery(s) => {
                let stream = self.stream(s);
                self.does(Op::StreamIdle { stream, upto: self.engine.stream_time(stream) });
            }
            Step::EventQuery(e) => {
                let event = self.event(e);
                self.does(Op::EventReached { event, record: self.engine.event_record(event) });
            }
            Step::RemakeEvent(e) => {
                let event = self.event(e);
                self.does(Op::EventDestroy { event });
                self.make_event(e);
            }
            Step::RemakeStream(s) => {
                let stream = self.stream(s);
                if s < 4 {
                    self.does(Op::StreamDestroy { stream });
                    self.make_stream(s);
                }
            }
            Step::RemakeRoot => {
                self.free(ROOT, FreeKind::Plain, 0);
                self.alloc(ROOT, 8 * CELL, MemoryKind::Device, 0);
            }
            Step::PoolAlloc(s, p) => self.alloc(POOL + p * CELL, CELL, MemoryKind::Pool, self.stream(s).0),
            Step::PoolFree(s, p) => self.free(POOL + p * CELL, FreeKind::Async, self.stream(s).0),
            Step::BlockAlloc(b) => self.alloc(ROOT + 2 * b * CELL, 2 * CELL, MemoryKind::Block, 0),
            Step::BlockFree(b) => self.free(ROOT + 2 * b * CELL, FreeKind::Block, 0),
            Step::WriteValue(s, value) => {
                let (stream, address) = (self.stream(s), 0x40);
                self.does(Op::WriteValue { stream, address, value, width: 4, barrier: true });
            }
            Step::WaitValue(s, value) => {
                let (stream, address, compare) = (self.stream(s), 0x40, WaitCompare::Equal);
                self.does(Op::WaitValue { stream, address, value, width: 4, compare });
            }
            Step::HostFunc(s, f) => {
                self.funcs[f as usize] = self.id();
                let (stream, func) = (self.stream(s), HostFuncId(self.funcs[f as usize]));
                self.does(Op::HostFunc { stream, func, address: 1 });
            }
            Step::HostFuncRun(f) => self.does(Op::HostFuncRun { func: HostFuncId(self.funcs[f as usize]), done: true }),
            Step::Touch(f, c, writes) => {
                let func = self.funcs.get(f as usize).map_or(HostFuncId::NONE, |func| HostFuncId(*func));
                let region = Region::linear(cell(c), CELL);
                self.does(Op::HostTouch { region, writes, atomic: false, polled: false, func });
            }
            Step::RemakeGraph(c, e) => {
                let exec = GraphExecId(1);
                self.does(Op::GraphExec { exec, nodes: 2, flags: 0, handle: 1 });
                let set = Op::Set { stream: StreamId(0), dst: Region::linear(cell(c), CELL), asynchronous: true };
                let record = Op::EventRecord { event: self.event(e), stream: StreamId(0), mode: EventMode::Plain };
                for (index, op) in [set, record].iter().enumerate() {
                    let mut room = vec![0; 256];
                    let mut to = Encoder::new(&mut room);
                    op.encode(&mut to);
                    let len = to.finish().expect("fits");
                    self.does(Op::GraphNode {
                        exec,
                        index: index as u32,
                        stack: StackId(self.line),
                        call: CallId(1),
                        enabled: true,
                        dependencies: List::new(&[]),
                        tag: op.tag(),
                        body: &room[..len],
                    });
                }
            }
            Step::GraphLaunch(s) => self.does(Op::GraphLaunch { stream: self.stream(s), exec: GraphExecId(1) }),
            Step::Pause(on) => self.does(Op::Checking { on }),
        }
    }
}
