//! Confirmation of findings (`--confirm`): which kernels are to be measured, and what measurements
//! do to findings.

use crate::support::*;
use analysis::AnalysisOptions;
use report::model::Report;
use settings::Judging;
use trace::codec::List;
use trace::*;

/// Two kernels of unknown extent, launched at the same two places of a loop, on two streams.
struct Loop {
    p: Program,
    first: KernelId,
    second: KernelId,
    time: u64,
}

const FIRST: u32 = 21;
const SECOND: u32 = 22;

impl Loop {
    fn new(does: &[Does]) -> Self {
        Self::with(AnalysisOptions { confirm: true, ..Default::default() }, does)
    }

    fn with(options: AnalysisOptions, does: &[Does]) -> Self {
        let mut p = Program::with(options);
        p.malloc(X, 4096);
        let (first, second) = (p.kernel("first", does), p.kernel("second", does));
        Self { p, first, second, time: 0 }
    }

    fn launch(&mut self, stream: StreamId, kernel: KernelId, line: u32, flags: u32, pointer: u64) -> Epoch {
        self.time += 1;
        let epoch = Epoch { timeline: TimelineId(stream.0), time: self.time };
        let call = self.p.call("cudaLaunchKernel");
        let origin = Origin { call, thread: ThreadId(1), stack: StackId(line), epoch };
        let params = pointer.to_le_bytes();
        let op = launch_with(stream, kernel, flags, &params);
        self.p.analysis.feed(&Record { origin, op });
        epoch
    }

    /// One turn without a measurement.
    fn turn(&mut self) {
        let (first, second) = (self.first, self.second);
        self.launch(A, first, FIRST, 0, X);
        self.launch(B, second, SECOND, 0, X);
        self.together();
    }

    /// One turn of which both launches are measured.
    fn measured(&mut self, a: ExactRun, b: ExactRun) {
        let (first, second) = (self.first, self.second);
        let one = self.launch(A, first, FIRST, launch_flags::EXACT, X);
        let two = self.launch(B, second, SECOND, launch_flags::EXACT, X);
        self.touched(one, &[a]);
        self.touched(two, &[b]);
        self.together();
    }

    fn touched(&mut self, launch: Epoch, runs: &[ExactRun]) {
        let Epoch { timeline, time } = launch;
        self.p.raw(Op::Exact { timeline, time, node: 0, flags: 0, runs: List::new(runs) });
    }

    /// The turns do not race with each other.
    fn together(&mut self) {
        self.p.sync(A);
        self.p.sync(B);
    }

    fn asked(&mut self) -> Vec<KernelId> {
        let mut list: Vec<KernelId> = std::iter::from_fn(|| self.p.analysis.wanted()).collect();
        list.sort_unstable();
        list
    }

    fn report(&mut self) -> Report {
        Report::merge(vec![self.p.analysis.finish()], false)
    }
}

fn run(start: u64, width: u64) -> ExactRun {
    ExactRun { start, stride: 0, width, count: 1, kind: exact_kind::WRITE }
}

fn unknown() -> [Does; 1] {
    [writes(0, Shape::Unknown)]
}

#[test]
fn kernels_of_doubtful_findings_are_asked_for_once() {
    let mut l = Loop::new(&unknown());
    l.turn();
    assert_eq!(l.asked(), [l.first, l.second]);
    l.turn();
    assert!(l.asked().is_empty());
    let report = l.report();
    assert_eq!(report.findings.len(), 1, "never measured: it stays as it was");
    assert_eq!((report.findings[0].confidence.name(), report.findings[0].established.name()), ("likely", "code"));
    assert_eq!(report.withdrawn().count(), 0);
}

#[test]
fn no_kernel_is_wanted_without_the_option_or_a_doubt() {
    let mut l = Loop::with(AnalysisOptions::default(), &unknown());
    l.turn();
    assert!(l.asked().is_empty());
    let mut l = Loop::new(&[writes(0, Shape::Exact(0, 64))]);
    l.turn();
    assert!(l.asked().is_empty(), "certain by their code");
    assert_eq!(l.report().findings[0].confidence.name(), "certain");
    // Two scatters are `possible` only, which is not shown: a run shows whether they meet.
    let pedantic = AnalysisOptions {
        confirm: true,
        judging: Judging { pedantic: true, ..Default::default() },
        ..Default::default()
    };
    for options in [AnalysisOptions { confirm: true, ..Default::default() }, pedantic] {
        let mut l = Loop::with(options, &[writes(0, Shape::Scattered)]);
        l.turn();
        assert_eq!(l.asked(), [l.first, l.second]);
    }
}

#[test]
fn ranges_that_do_not_meet_withdraw_the_finding() {
    let mut l = Loop::new(&unknown());
    l.turn();
    l.measured(run(X, 64), run(X + 64, 64));
    let report = l.report();
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    assert_eq!(report.withdrawn().count(), 1);
    let text = report::format::closing::coverage(&report);
    assert!(text.contains("NOTE: 1 finding withdrawn: exact ranges do not meet\n"), "{text}");
    let json = report::format::json::report(&report);
    assert_eq!((&json["summary"]["withdrawn"], &json["summary"]["findings"]), (&1.into(), &0.into()));
    assert_eq!(json["withdrawn"][0]["confidence"], "likely");
}

#[test]
fn ranges_that_meet_make_it_certain() {
    let mut l = Loop::new(&unknown());
    l.turn();
    l.measured(run(X, 64), run(X + 63, 64));
    let report = l.report();
    assert_eq!(report.findings.len(), 1);
    let f = &report.findings[0];
    assert_eq!((f.confidence.name(), f.established.name(), f.count, f.from, f.to), ("certain", "exact", 2, 63, 64));
    assert_eq!(report.withdrawn().count(), 0);
}

#[test]
fn one_turn_that_meets_outweighs_those_that_do_not() {
    let mut l = Loop::new(&unknown());
    l.turn();
    l.measured(run(X, 64), run(X + 64, 64));
    l.measured(run(X, 64), run(X + 32, 64));
    l.measured(run(X, 64), run(X + 64, 64));
    let report = l.report();
    assert_eq!(report.findings.len(), 1);
    assert_eq!((report.findings[0].confidence.name(), report.findings[0].established.name()), ("certain", "exact"));
    assert_eq!(report.withdrawn().count(), 0);
}

#[test]
fn another_hazard_at_the_same_places_replaces_the_doubtful_one() {
    // By the code both read and write; by measurement one only reads.
    let mut l = Loop::new(&[reads(0, Shape::Unknown), writes(0, Shape::Unknown)]);
    l.turn();
    l.measured(ExactRun { kind: exact_kind::READ, ..run(X, 64) }, run(X, 64));
    let report = l.report();
    assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
    let f = &report.findings[0];
    assert_eq!((f.hazard.name(), f.confidence.name()), ("write-after-read", "certain"));
}

#[test]
fn one_side_measured_refutes_nothing() {
    let mut l = Loop::new(&unknown());
    l.turn();
    let (first, second) = (l.first, l.second);
    let one = l.launch(A, first, FIRST, launch_flags::EXACT, X);
    l.touched(one, &[run(X + 2048, 64)]);
    l.launch(B, second, SECOND, 0, X);
    l.together();
    let report = l.report();
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].established.name(), "code");
}

#[test]
fn a_copy_beside_a_measured_kernel_is_enough() {
    for (start, findings) in [(X + 64, 0), (X + 63, 1)] {
        let mut l = Loop::new(&unknown());
        let second = l.second;
        for measured in [false, true] {
            l.p.line(FIRST).set(A, X, 64);
            let flags = if measured { launch_flags::EXACT } else { 0 };
            let launch = l.launch(B, second, SECOND, flags, X);
            if measured {
                l.touched(launch, &[run(start, 64)]);
            }
            l.together();
        }
        let report = l.report();
        assert_eq!((report.findings.len(), report.withdrawn().count()), (findings, 1 - findings), "{start:#x}");
        assert!(report.findings.iter().all(|f| f.established.name() == "exact" && f.confidence.name() == "certain"));
    }
}

#[test]
fn a_measured_kernel_before_a_copy_is_enough_too() {
    for (start, findings) in [(X + 64, 0), (X + 63, 1)] {
        let mut l = Loop::new(&unknown());
        let first = l.first;
        for measured in [false, true] {
            let flags = if measured { launch_flags::EXACT } else { 0 };
            let launch = l.launch(A, first, FIRST, flags, X);
            if measured {
                l.touched(launch, &[run(start, 64)]);
            }
            l.p.line(SECOND).set(B, X, 64);
            l.together();
        }
        let report = l.report();
        assert_eq!((report.findings.len(), report.withdrawn().count()), (findings, 1 - findings), "{start:#x}");
    }
}

#[test]
fn turns_that_were_ordered_say_nothing() {
    let mut l = Loop::new(&unknown());
    l.turn();
    let (first, second) = (l.first, l.second);
    let one = l.launch(A, first, FIRST, launch_flags::EXACT, X);
    l.p.line(50).order(A, B);
    let two = l.launch(B, second, SECOND, launch_flags::EXACT, X);
    l.touched(one, &[run(X, 64)]);
    l.touched(two, &[run(X + 64, 64)]);
    l.together();
    let report = l.report();
    assert_eq!((report.findings.len(), report.withdrawn().count()), (1, 0), "they did not meet again");
}

#[test]
fn a_race_with_another_partner_is_no_refutation() {
    let mut l = Loop::new(&unknown());
    l.turn();
    // The bytes of the first are overwritten, in order, by a third, which races in its place.
    let (first, second) = (l.first, l.second);
    let one = l.launch(A, first, FIRST, launch_flags::EXACT, X);
    l.touched(one, &[run(X, 64)]);
    l.p.line(60).set(A, X, 64);
    let two = l.launch(B, second, SECOND, launch_flags::EXACT, X);
    l.touched(two, &[run(X, 64)]);
    l.together();
    let report = l.report();
    assert_eq!(report.withdrawn().count(), 0);
    assert!(report.findings.iter().any(|f| f.established.name() == "exact"));
    assert!(report.findings.iter().any(|f| f.confidence.name() == "likely"), "still open");
}

#[test]
fn code_that_was_not_patched_after_all_is_not_believed() {
    let mut l = Loop::new(&unknown());
    l.turn();
    let (first, second) = (l.first, l.second);
    for (stream, kernel, line) in [(A, first, FIRST), (B, second, SECOND)] {
        let launch = l.launch(stream, kernel, line, launch_flags::EXACT, X);
        l.touched(launch, &[]);
    }
    l.together();
    let report = l.report();
    assert_eq!((report.findings.len(), report.withdrawn().count()), (1, 0));
    assert_eq!(report.coverage.unobserved["exact ranges that came back empty"], 2);
    assert_eq!(report.coverage.launches_measured, 0);
}

#[test]
fn memory_that_is_gone_is_no_witness() {
    let mut l = Loop::new(&unknown());
    l.turn();
    let (first, second) = (l.first, l.second);
    let one = l.launch(A, first, FIRST, launch_flags::EXACT, X);
    l.touched(one, &[run(X, 64)]);
    l.together();
    l.p.free(X, FreeKind::Plain, StreamId(0));
    l.p.malloc(X, 4096);
    let two = l.launch(B, second, SECOND, launch_flags::EXACT, X);
    l.touched(two, &[run(X + 64, 64)]);
    let report = l.report();
    assert_eq!((report.findings.len(), report.withdrawn().count()), (1, 0));
}

/// As a hunt's second run: the kernels are measured from their first launch on.
fn from_start() -> Loop {
    Loop::with(AnalysisOptions { confirm: true, measured_from_start: true, ..Default::default() }, &unknown())
}

#[test]
fn what_is_refuted_from_the_start_is_told_as_withdrawn() {
    let mut l = from_start();
    l.measured(run(X, 64), run(X + 64, 64));
    l.measured(run(X, 64), run(X + 64, 64));
    let report = l.report();
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    let withdrawn: Vec<_> = report.withdrawn().collect();
    assert_eq!(withdrawn.len(), 1);
    assert_eq!((withdrawn[0].confidence.name(), withdrawn[0].established.name()), ("likely", "exact"));
    assert!(!withdrawn[0].fingerprint.is_empty());
    // Its places are those that the finding of a run without measurements has.
    let mut predicted = Loop::with(AnalysisOptions::default(), &unknown());
    predicted.turn();
    let predicted = predicted.report();
    assert_eq!(withdrawn[0].identity.places, predicted.findings[0].identity.places);
    // Without the word that kernels are measured from the start there is no such finding.
    let mut l = Loop::new(&unknown());
    l.measured(run(X, 64), run(X + 64, 64));
    assert_eq!(l.report().withdrawn().count(), 0);
}

#[test]
fn a_later_turn_that_meets_outweighs_what_was_refuted_from_the_start() {
    let mut l = from_start();
    l.measured(run(X, 64), run(X + 64, 64));
    l.measured(run(X, 64), run(X + 63, 64));
    let report = l.report();
    assert_eq!((report.findings.len(), report.withdrawn().count()), (1, 0));
    assert_eq!((report.findings[0].confidence.name(), report.findings[0].established.name()), ("certain", "exact"));
}

#[test]
fn places_are_the_same_whatever_the_sides_do() {
    // By the code both read and write; by measurement one only reads.
    let does = [reads(0, Shape::Unknown), writes(0, Shape::Unknown)];
    let mut predicted = Loop::with(AnalysisOptions::default(), &does);
    predicted.turn();
    let predicted = predicted.report();
    let mut l = Loop::with(AnalysisOptions { confirm: true, measured_from_start: true, ..Default::default() }, &does);
    l.measured(ExactRun { kind: exact_kind::READ, ..run(X, 64) }, run(X, 64));
    let measured = l.report();
    let (f, m) = (&predicted.findings[0].identity, &measured.findings[0].identity);
    assert_eq!(measured.findings[0].hazard.name(), "write-after-read");
    assert!(predicted.findings.iter().any(|f| f.hazard.name() != "write-after-read"));
    assert_eq!(f.places, m.places);
}
