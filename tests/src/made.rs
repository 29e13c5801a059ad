//! Traces made by hand, for what no program would do on demand: exact orders of ops, many findings,
//! many ops.

use std::path::Path;

use trace::file::{END, Writer};
use trace::segment::{FINISHED, SegmentHead};
use trace::{
    CallId, ContextId, Epoch, EventId, EventMode, KernelId, LaunchShape, MemoryKind, Op, Origin, PoolId, Record,
    Region, StackId, StreamId, StreamKind, ThreadId,
};

/// Where the memory of these traces begins.
const BASE: u64 = 0x7f00_0000_0000;

/// Records, encoded.
#[derive(Default)]
pub struct Tape(Vec<Vec<u8>>, StackId);

impl Tape {
    /// A process with one context and so many non-blocking streams, from 1.
    fn begin(streams: u32) -> Self {
        let mut tape = Self::default();
        let (exe, args) = ("/usr/bin/train".into(), "train\0--fast".into());
        tape.push(Op::Process { pid: 100, parent: 1, exe, args, cwd: "/".into(), driver: 13000 });
        tape.push(Op::CallName { id: CallId(1), name: "cuMemsetD8Async".into() });
        tape.push(Op::CallName { id: CallId(2), name: "cuLaunchKernel".into() });
        tape.push(Op::Device { ordinal: 0, arch: 90, name: "GPU".into() });
        tape.push(Op::ContextCreate { context: ContextId(1), device: 0, handle: 1 });
        for id in 1..=streams {
            let (stream, context, kind) = (StreamId(id), ContextId(1), StreamKind::NonBlocking);
            tape.push(Op::StreamCreate { stream, context, kind, priority: 0, handle: 0 });
        }
        tape
    }

    fn push(&mut self, op: Op<'_>) {
        let call = if matches!(op, Op::Launch { .. }) { CallId(2) } else { CallId(1) };
        let origin = Origin { call, thread: ThreadId(1), stack: self.1, epoch: Epoch::default() };
        let mut buffer = [0; 1024];
        let len = Record { origin, op }.encode(&mut buffer).expect("a record fits");
        self.0.push(buffer[..len].to_vec());
    }

    fn memory(&mut self, at: u64, size: u64) {
        let (kind, context, stream, pool) = (MemoryKind::Device, ContextId(1), StreamId::NONE, PoolId(0));
        self.push(Op::Alloc { ptr: BASE + at, size, kind, context, stream, pool, flags: 0 });
    }

    fn fill(&mut self, stream: u32, from: u64, len: u64) {
        let dst = Region::linear(BASE + from, len);
        self.push(Op::Set { stream: StreamId(stream), dst, asynchronous: true });
    }

    fn record(&mut self, event: u32, stream: u32) {
        self.push(Op::EventRecord { event: EventId(event), stream: StreamId(stream), mode: EventMode::Plain });
    }

    fn wait(&mut self, event: u32, stream: u32) {
        self.push(Op::StreamWait { event: EventId(event), stream: StreamId(stream), mode: EventMode::Plain });
    }

    fn launch(&mut self, stream: u32, kernel: u32, pointer: u64) {
        self.push(Op::Launch {
            stream: StreamId(stream),
            kernel: KernelId(kernel),
            shape: LaunchShape::new([1; 3], [32, 1, 1]),
            params: &pointer.to_le_bytes(),
        });
    }
}

/// Writes a trace file.
pub fn write(path: &Path, tape: &Tape) {
    let file = std::fs::File::create(path).expect("create");
    let mut writer = Writer::new(std::io::BufWriter::new(file)).expect("header");
    for record in &tape.0 {
        writer.record(0, record).expect("write");
    }
    writer.finish().expect("write");
}

/// Writes the records as a recording in so many segments, of which only these `there` are. None of
/// them is told what lives.
pub fn write_segments(folder: &Path, tape: &Tape, segments: usize, there: &[u64], keeps_last: bool) {
    std::fs::create_dir_all(folder).expect("a folder");
    for (number, records) in (0_u64..).zip(tape.0.chunks(tape.0.len().div_ceil(segments))) {
        if !there.contains(&number) {
            continue;
        }
        let file = std::fs::File::create(folder.join(SegmentHead::file_name(number, FINISHED))).expect("create");
        let head = SegmentHead { recording: 7, number, keeps_last };
        let mut writer = Writer::segment(std::io::BufWriter::new(file), &head).expect("header");
        records.iter().for_each(|record| writer.record(0, record).expect("write"));
        writer.flush().expect("write");
        // The recording may end here.
        writer.write_frame(END, &[3, 0, 0, 0, b'e', b'n', b'd']).expect("write");
        writer.finish().expect("write");
    }
}

/// Stream 1 fills, records an event and fills again; stream 2 waits for the event and fills what
/// overlaps the second fill.
pub fn crossing() -> Tape {
    let mut tape = Tape::begin(2);
    tape.memory(0, 4096);
    tape.fill(1, 3072, 1024);
    tape.record(1, 1);
    tape.fill(1, 0, 2048);
    tape.wait(1, 2);
    tape.fill(2, 1024, 2048);
    tape
}

/// Two launches of a kernel of a PTX file with one and the same first pointer, on two streams that
/// nothing orders.
pub fn launches(module: &str, kernel: &str) -> Tape {
    let mut tape = Tape::begin(2);
    let (id, source, path) = (trace::ImageId(1), trace::ImageSource::File, module.into());
    tape.push(Op::Image { id, source, path, offset: 0, size: 0, bytes: &[] });
    let (kernel, params) = (kernel.into(), trace::codec::List::new(&[]));
    tape.push(Op::Kernel { id: KernelId(1), name: kernel, image: id, params, handle: 0 });
    tape.memory(0, 1 << 20);
    for stream in [1, 2] {
        tape.launch(stream, 1, BASE);
    }
    tape
}

/// So many findings among so many ops: all but one told apart by their kernels, whose code is
/// unknown; one of two fills.
pub fn many(findings: u32, ops: u32) -> Tape {
    let mut tape = Tape::begin(4);
    let launched = findings - 1;
    for n in 0..launched {
        for (id, what) in [(2 * n + 1, "earlier"), (2 * n + 2, "later")] {
            let name = format!("number_{n}_{what}");
            let params = trace::codec::List::new(&[]);
            tape.push(Op::Kernel {
                id: KernelId(id),
                name: name.as_str().into(),
                image: trace::ImageId(0),
                params,
                handle: 0,
            });
        }
        tape.memory(u64::from(n) * 4096, 4096);
    }
    let spare = u64::from(launched) * 4096;
    tape.memory(spare, 4096);
    let between = (ops / findings).saturating_sub(2);
    for n in 0..launched {
        let pointer = BASE + u64::from(n) * 4096;
        tape.launch(1, 2 * n + 1, pointer);
        for k in 0..between {
            tape.fill(3, spare + u64::from(k % 4096), 1);
        }
        tape.launch(2, 2 * n + 2, pointer);
    }
    tape.memory(spare + 4096, 4096);
    tape.fill(1, spare + 4096, 4096);
    tape.fill(2, spare + 4096, 4096);
    tape
}

/// Files that a trace names.
pub struct Named<'a> {
    /// The program.
    pub exe: &'a Path,
    /// Its build id.
    pub build_id: &'a [u8],
    /// An object file without a build id in which calls are made.
    pub module: &'a Path,
    /// A source of Python whose first line makes calls.
    pub source: &'a Path,
    /// A file with code of kernels.
    pub image: &'a Path,
}

/// Two launches of a kernel, and two fills, that nothing orders, at places in these files.
pub fn naming(files: &Named<'_>) -> Tape {
    use trace::codec::{List, Text};
    use trace::{ImageId, ImageSource, LineTable, PyCodeId, PyFrame};
    let text = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
    let (exe, module, source, image) = (text(files.exe), text(files.module), text(files.source), text(files.image));
    let mut tape = Tape::default();
    let args = "program".into();
    tape.push(Op::Process { pid: 100, parent: 1, exe: Text(&exe), args, cwd: "/".into(), driver: 13000 });
    tape.0.extend(Tape::begin(2).0.into_iter().skip(1));
    let map =
        |start: u64, path, build_id| Op::Module { start, end: start + 0x1000, bias: start, path: Text(path), build_id };
    tape.push(map(0x10_0000, &exe, files.build_id));
    tape.push(map(0x20_0000, &module, &[]));
    let (id, encoding) = (PyCodeId(1), LineTable::Lnotab);
    tape.push(Op::PyCode { id, file: Text(&source), name: "step".into(), first_line: 1, encoding, lines: &[] });
    let frames = [PyFrame { code: id, offset: 0 }];
    tape.push(Op::Stack { id: StackId(1), native: List::new(&[0x20_0100, 0x10_0100]), python: List::new(&frames) });
    let (id, source) = (ImageId(1), ImageSource::File);
    tape.push(Op::Image { id, source, path: Text(&image), offset: 0, size: 0, bytes: &[] });
    tape.push(Op::Kernel { id: KernelId(1), name: "kernel".into(), image: id, params: List::new(&[]), handle: 0 });
    tape.1 = StackId(1);
    tape.memory(0, 1 << 20);
    for stream in [1, 2] {
        tape.fill(stream, 0, 4096);
        tape.launch(stream, 1, BASE + 8192);
    }
    tape
}

/// So many fills on one stream.
pub fn long(ops: u32) -> Tape {
    let mut tape = Tape::begin(2);
    tape.memory(0, 1 << 20);
    tape.fill(1, 0, 64);
    tape.fill(2, 0, 64);
    for n in 0..ops {
        tape.fill(1, 4096 + u64::from(n % 64) * 4096, 4096);
    }
    tape
}

/// So many pairs of fills that nothing orders, each fill of a line of its own.
pub fn lines(pairs: u32) -> Tape {
    use trace::codec::List;
    use trace::{LineTable, PyCodeId, PyFrame};
    let mut tape = Tape::begin(2);
    tape.memory(0, u64::from(pairs) * 64);
    for n in 0..pairs {
        for stream in [1, 2] {
            let line = 2 * n + stream;
            let (id, encoding) = (PyCodeId(line), LineTable::Lnotab);
            let (file, name) = ("/app/step.py".into(), "step".into());
            tape.push(Op::PyCode { id, file, name, first_line: line, encoding, lines: &[] });
            let frames = [PyFrame { code: id, offset: 0 }];
            tape.push(Op::Stack { id: StackId(line), native: List::new(&[]), python: List::new(&frames) });
            tape.1 = StackId(line);
            tape.fill(stream, u64::from(n) * 64, 64);
            tape.1 = StackId::NONE;
        }
    }
    tape
}
