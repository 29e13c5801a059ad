//! Hand-built programs for the tests of the analyzer: records as the shim would write them.

use analyzer::causes::{self, Effort};
use analyzer::launches::effects::{Effect, EffectBase, EffectExtent, Launch, PointerTable};
use analyzer::launches::kernel_code::{CodeReader, KernelCode};
use analyzer::memory::{AccessKind, Dim};
use analyzer::replan::records::KeptRecords;
use analyzer::report::model::{Finding, Outcome, Report};
use analyzer::symbols::frame::{Frame, FrameKind};
use analyzer::symbols::stacks::Stacks;
use analyzer::whatif::judge;
use analyzer::whatif::listing::Listing;
use analyzer::{Analysis, AnalysisOptions};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use trace::codec::List;
use trace::*;

/// What a test kernel does with one parameter word.
#[derive(Clone)]
pub struct Does {
    pub param: u32,
    pub kind: AccessKind,
    pub bytes: Shape,
}

#[derive(Clone)]
pub enum Shape {
    /// Bytes from lo to hi, relative to the pointer.
    Exact(u64, u64),
    Bound(u64, u64),
    /// Runs of `width` bytes from `lo` on.
    Strided {
        lo: u64,
        width: u64,
        stride: u64,
        count: u64,
    },
    Unknown,
    /// Unknown, because the index is data.
    Scattered,
    /// The word is a texture or surface handle.
    Object,
    /// The word points to a table of that many pointers; these bytes behind each.
    PointerTable(u64, u64, u64),
    /// The evaluation fails.
    Failed,
}

pub fn reads(param: u32, bytes: Shape) -> Does {
    Does { param, kind: AccessKind::Read, bytes }
}
pub fn writes(param: u32, bytes: Shape) -> Does {
    Does { param, kind: AccessKind::Write, bytes }
}
pub fn atomics(param: u32, bytes: Shape) -> Does {
    Does { param, kind: AccessKind::Atomic, bytes }
}

type Kernels = Arc<Mutex<HashMap<String, (Vec<Does>, bool)>>>;

struct Reader(Kernels);

impl CodeReader for Reader {
    fn read(&mut self, _: ImageId, kernel: &str, _: u32) -> Result<Box<dyn KernelCode>, String> {
        let found = self.0.lock().unwrap().get(kernel).cloned();
        let (does, indirect) = found.ok_or("no code")?;
        let identity = kernel.starts_with("fixed").then_some(does.len() as u64);
        Ok(Box::new(TestKernel(does, indirect, identity)))
    }
    fn image(&mut self, _: &Op<'_>) {}
}

/// A kernel whose name begins with `fixed` touches the same bytes in equal launches. It has another
/// code hash when it does more.
struct TestKernel(Vec<Does>, bool, Option<u64>);

impl KernelCode for TestKernel {
    fn evaluate(&self, launch: &Launch<'_>, effects: &mut Vec<Effect>) {
        for does in &self.0 {
            let at = does.param as usize;
            let value = u64::from_le_bytes(launch.params[at..at + 8].try_into().unwrap());
            let known = |lo: u64, hi: u64, width, dims, exact| EffectExtent::Bounded {
                lo: value.wrapping_add(lo),
                hi: value.wrapping_add(hi),
                width,
                dims,
                exact,
            };
            let bytes = match does.bytes {
                Shape::Exact(lo, hi) => known(lo, hi, hi.wrapping_sub(lo), vec![], true),
                Shape::Bound(lo, hi) => known(lo, hi, hi.wrapping_sub(lo), vec![], false),
                Shape::Strided { lo, width, stride, count } => {
                    known(lo, lo + stride * (count - 1) + width, width, vec![Dim { stride, count }], true)
                }
                Shape::Failed => {
                    effects.push(Effect::failed());
                    continue;
                }
                Shape::Scattered => EffectExtent::Scattered,
                Shape::Unknown | Shape::Object => EffectExtent::Unknown,
                Shape::PointerTable(_, lo, hi) => {
                    EffectExtent::Bounded { lo, hi, width: hi - lo, dims: vec![], exact: true }
                }
            };
            let base = match does.bytes {
                Shape::PointerTable(count, ..) => {
                    EffectBase::PointerTable(PointerTable { param: does.param, value, first: value, stride: 8, count })
                }
                Shape::Object => EffectBase::Handle(does.param, value),
                _ => EffectBase::Param(does.param, value),
            };
            effects.push(Effect::new(base, does.kind, bytes));
        }
    }
    fn indirect(&self) -> bool {
        self.1
    }
    fn identity(&self) -> Option<u64> {
        self.2
    }
    fn waits(&self) -> bool {
        false
    }
    fn signals(&self) -> bool {
        self.0.iter().any(|does| matches!(does.kind, AccessKind::Atomic))
    }
}

/// The package that a Python stack is entered by, by thousands.
const PACKAGES: [&str; 7] = [
    "",
    "",
    "cupy/_core/core.pyx",
    "jax/_src/pjit.py",
    "cuda/core/_stream.py",
    "triton/jit.py",
    "numba/cuda/cudadrv/driver.py",
];

/// Stack n is line n of `app.cu`, called from `main`; stacks from 1000 on are Python, from 2000 on
/// below a package ([`PACKAGES`]).
struct Lines;

impl Stacks for Lines {
    fn define(&mut self, _: &Op<'_>) {}
    fn resolve(&mut self, stack: StackId) -> Vec<Frame> {
        if stack.is_none() {
            return Vec::new();
        }
        let python = stack.0 >= 1000;
        let frame = |function: &str, file: &str, line| Frame {
            kind: if python { FrameKind::Python } else { FrameKind::Native },
            function: function.into(),
            file: Some(file.into()),
            line: Some(line),
            module: (!python).then(|| "/opt/app/app".to_string()),
            address: if python { 0 } else { 0x1000 + u64::from(line) },
            inlined: false,
            source: python.then(|| format!("    y = step({line})")),
        };
        if python {
            let own = frame("train", "/home/me/train.py", stack.0 % 1000);
            let package = PACKAGES.get(stack.0 as usize / 1000).filter(|package| !package.is_empty());
            let entered = package.map(|file| frame("call", &format!("/usr/lib/python3/site-packages/{file}"), 7));
            entered.into_iter().chain([own]).collect()
        } else {
            vec![frame("run(float*, int)", "/home/me/app.cu", stack.0), frame("main", "/home/me/app.cu", 900)]
        }
    }
    fn demangle(&self, name: &str) -> String {
        format!("{name}(float*, int)")
    }
}

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
        writer.flush().expect("written");
        let (mut reader, mut frame) = (trace::file::Reader::new(&file[..]).expect("header"), Default::default());
        while reader.next_frame(&mut frame).expect("whole") {
            analyzer::ingest::prefetch::feed(&mut self.analysis, &frame).expect("whole");
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

    /// Waits that the user wrote down.
    pub fn add_waits(&mut self, waits: &[analyzer::replan::written::WrittenWait]) {
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
    Op::Launch { stream, kernel, grid: [1; 3], block: [32, 1, 1], cluster: [0; 3], shared: 0, flags: 0, params }
}

pub const H2D: (Space, Space) = (Space::Device, Space::Host);
pub const D2H: (Space, Space) = (Space::Host, Space::Device);
pub const D2D: (Space, Space) = (Space::Device, Space::Device);
