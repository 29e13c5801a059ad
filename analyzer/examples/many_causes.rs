//! What it takes to find many causes: `many_causes [FINDINGS CAUSES]...` makes traces with so many
//! places where a wait is missing and so many findings, each of lines of its own, and checks them.
//!
//!     cargo run --release -p analyzer --example many_causes
//!     cargo run --release -p analyzer --example many_causes 5000 500
//!
//! Prints the seconds until the findings are known, the seconds until their causes are, how often
//! the run was analysed again, and how many waits were weighed for a race.

use std::io::BufWriter;
use std::path::Path;
use std::time::Instant;

use analysis::AnalysisOptions;
use ingest::progress::Progress;
use ingest::recorded;
use report::model::Report;
use trace::codec::List;
use trace::file::Writer;
use trace::*;

const BASE: u64 = 0x7f00_0000_0000;
const BYTES: u64 = 64;

/// The sizes that are measured when none are given.
const SIZES: [(u32, u32); 5] = [(500, 50), (2500, 250), (5000, 500), (10_000, 1000), (16_000, 1600)];

struct Out(Writer<BufWriter<std::fs::File>>);

impl Out {
    fn push(&mut self, stack: u32, op: Op<'_>) {
        let mut buffer = [0; 1024];
        let origin = Origin { call: CallId(1), thread: ThreadId(1), stack: StackId(stack), ..Origin::default() };
        let len = Record { origin, op }.encode(&mut buffer).expect("a record fits");
        self.0.record(0, &buffer[..len]).expect("write");
    }

    /// A fill at a line of its own.
    fn fill(&mut self, line: u32, stream: u32, from: u64, bytes: u64) {
        let (code, file, name) = (PyCodeId(line), "/app/step.py".into(), "step".into());
        let encoding = LineTable::Lnotab;
        self.push(0, Op::PyCode { id: code, file, name, first_line: line, encoding, lines: &[] });
        let frames = [PyFrame { code, offset: 0 }];
        self.push(0, Op::Stack { id: StackId(line), native: List::new(&[]), python: List::new(&frames) });
        let dst = Region::linear(BASE + from, bytes);
        self.push(line, Op::Set { stream: StreamId(stream), dst, asynchronous: true });
    }

    /// Orders a stream behind another one.
    fn order(&mut self, event: u32, from: u32, to: u32) {
        let (event, mode) = (EventId(event), EventMode::Plain);
        self.push(0, Op::EventRecord { event, stream: StreamId(from), mode });
        self.push(0, Op::StreamWait { event, stream: StreamId(to), mode });
    }
}

fn write(path: &Path, findings: u32, causes: u32) {
    let mut out = Out(Writer::new(BufWriter::new(std::fs::File::create(path).expect("create"))).expect("header"));
    let context = ContextId(1);
    let (exe, args) = ("/app/step.py".into(), "step.py".into());
    out.push(0, Op::Process { pid: 1, parent: 0, exe, args, cwd: "/".into(), driver: 13000 });
    out.push(0, Op::CallName { id: CallId(1), name: "cuMemsetD8Async".into() });
    out.push(0, Op::Device { ordinal: 0, arch: 90, name: "GPU".into() });
    out.push(0, Op::ContextCreate { context, device: 0, handle: 1 });
    for id in 1..=2 {
        let (stream, kind) = (StreamId(id), StreamKind::NonBlocking);
        out.push(0, Op::StreamCreate { stream, context, kind, priority: 0, handle: 0 });
    }
    let (kind, size, pool) = (MemoryKind::Device, u64::from(findings) * BYTES, PoolId(0));
    out.push(0, Op::Alloc { ptr: BASE, size, kind, context, stream: StreamId::NONE, pool, flags: 0 });
    let each = findings / causes;
    for cause in 0..causes {
        let (from, line) = (u64::from(cause * each) * BYTES, cause * (each + 1) + 1);
        out.fill(line, 1, from, u64::from(each) * BYTES);
        for n in 0..each {
            out.fill(line + 1 + n, 2, from + u64::from(n) * BYTES, BYTES);
        }
        // The next ones are ordered behind these.
        out.order(1, 1, 2);
        out.order(2, 2, 1);
    }
    out.0.finish().expect("write");
}

fn main() {
    let numbers: Vec<u32> = std::env::args().skip(1).map(|word| word.parse().expect("a number")).collect();
    let mut sizes: Vec<(u32, u32)> = numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    if sizes.is_empty() {
        sizes = SIZES.into();
    }
    println!("{:>8} {:>7} {:>9} {:>8} {:>7} {:>9}", "findings", "causes", "findings", "causes", "trials", "weighed");
    let path = std::env::temp_dir().join(format!("streamsan-many-causes-{}.trace", std::process::id()));
    for (findings, causes) in sizes {
        write(&path, findings, causes);
        let began = Instant::now();
        let mut found = 0.0;
        let mut early = |_| found = began.elapsed().as_secs_f64();
        let (outcomes, error) =
            recorded::check(&path, AnalysisOptions::default(), None, &[], (0, &mut Progress::new(1)), &mut early);
        let all = began.elapsed().as_secs_f64();
        assert!(error.is_none(), "{error:?}");
        let report = Report::merge(outcomes, false);
        let tried = report.mended.as_ref().expect("tried, or why not");
        let why = if tried.skipped.is_empty() { "" } else { &tried.skipped };
        println!(
            "{:>8} {:>7} {found:>8.2}s {all:>7.2}s {:>7} {:>9} {why}",
            report.findings.len(),
            report.causes.len(),
            tried.trials,
            tried.weighed,
        );
    }
    let _ = std::fs::remove_file(path);
}
