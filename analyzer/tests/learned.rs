//! Learned ranges: measured once and used for later launches (`--learned`).

use std::sync::Arc;

use crate::support::*;
use analysis::{Analysis, AnalysisOptions};
use detect::exact::learned::Learned;
use report::model::Report;
use trace::codec::List;
use trace::*;

const Y: u64 = X + 0x10_0000;

/// One run: two launches of two kernels at `first` and `second`, on two streams. Some are measured.
struct Run {
    p: Program,
    time: u64,
}

impl Run {
    fn new(known: &Arc<Learned>) -> Self {
        let mut p = Program::with(AnalysisOptions::default());
        p.malloc(X, 4096);
        p.malloc(Y, 4096);
        p.analysis.learn(Arc::clone(known));
        Self { p, time: 0 }
    }

    /// Launches a kernel on `grid` blocks; `touched` is what it was measured to write.
    fn launch(&mut self, stream: StreamId, name: &str, grid: u32, pointers: &[u64], touched: Option<&[ExactRun]>) {
        let does = [writes(0, if name.contains("scatter") { Shape::Scattered } else { Shape::Unknown })];
        self.launch_code(stream, name, &does, grid, pointers, touched);
    }

    fn launch_code(
        &mut self,
        stream: StreamId,
        name: &str,
        does: &[Does],
        grid: u32,
        pointers: &[u64],
        touched: Option<&[ExactRun]>,
    ) {
        let kernel = self.p.kernel(name, does);
        self.time += 1;
        let epoch = Epoch { timeline: TimelineId(stream.0), time: self.time };
        let call = self.p.call("cudaLaunchKernel");
        let origin = Origin { call, thread: ThreadId(1), stack: StackId(20 + self.time as u32), epoch };
        let params: Vec<u8> = pointers.iter().flat_map(|p| p.to_le_bytes()).collect();
        let flags = if touched.is_some() { launch_flags::EXACT } else { 0 };
        let shape = LaunchShape::new([grid, 1, 1], [32, 1, 1]).with_flags(flags);
        let op = Op::Launch { stream, kernel, shape, params: &params };
        self.p.analysis.feed(&Record { origin, op });
        if let Some(runs) = touched {
            let Epoch { timeline, time } = epoch;
            self.p.raw(Op::Exact { timeline, time, node: 0, flags: 0, runs: List::new(runs) });
        }
    }

    fn end(&mut self) -> Report {
        let analysis: &mut Analysis = &mut self.p.analysis;
        Report::merge(vec![analysis.finish()], false)
    }
}

fn run(start: u64, width: u64) -> ExactRun {
    ExactRun { start, stride: 0, width, count: 1, kind: exact_kind::WRITE }
}

/// The ranges that a measured run learns: `fixed_low` writes 64 bytes from its pointer,
/// `fixed_high` 64 bytes from its pointer + `from`.
fn learned(from: u64) -> Arc<Learned> {
    let mut r = Run::new(&Arc::default());
    r.launch(A, "fixed_low", 1, &[X], Some(&[run(X, 64)]));
    r.launch(A, "fixed_high", 1, &[X], Some(&[run(X + from, 64)]));
    let report = r.end();
    assert_eq!(report.learned.counts(), (2, 0));
    Arc::new(report.learned)
}

#[test]
fn what_was_learned_decides_without_measuring() {
    for (from, findings) in [(64, 0), (63, 1)] {
        // The same on other memory.
        let mut r = Run::new(&learned(from));
        r.launch(A, "fixed_low", 1, &[Y], None);
        r.launch(B, "fixed_high", 1, &[Y], None);
        let report = r.end();
        assert_eq!(report.findings.len(), findings, "from {from}");
        for f in &report.findings {
            assert_eq!((f.confidence.name(), f.established.name(), f.from, f.to), ("certain", "exact", 63, 64));
        }
        assert_eq!((report.coverage.launches_measured, report.coverage.launches_learned), (0, 2));
    }
    // Without the file the two are only likely to meet.
    let mut r = Run::new(&Arc::default());
    r.launch(A, "fixed_low", 1, &[Y], None);
    r.launch(B, "fixed_high", 1, &[Y], None);
    assert_eq!(r.end().findings[0].confidence.name(), "likely");
}

#[test]
fn another_shape_or_kernel_is_predicted() {
    let known = learned(64);
    for (name, grid, pointers) in [
        ("fixed_high", 2, vec![X]),
        ("fixed_other", 1, vec![X]),
        // Another alignment, another word behind.
        ("fixed_high", 1, vec![X + 4]),
        ("fixed_high", 1, vec![X, 7]),
    ] {
        let mut r = Run::new(&known);
        r.launch(A, "fixed_low", 1, &[X], None);
        r.launch(B, name, grid, &pointers, None);
        let report = r.end();
        assert_eq!(report.coverage.launches_learned, 1, "{name} {grid} {pointers:x?}");
        assert!(report.findings.iter().all(|f| f.established.name() == "code" && f.confidence.name() != "certain"));
    }
}

/// What a kernel with two pointers does.
fn two() -> [Does; 2] {
    [writes(0, Shape::Unknown), reads(8, Shape::Unknown)]
}

/// Launches of a kernel with two pointers whose ranges are recalled.
fn recalled_with(known: &Arc<Learned>, pointers: &[u64]) -> u64 {
    let mut r = Run::new(known);
    r.launch_code(A, "fixed", &two(), 1, pointers, None);
    r.end().coverage.launches_learned
}

#[test]
fn pointers_into_one_allocation_differ_from_those_into_two() {
    let mut r = Run::new(&Arc::default());
    r.launch_code(A, "fixed", &two(), 1, &[X, X + 0x100], Some(&[run(X + 0x100, 64)]));
    let known = Arc::new(r.end().learned);
    for (pointers, recalled) in [([Y, Y + 0x100], 1), ([Y, Y + 0x200], 0), ([X, Y], 0)] {
        assert_eq!(recalled_with(&known, &pointers), recalled, "{pointers:x?}");
    }
}

#[test]
fn which_of_two_buffers_lies_lower_may_decide() {
    let mut r = Run::new(&Arc::default());
    r.launch_code(A, "fixed", &two(), 1, &[X, Y], Some(&[run(X, 64)]));
    let known = Arc::new(r.end().learned);
    for (pointers, recalled) in [([X, Y], 1), ([Y, X], 0)] {
        assert_eq!(recalled_with(&known, &pointers), recalled, "{pointers:x?}");
    }
}

#[test]
fn a_number_that_looks_like_a_pointer_counts_as_it_is() {
    let mut r = Run::new(&Arc::default());
    r.launch(A, "fixed", 1, &[X, Y], Some(&[run(X, 64)]));
    let known = Arc::new(r.end().learned);
    for (number, recalled) in [(Y, 1), (Y + 0x100, 0)] {
        let mut r = Run::new(&known);
        r.launch(A, "fixed", 1, &[X, number], None);
        assert_eq!(r.end().coverage.launches_learned, recalled, "{number:x}");
    }
}

#[test]
fn changed_code_forgets() {
    let mut r = Run::new(&Arc::default());
    r.launch(A, "fixed", 1, &[X], Some(&[run(X, 64)]));
    let known = Arc::new(r.end().learned);
    for (does, recalled) in [(vec![writes(0, Shape::Unknown)], 1), (vec![writes(0, Shape::Unknown); 2], 0)] {
        let mut r = Run::new(&known);
        r.launch_code(A, "fixed", &does, 1, &[X], None);
        assert_eq!(r.end().coverage.launches_learned, recalled);
    }
}

#[test]
fn code_that_was_not_patched_after_all_teaches_nothing() {
    let mut r = Run::new(&Arc::default());
    r.launch(A, "fixed", 1, &[X], Some(&[]));
    assert_eq!(r.end().learned.counts(), (0, 0));
}

#[test]
fn kernels_that_data_decides_are_never_learned() {
    let mut r = Run::new(&Arc::default());
    r.launch(A, "scatter", 1, &[X], Some(&[run(X, 64)]));
    r.launch(A, "gathers_by_data", 1, &[X], Some(&[run(X, 64)]));
    assert_eq!(r.end().learned.counts(), (0, 0));
}

#[test]
fn what_no_pointer_leads_to_is_not_learned() {
    for runs in [
        vec![run(X, 64), run(Y, 4)],
        vec![ExactRun { kind: exact_kind::WRITE | exact_kind::BOUND, ..run(X, 64) }],
        vec![run(X + 4090, 10)],
    ] {
        let mut r = Run::new(&Arc::default());
        r.launch(A, "fixed", 1, &[X], Some(&runs));
        assert_eq!(r.end().learned.counts(), (0, 0), "{runs:x?}");
    }
}

#[test]
fn ranges_that_differ_are_struck_out() {
    let mut r = Run::new(&Arc::default());
    r.launch(A, "fixed", 1, &[X], Some(&[run(X, 64)]));
    r.launch(A, "fixed", 1, &[Y], Some(&[run(Y, 32)]));
    let learned = r.end().learned;
    assert_eq!(learned.counts(), (0, 1));
    let mut r = Run::new(&Arc::new(learned));
    r.launch(A, "fixed", 1, &[X], None);
    assert_eq!(r.end().coverage.launches_learned, 0);
}

#[test]
fn ranges_that_would_leave_a_smaller_buffer_are_not_used() {
    let mut r = Run::new(&Arc::default());
    r.launch(A, "fixed", 1, &[X], Some(&[run(X + 1024, 64)]));
    let known = Arc::new(r.end().learned);
    let mut r = Run::new(&known);
    r.p.malloc(X + 0x20_0000, 512);
    r.launch(A, "fixed", 1, &[X + 0x20_0000], None);
    assert_eq!(r.end().coverage.launches_learned, 0);
}
