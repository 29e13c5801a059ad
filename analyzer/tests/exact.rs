//! Launches whose bytes were measured: what that changes, and what it must not change.

use crate::support::*;
use analysis::{Analysis, AnalysisOptions};
use detect::memory::AccessKind;
use report::model::Report;
use trace::codec::List;
use trace::*;

/// A program of which some launches are measured.
struct Measured {
    p: Program,
    time: u64,
}

impl Measured {
    fn new(options: AnalysisOptions) -> Self {
        let mut p = Program::with(options);
        p.malloc(X, 4096);
        Self { p, time: 0 }
    }

    /// A launch that is to be measured. Returns the epoch that its ranges will name.
    fn launch(&mut self, stream: StreamId, kernel: KernelId, pointer: u64) -> Epoch {
        self.time += 1;
        let epoch = Epoch { timeline: TimelineId(stream.0), time: self.time };
        let call = self.p.call("cudaLaunchKernel");
        let origin = Origin { call, thread: ThreadId(1), stack: StackId(20 + self.time as u32), epoch };
        let params = pointer.to_le_bytes();
        let flags = launch_flags::EXACT;
        let op = launch_with(stream, kernel, flags, &params);
        self.p.analysis.feed(&Record { origin, op });
        epoch
    }

    fn touched(&mut self, launch: Epoch, flags: u32, runs: &[ExactRun]) {
        let Epoch { timeline, time } = launch;
        self.p.raw(Op::Exact { timeline, time, node: 0, flags, runs: List::new(runs) });
    }

    /// A graph of launches of kernels that scatter into X, one after the other or not, and its
    /// launch of which these nodes are measured.
    fn graph(&mut self, stream: StreamId, kernels: [KernelId; 2], ordered: bool, nodes: &[u32]) -> Epoch {
        let exec = GraphExecId(1);
        self.p.does("cudaGraphInstantiate", Op::GraphExec { exec, nodes: 2, flags: 0, handle: 9 });
        for (index, kernel) in (0..).zip(kernels) {
            let params = X.to_le_bytes();
            let op = launch(StreamId::NONE, kernel, &params);
            let mut body = [0; 256];
            let mut to = Encoder::new(&mut body);
            op.encode(&mut to);
            let len = to.finish().expect("room");
            let edges = [Dependency { from: 0, port: 0 }];
            let dependencies = List::new(if index == 1 && ordered { &edges[..] } else { &[] });
            let (call, stack) = (CallId(1), StackId(70 + index));
            let (tag, body) = (op.tag(), &body[..len]);
            self.p.raw(Op::GraphNode { exec, index, stack, call, enabled: true, dependencies, tag, body });
        }
        self.p.raw(Op::ExactNodes { exec, nodes: List::new(nodes) });
        self.time += 1;
        let epoch = Epoch { timeline: TimelineId(stream.0), time: self.time };
        let call = self.p.call("cudaGraphLaunch");
        let origin = Origin { call, thread: ThreadId(1), stack: StackId(20), epoch };
        self.p.analysis.feed(&Record { origin, op: Op::GraphLaunch { stream, exec } });
        epoch
    }

    fn touched_by(&mut self, launch: Epoch, node: u32, runs: &[ExactRun]) {
        let Epoch { timeline, time } = launch;
        self.p.raw(Op::Exact { timeline, time, node, flags: 0, runs: List::new(runs) });
    }

    fn report(&mut self) -> Report {
        let analysis: &mut Analysis = &mut self.p.analysis;
        Report::merge(vec![analysis.finish()], false)
    }
}

fn run(start: u64, width: u64, kind: u32) -> ExactRun {
    ExactRun { start, stride: 0, width, count: 1, kind }
}

fn scatters() -> [Does; 1] {
    [writes(0, Shape::Scattered)]
}

#[test]
fn two_scatters_are_certain_or_nothing() {
    for (second, findings) in [(X + 64, 0), (X + 63, 1)] {
        let mut m = Measured::new(AnalysisOptions::default());
        let k = m.p.kernel("scatter", &scatters());
        let (a, b) = (m.launch(A, k, X), m.launch(B, k, X));
        // The second arrives first: records wait for the first all the same.
        m.touched(b, 0, &[run(second, 8, exact_kind::WRITE)]);
        m.touched(a, 0, &[run(X, 64, exact_kind::WRITE)]);
        let report = m.report();
        assert_eq!(report.findings.len(), findings, "at {second:#x}");
        for f in &report.findings {
            assert_eq!((f.confidence.name(), f.established.name(), f.from, f.to), ("certain", "exact", 63, 64));
        }
        let c = &report.coverage;
        assert_eq!((c.launches, c.launches_exact, c.launches_measured), (2, 2, 2));
        assert!(c.unobserved.is_empty(), "{:?}", c.unobserved);
    }
}

#[test]
fn an_exact_prediction_is_replaced_by_what_was_touched() {
    let mut m = Measured::new(AnalysisOptions::default());
    let k = m.p.kernel("guarded", &[writes(0, Shape::Exact(0, 4096))]);
    let (a, b) = (m.launch(A, k, X), m.launch(B, k, X));
    m.touched(a, 0, &[run(X, 64, exact_kind::WRITE)]);
    m.touched(b, 0, &[run(X + 64, 64, exact_kind::WRITE)]);
    assert!(m.report().findings.is_empty());
}

#[test]
fn addresses_from_memory_are_seen() {
    let mut m = Measured::new(AnalysisOptions::default());
    m.p.malloc(X + 0x10000, 4096);
    // Its one parameter is a table elsewhere. No parameter says what it writes.
    let k = m.p.kernel("through_table", &[reads(0, Shape::Exact(0, 64))]);
    let (a, b) = (m.launch(A, k, X + 0x10000), m.launch(B, k, X + 0x10000));
    for launch in [a, b] {
        let runs = [run(X + 0x10000, 64, exact_kind::READ), run(X + 128, 4, exact_kind::WRITE)];
        m.touched(launch, 0, &runs);
    }
    let report = m.report();
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].hazard.name(), "write-after-write");
}

#[test]
fn lost_and_late_measurements_leave_the_prediction() {
    for lost in [true, false] {
        let mut m = Measured::new(AnalysisOptions::default());
        let k = m.p.kernel("fill", &[writes(0, Shape::Exact(0, 64))]);
        let (a, _) = (m.launch(A, k, X), m.launch(B, k, X));
        if lost {
            m.touched(a, exact_flags::LOST, &[]);
        }
        let report = m.report();
        assert_eq!(report.findings.len(), 1);
        assert_eq!((report.findings[0].established.name(), report.coverage.launches_measured), ("code", 0));
        assert_eq!(report.coverage.unobserved.len(), 1, "the one that never came is reported");
    }
}

#[test]
fn one_side_measured_is_not_exact() {
    let mut m = Measured::new(AnalysisOptions::default());
    let k = m.p.kernel("fill", &[writes(0, Shape::Exact(0, 64))]);
    let a = m.launch(A, k, X);
    m.touched(a, 0, &[run(X, 64, exact_kind::WRITE)]);
    m.p.launch(B, k, &[X]);
    assert_eq!(m.report().findings[0].established.name(), "code");
}

#[test]
fn nodes_of_graphs_are_measured_one_by_one() {
    let write = |start, width| run(start, width, exact_kind::WRITE);
    // Bytes of the second node, whether something orders the two, and what is found.
    let cases = [(X + 64, false, 0), (X + 63, false, 1), (X + 63, true, 0)];
    for (second, ordered, findings) in cases {
        let mut m = Measured::new(AnalysisOptions::default());
        let k = m.p.kernel("scatter", &scatters());
        let graph = m.graph(A, [k, k], ordered, &[1, 2]);
        m.touched_by(graph, 2, &[write(second, 8)]);
        m.touched_by(graph, 1, &[write(X, 64)]);
        let report = m.report();
        assert_eq!(report.findings.len(), findings, "{second:#x}");
        for f in &report.findings {
            assert_eq!((f.confidence.name(), f.established.name(), f.from, f.to), ("certain", "exact", 63, 64));
            assert_eq!((f.previous.node, f.access.node), (Some(0), Some(1)));
        }
        assert_eq!((report.coverage.launches, report.coverage.launches_measured), (2, 2));
    }
}

#[test]
fn a_node_that_is_not_measured_keeps_its_prediction() {
    let bytes = [run(X, 64, exact_kind::WRITE)];
    let mut m = Measured::new(AnalysisOptions::default());
    let (all, some) = (m.p.kernel("fill", &[writes(0, Shape::Exact(0, 4096))]), m.p.kernel("scatter", &scatters()));
    let graph = m.graph(A, [some, all], false, &[1]);
    m.touched_by(graph, 1, &bytes);
    let report = m.report();
    assert_eq!((report.findings[0].established.name(), report.coverage.launches_measured), ("code", 1));
    // Ranges that never arrive are reported, and nothing waits for them forever.
    let mut m = Measured::new(AnalysisOptions::default());
    let k = m.p.kernel("fill", &[writes(0, Shape::Exact(0, 4096))]);
    m.graph(A, [k, k], true, &[1, 2]);
    let report = m.report();
    assert_eq!((report.findings.len(), report.coverage.launches, report.coverage.unobserved.len()), (0, 2, 1));
}

#[test]
fn textures_keep_their_prediction() {
    let mut m = Measured::new(AnalysisOptions::default());
    let region = Region::linear(X, 4096);
    m.p.raw(Op::ObjectCreate { object: 5, region, writable: false });
    let k = m.p.kernel("sample", &[Does { param: 0, kind: AccessKind::Read, bytes: Shape::Object }]);
    let fill = m.p.kernel("fill", &[writes(0, Shape::Exact(0, 64))]);
    let (a, b) = (m.launch(A, fill, X), m.launch(B, k, 5));
    m.touched(a, 0, &[run(X, 64, exact_kind::WRITE)]);
    m.touched(b, 0, &[]);
    let report = m.report();
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].hazard.name(), "read-after-write");
}

/// Accesses that no measurement sees keep their prediction, and the coverage counts the launch,
/// unless the prediction is exact or the simulated GPU has measured them too.
#[test]
fn launches_with_texels_are_measured_in_part_on_a_device() {
    for (simulated, textured) in [(false, true), (true, true), (false, false), (true, false)] {
        let mut m = Measured::new(AnalysisOptions::default());
        m.p.raw(Op::ObjectCreate { object: 5, region: Region::pitched(X, 48, 8, 64), writable: false });
        let object = Does { param: 0, kind: AccessKind::Read, bytes: Shape::Object };
        let effects = if textured { vec![object] } else { Vec::from(scatters()) };
        let k = m.p.kernel("sample", &effects);
        let launch = m.launch(A, k, if textured { 5 } else { X });
        m.touched(launch, if simulated { exact_flags::SIMULATED } else { 0 }, &[]);
        let report = m.report();
        let (measured, in_part) = (report.coverage.launches_measured, report.coverage.launches_in_part);
        assert_eq!((measured, in_part), (1, u64::from(textured && !simulated)), "{simulated} {textured}");
    }
}

/// On a device a copy into all texels that a kernel may read is found though nothing measures them.
#[test]
fn a_copy_over_all_texels_races_whatever_is_measured() {
    for (width, rows, found) in [(48, 8, 1), (64, 8, 1), (47, 8, 0), (48, 7, 0)] {
        let mut m = Measured::new(AnalysisOptions::default());
        m.p.malloc(X + 8192, 4096);
        m.p.raw(Op::ObjectCreate { object: 5, region: Region::pitched(X, 48, 8, 64), writable: false });
        let k = m.p.kernel("sample", &[Does { param: 0, kind: AccessKind::Read, bytes: Shape::Object }]);
        let launch = m.launch(A, k, 5);
        m.touched(launch, 0, &[]);
        m.p.copy_region(B, Region::pitched(X, width, rows, 64), Region::linear(X + 8192, 512), D2D, 0);
        let report = m.report();
        assert_eq!(report.failures().count(), found, "{width} x {rows}");
    }
}

#[test]
fn bounds_of_measured_scatters_raise_no_alarm() {
    let mut m = Measured::new(AnalysisOptions::default());
    let k = m.p.kernel("scatter", &scatters());
    let (a, b) = (m.launch(A, k, X), m.launch(B, k, X));
    m.touched(a, 0, &[run(X, 2048, exact_kind::WRITE | exact_kind::BOUND)]);
    m.touched(b, 0, &[run(X + 1024, 2048, exact_kind::WRITE)]);
    let report = m.report();
    assert_eq!(report.failures().count(), 0);
    assert!(report.findings.iter().all(|f| f.confidence.name() == "possible"));
}

#[test]
fn predictions_are_compared_with_measurements() {
    let mut m = Measured::new(AnalysisOptions { compare: true, ..Default::default() });
    let k = m.p.kernel("fill", &[writes(0, Shape::Exact(0, 64))]);
    for width in [64, 65, 63] {
        let launch = m.launch(A, k, X);
        m.touched(launch, 0, &[run(X, width, exact_kind::WRITE)]);
    }
    let report = m.report();
    let counts: Vec<(&str, u64)> = report.oracle.counts().into_iter().map(|(v, n)| (v.name(), n)).collect();
    assert_eq!(counts, [("unsound", 1), ("overclaimed", 1), ("tight", 1)]);
    let file = report.oracle.json();
    let kernel = &file["kernels"][0];
    assert_eq!(kernel["kernel"], "fill");
    assert_eq!(kernel["examples"][0]["missing"][0]["ranges"][0], format!("{:#x}+1", X + 64));
    assert_eq!(
        report.oracle.line(),
        "streamsan: EXACT: 3 launches compared with what was predicted: 1 tight, 1 overclaimed, 1 unsound"
    );
}
