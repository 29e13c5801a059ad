//! A small language for tests of order: streams, events and launches by name, epochs to compare.

use order::{Engine, Options};
use trace::*;

/// One context with streams made on demand.
pub struct World {
    pub engine: Engine,
    next_sync: u32,
}

pub const CTX: ContextId = ContextId(1);
pub const MAIN: ThreadId = ThreadId(1);

impl World {
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    /// On a device of compute capability 9.0, where launches may overlap.
    pub fn with(options: Options) -> Self {
        Self::on_device(options, Some(90))
    }

    /// On a device of another compute capability (major * 10 + minor), or of an unknown one.
    pub fn on_device(options: Options, arch: Option<u32>) -> Self {
        let mut w = Self { engine: Engine::with_options(options), next_sync: 0 };
        if let Some(arch) = arch {
            w.engine.define_device(0, arch);
        }
        w.op(Op::ContextCreate { context: CTX, device: 0, handle: 1 });
        w
    }

    pub fn op(&mut self, op: Op<'_>) -> Epoch {
        self.engine.apply(&op, MAIN)
    }

    pub fn stream_in(&mut self, context: ContextId, id: u32, kind: StreamKind) -> StreamId {
        let stream = StreamId(id);
        self.op(Op::StreamCreate { stream, context, kind, priority: 0, handle: u64::from(id) });
        stream
    }

    pub fn stream(&mut self, id: u32, kind: StreamKind) -> StreamId {
        self.stream_in(CTX, id, kind)
    }

    /// Non-blocking streams 1 to N.
    pub fn streams<const N: usize>(&mut self) -> [StreamId; N] {
        std::array::from_fn(|i| self.stream(i as u32 + 1, StreamKind::NonBlocking))
    }

    pub fn launch(&mut self, stream: StreamId) -> Epoch {
        self.launch_flags(stream, 0)
    }

    pub fn launch_flags(&mut self, stream: StreamId, flags: u32) -> Epoch {
        let shape = LaunchShape::new([1; 3], [1; 3]).with_flags(flags);
        self.op(Op::Launch { stream, kernel: KernelId(1), shape, params: &[] })
    }

    pub fn record(&mut self, event: u32, stream: StreamId) {
        self.op(Op::EventRecord { event: EventId(event), stream, mode: EventMode::Plain });
    }

    pub fn wait(&mut self, stream: StreamId, event: u32) {
        self.op(Op::StreamWait { stream, event: EventId(event), mode: EventMode::Plain });
    }

    pub fn begin(&mut self, thread: u32, scope: SyncScope, stream: StreamId, event: u32) -> (ThreadId, SyncId) {
        self.next_sync += 1;
        let sync = SyncId(self.next_sync);
        let op = Op::SyncBegin { sync, scope, stream, event: EventId(event), context: CTX };
        self.engine.apply(&op, ThreadId(thread));
        (ThreadId(thread), sync)
    }

    pub fn end(&mut self, (thread, sync): (ThreadId, SyncId)) {
        self.engine.apply(&Op::SyncEnd { sync }, thread);
    }

    pub fn sync_stream(&mut self, stream: StreamId) {
        let s = self.begin(1, SyncScope::Stream, stream, 0);
        self.end(s);
    }

    pub fn sync_event(&mut self, event: u32) {
        let s = self.begin(1, SyncScope::Event, StreamId::NONE, event);
        self.end(s);
    }

    pub fn sync_context(&mut self) {
        let s = self.begin(1, SyncScope::Context, StreamId::NONE, 0);
        self.end(s);
    }

    /// Whether the op applied last is ordered after `earlier`.
    pub fn after(&self, earlier: Epoch) -> bool {
        self.engine.start_clock().covers(earlier)
    }

    /// Launches on `stream` and says whether that is ordered after `earlier`.
    pub fn launch_after(&mut self, stream: StreamId, earlier: Epoch) -> bool {
        self.launch(stream);
        self.after(earlier)
    }

    pub fn host_after(&self, earlier: Epoch) -> bool {
        self.engine.host_covers(earlier)
    }

    pub fn alloc(&mut self, ptr: u64, size: u64, kind: MemoryKind) -> Epoch {
        self.op(Op::Alloc { ptr, size, kind, context: CTX, stream: StreamId::NONE, pool: PoolId::NONE, flags: 0 })
    }

    pub fn alloc_async(&mut self, ptr: u64, size: u64, stream: StreamId) -> Epoch {
        let kind = MemoryKind::Pool;
        self.op(Op::Alloc { ptr, size, kind, context: CTX, stream, pool: PoolId(1), flags: 0 })
    }

    pub fn free_async(&mut self, ptr: u64, stream: StreamId) -> Epoch {
        self.op(Op::Free { ptr, kind: FreeKind::Async, stream })
    }

    pub fn free(&mut self, ptr: u64, kind: FreeKind) -> Epoch {
        self.op(Op::Free { ptr, kind, stream: StreamId::NONE })
    }

    pub fn copy(&mut self, stream: StreamId, dst: u64, src: u64, asynchronous: bool) -> Epoch {
        let u = Space::Unified;
        let (dst, src) = (Region::linear(dst, 64), Region::linear(src, 64));
        self.op(Op::Copy { stream, dst, src, dst_space: u, src_space: u, asynchronous, batch: 0 })
    }

    pub fn set(&mut self, stream: StreamId, dst: u64, asynchronous: bool) -> Epoch {
        self.op(Op::Set { stream, dst: Region::linear(dst, 64), asynchronous })
    }
}
