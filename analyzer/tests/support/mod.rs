//! Hand-built programs for the tests of the analyzer: records as the shim would write them.
//!
//! Owns the program and what it can call. What its kernels do is in `kernels`, where it calls from
//! in `stacks`.

mod kernels;
mod stacks;

pub use kernels::{Does, Shape, atomics, reads, writes};
pub use stacks::resolved;

use analysis::counterfactual::causes::{self, Effort};
use analysis::counterfactual::excess::judge;
use analysis::counterfactual::excess::listing::Listing;
use analysis::counterfactual::trial::records::KeptRecords;
use analysis::{Analysis, AnalysisOptions};
use kernels::{Kernels, Reader};
use report::model::{Finding, Outcome, Report};
use stacks::Lines;
use std::collections::HashMap;
use trace::codec::List;
use trace::*;

/// A program under analysis.
pub struct Program {
    pub analysis: Analysis,
    kernels: Kernels,
    names: HashMap<&'static str, CallId>,
    ids: u32,
    line: u32,
    /// The host thread of the next calls.
    thread: ThreadId,
    /// The place that the shim gave the next ops.
    epoch: Epoch,
    /// The records since [`Program::record_on`].
    tape: Option<Vec<Vec<u8>>>,
    /// What may be checked again.
    kept: KeptRecords,
}

pub const A: StreamId = StreamId(1);
pub const B: StreamId = StreamId(2);
pub const LEGACY: StreamId = StreamId(3);
pub const BLOCKING: StreamId = StreamId(4);
/// See [`Program::per_thread_streams`].
pub const OWN: StreamId = StreamId(5);
pub const OTHERS: StreamId = StreamId(6);
pub const CONTEXT: ContextId = ContextId(1);
/// The address of the memory in the tests.
pub const X: u64 = 0x7f00_0000_0000;
pub const PINNED: u64 = 0x5000_0000;
pub const PAGEABLE: u64 = 0x1234_5000;

impl Program {
    pub fn new() -> Self {
        Self::with(AnalysisOptions::default())
    }

    /// Two non-blocking streams, the legacy default stream and a blocking one.
    pub fn with(options: AnalysisOptions) -> Self {
        Self::on_device(options, Some(90))
    }

    /// The same on a device of another compute capability (major * 10 + minor), or of one that the
    /// trace does not say.
    pub fn on_device(options: AnalysisOptions, arch: Option<u32>) -> Self {
        let kernels = Kernels::default();
        let analysis = Analysis::new(options, Box::new(Lines), Box::new(Reader(kernels.clone())));
        let mut p = Self {
            analysis,
            kernels,
            names: HashMap::new(),
            ids: 100,
            line: 10,
            thread: ThreadId(1),
            tape: None,
            kept: KeptRecords::bounded(64 << 20),
            epoch: Epoch::default(),
        };
        p.raw(Op::Process {
            pid: 77,
            parent: 1,
            exe: "/opt/app/app".into(),
            args: "app\0-x".into(),
            cwd: "/".into(),
            driver: 13000,
        });
        if let Some(arch) = arch {
            p.raw(Op::Device { ordinal: 0, arch, name: "GPU".into() });
        }
        p.raw(Op::Thread { id: ThreadId(1), tid: 77, name: "app".into() });
        p.line(1).does("cuCtxCreate", Op::ContextCreate { context: CONTEXT, device: 0, handle: 1 });
        for (stream, kind) in [
            (A, StreamKind::NonBlocking),
            (B, StreamKind::NonBlocking),
            (LEGACY, StreamKind::Legacy),
            (BLOCKING, StreamKind::Blocking),
        ] {
            let op = Op::StreamCreate { stream, context: CONTEXT, kind, priority: 0, handle: 0 };
            p.line(stream.0 + 1).does("cudaStreamCreateWithFlags", op);
        }
        p.line = 10;
        p
    }

    /// Sets the source line of the next call. The call after it is in the next line.
    pub fn line(&mut self, line: u32) -> &mut Self {
        self.line = line;
        self
    }

    /// Sets the host thread of the calls from now on.
    pub fn thread(&mut self, thread: u32) -> &mut Self {
        self.thread = ThreadId(thread);
        self
    }

    /// The per-thread default streams of host threads 1 and 2.
    pub fn per_thread_streams(&mut self) {
        for (thread, stream) in [(1, OWN), (2, OTHERS)] {
            let kind = StreamKind::PerThread;
            let op = Op::StreamCreate { stream, context: CONTEXT, kind, priority: 0, handle: 2 };
            self.thread(thread).line(stream.0 + 1).does("cudaLaunchKernel_ptsz", op);
        }
        self.thread(1).line(10);
    }

    /// An executable graph of kernels: by node its line, its kernel, its pointer, and the earlier
    /// nodes that it waits for. All were captured on one stream each, of those given.
    pub fn graph(&mut self, exec: GraphExecId, nodes: &[(u32, KernelId, u64, Vec<u32>)], captured: &[StreamId]) {
        self.does("cudaGraphInstantiate", Op::GraphExec { exec, nodes: nodes.len() as u32, flags: 0, handle: 0 });
        let call = self.call("cuLaunchKernel");
        for (index, (line, kernel, pointer, before)) in nodes.iter().enumerate() {
            let (mut body, params, index) = ([0; 256], pointer.to_le_bytes(), index as u32);
            let launch = launch(StreamId::NONE, *kernel, &params);
            let mut to = Encoder::new(&mut body);
            launch.encode(&mut to);
            let len = to.finish().expect("fits");
            let edges: Vec<Dependency> = before.iter().map(|from| Dependency { from: *from, port: 0 }).collect();
            self.raw(Op::GraphNode {
                exec,
                index,
                stack: StackId(*line),
                call,
                enabled: true,
                dependencies: List::new(&edges),
                tag: launch.tag(),
                body: &body[..len],
            });
            if let Some(stream) = captured.get(index as usize) {
                self.raw(Op::NodeCaptured { exec, index, stream: *stream });
            }
        }
    }

    /// Sets the place that the shim gave the ops from now on.
    pub fn at(&mut self, epoch: Epoch) -> &mut Self {
        self.epoch = epoch;
        self
    }

    pub fn raw(&mut self, op: Op<'_>) {
        self.take(Record { origin: Origin::default(), op });
    }

    /// Feeds a record, encoded and decoded as in a real run.
    fn take(&mut self, record: Record<'_>) {
        let mut buffer = vec![0; 1 << 16];
        let len = record.encode(&mut buffer).expect("fits");
        buffer.truncate(len);
        self.kept.keep(&buffer);
        match &mut self.tape {
            Some(tape) => tape.push(buffer),
            None => {
                self.analysis.feed(&Record::decode(&buffer).expect("decodes"));
            }
        }
    }

    /// From now on nothing is analysed, until [`Program::play`].
    pub fn record_on(&mut self) {
        self.tape = Some(Vec::new());
    }

    /// Analyses what was recorded, as a trace file.
    pub fn play(&mut self) {
        let mut file = Vec::new();
        let mut writer = trace::file::Writer::new(&mut file).expect("header");
        for record in self.tape.take().expect("recorded") {
            writer.record(0, &record).expect("written");
        }
        writer.finish().expect("written");
        let (mut reader, mut frame) = (trace::file::Reader::new(&file[..]).expect("header"), Default::default());
        while reader.next_frame(&mut frame).expect("whole") {
            ingest::prefetch::feed(&mut self.analysis, &frame).expect("whole");
        }
    }

    /// The id of an API function.
    pub fn call(&mut self, name: &'static str) -> CallId {
        let next = CallId(self.names.len() as u16 + 1);
        let call = *self.names.entry(name).or_insert(next);
        if call == next {
            self.raw(Op::CallName { id: call, name: name.into() });
        }
        call
    }

    /// The program calls `name` at the next line.
    pub fn does(&mut self, name: &'static str, op: Op<'_>) {
        let call = self.call(name);
        let origin = Origin { call, thread: self.thread, stack: StackId(self.line), epoch: self.epoch };
        self.take(Record { origin, op });
        self.line += 1;
    }

    pub fn id(&mut self) -> u32 {
        self.ids += 1;
        self.ids
    }

    pub fn malloc(&mut self, ptr: u64, size: u64) {
        self.alloc(ptr, size, MemoryKind::Device);
    }

    pub fn alloc(&mut self, ptr: u64, size: u64, kind: MemoryKind) {
        let name = match kind {
            MemoryKind::PinnedHost => "cudaMallocHost",
            MemoryKind::Block => "c10::CachingAllocator",
            _ => "cudaMalloc",
        };
        self.does(
            name,
            Op::Alloc { ptr, size, kind, context: CONTEXT, stream: StreamId(0), pool: PoolId(0), flags: 0 },
        );
    }

    pub fn malloc_async(&mut self, ptr: u64, size: u64, stream: StreamId) {
        let kind = MemoryKind::Pool;
        self.does(
            "cudaMallocAsync",
            Op::Alloc { ptr, size, kind, context: CONTEXT, stream, pool: PoolId(1), flags: 0 },
        );
    }

    pub fn free(&mut self, ptr: u64, kind: FreeKind, stream: StreamId) {
        let name = if kind == FreeKind::Async { "cudaFreeAsync" } else { "cudaFree" };
        self.does(name, Op::Free { ptr, kind, stream });
    }

    /// A kernel whose code does this.
    pub fn kernel(&mut self, name: &str, does: &[Does]) -> KernelId {
        self.kernels.lock().unwrap().insert(name.into(), (does.to_vec(), false));
        self.define(name)
    }

    /// A kernel without readable code.
    pub fn define(&mut self, name: &str) -> KernelId {
        let id = KernelId(self.id());
        let slots = [ParamSlot { offset: 0, size: 8 }, ParamSlot { offset: 8, size: 8 }];
        self.raw(Op::Kernel { id, name: name.into(), image: ImageId(1), params: List::new(&slots), handle: 0 });
        id
    }

    pub fn launch(&mut self, stream: StreamId, kernel: KernelId, pointers: &[u64]) {
        let params: Vec<u8> = pointers.iter().flat_map(|p| p.to_le_bytes()).collect();
        self.does("cudaLaunchKernel", launch(stream, kernel, &params));
    }

    /// Launches a new kernel that does just this to one pointer.
    pub fn go(&mut self, stream: StreamId, pointer: u64, does: &[Does]) {
        let name = format!("kernel_{}", self.ids + 1);
        let kernel = self.kernel(&name, does);
        self.launch(stream, kernel, &[pointer]);
    }

    pub fn copy(&mut self, stream: StreamId, dst: u64, src: u64, n: u64, spaces: (Space, Space)) {
        self.copy_region(stream, Region::linear(dst, n), Region::linear(src, n), spaces, 0);
    }

    pub fn copy_region(&mut self, stream: StreamId, dst: Region, src: Region, spaces: (Space, Space), batch: u32) {
        let (dst_space, src_space) = spaces;
        let op = Op::Copy { stream, dst, src, dst_space, src_space, asynchronous: true, batch };
        self.does("cudaMemcpyAsync", op);
    }

    pub fn set(&mut self, stream: StreamId, dst: u64, n: u64) {
        self.does("cudaMemsetAsync", Op::Set { stream, dst: Region::linear(dst, n), asynchronous: true });
    }

    /// Everything in `from` so far comes before everything in `to` from now on.
    pub fn order(&mut self, from: StreamId, to: StreamId) {
        let event = EventId(self.id());
        self.does("cudaEventCreate", Op::EventCreate { event, context: CONTEXT, flags: 0, handle: 0 });
        self.record(event, from);
        self.wait(to, event);
    }

    pub fn record(&mut self, event: EventId, stream: StreamId) {
        self.does("cudaEventRecord", Op::EventRecord { event, stream, mode: EventMode::Plain });
    }

    pub fn wait(&mut self, stream: StreamId, event: EventId) {
        self.does("cudaStreamWaitEvent", Op::StreamWait { stream, event, mode: EventMode::Plain });
    }

    pub fn sync(&mut self, stream: StreamId) {
        let sync = SyncId(self.id());
        let (event, context) = (EventId(0), ContextId(0));
        let begin = Op::SyncBegin { sync, scope: SyncScope::Stream, stream, event, context };
        self.does("cudaStreamSynchronize", begin);
        self.does("cudaStreamSynchronize", Op::SyncEnd { sync });
    }

    pub fn python(&mut self) {
        self.raw(Op::PyCode {
            id: PyCodeId(1),
            file: "train.py".into(),
            name: "train".into(),
            first_line: 1,
            encoding: LineTable::V311,
            lines: &[],
        });
    }

    /// PyTorch's libraries are loaded.
    pub fn torch(&mut self) {
        let path = "/venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so".into();
        self.raw(Op::Module { start: 1 << 40, end: 2 << 40, bias: 0, path, build_id: &[] });
    }

    /// Waits that the user wrote down.
    pub fn add_waits(&mut self, waits: &[analysis::counterfactual::edits::written::WrittenWait]) {
        self.analysis.add_waits(waits);
    }

    pub fn outcome(&mut self) -> Outcome {
        causes::finish(&mut self.analysis, Some(&mut self.kept), Effort::RECORDED)
    }

    /// What each synchronisation is needed for.
    pub fn listing(&mut self) -> Listing {
        judge::judge(&mut self.analysis, &mut self.kept).expect("all records are kept")
    }

    pub fn report(&mut self) -> Report {
        Report::merge(vec![self.outcome()], false)
    }

    pub fn findings(&mut self) -> Vec<Finding> {
        self.outcome().findings
    }

    /// The findings, as `hazard confidence` strings, sorted.
    pub fn verdict(&mut self) -> Vec<String> {
        let found = self.findings();
        let mut list: Vec<String> =
            found.iter().map(|f| format!("{} {}", f.hazard.name(), f.confidence.name())).collect();
        list.sort();
        list
    }

    /// Asserts that there are no findings.
    pub fn silent(&mut self) {
        let found = self.findings();
        assert!(found.is_empty(), "{found:#?}");
    }

    /// Asserts that there is exactly one finding of this kind.
    pub fn finds(&mut self, verdict: &str) -> Finding {
        assert_eq!(self.verdict(), [verdict]);
        self.findings().remove(0)
    }
}

pub fn launch(stream: StreamId, kernel: KernelId, params: &[u8]) -> Op<'_> {
    launch_with(stream, kernel, 0, params)
}

pub fn launch_with(stream: StreamId, kernel: KernelId, flags: u32, params: &[u8]) -> Op<'_> {
    Op::Launch { stream, kernel, shape: LaunchShape::new([1; 3], [32, 1, 1]).with_flags(flags), params }
}

pub const H2D: (Space, Space) = (Space::Device, Space::Host);
pub const D2H: (Space, Space) = (Space::Host, Space::Device);
pub const D2D: (Space, Space) = (Space::Device, Space::Device);
