//! Kernels of which nothing is known: what they may do to their pointers, and how much a finding
//! that rests on it is worth.

use crate::support::*;
use analysis::AnalysisOptions;
use detect::confidence::Confidence;
use report::model::Report;
use settings::Judging;
use trace::*;

const N: u64 = 4096;

/// The confidence of the only finding, if there is one.
fn confidence(p: &mut Program) -> Option<&'static str> {
    let found = p.findings();
    assert!(found.len() <= 1, "{found:#?}");
    found.first().map(|f| f.confidence.name())
}

/// Whether a report of these findings would fail by default.
fn fails(p: &mut Program) -> bool {
    Report::merge(vec![p.outcome()], false).failures().next().is_some()
}

#[test]
fn it_may_do_anything_to_its_pointers() {
    let mut p = Program::new();
    p.malloc(X, N);
    p.malloc(X + N, N);
    let k = p.define("mystery");
    p.launch(A, k, &[X, 7]);
    p.launch(B, k, &[X + N, 0]);
    p.silent();
    p.launch(B, k, &[12, X]);
    let f = p.finds("read-after-write possible");
    assert_eq!((f.access.param, f.previous.param), (Some(8), Some(0)));
    let c = p.outcome().coverage;
    assert_eq!((c.launches, c.launches_unknown, c.launches_exact), (3, 3, 0));
    assert_eq!(c.reasons.get("no code"), Some(&3));
}

/// Two streams that only read one table are right, so neither order of the two may fail a run.
#[test]
fn whether_it_writes_is_a_guess() {
    for mystery_first in [false, true] {
        let mut p = Program::new();
        p.malloc(X, N);
        let mystery = p.define("mystery");
        let reader = p.kernel("reader", &[reads(0, Shape::Exact(0, N))]);
        let (first, second) = if mystery_first { (mystery, reader) } else { (reader, mystery) };
        p.launch(A, first, &[X]);
        p.launch(B, second, &[X]);
        assert_eq!(confidence(&mut p), Some("possible"));
        assert!(!fails(&mut p));
        let report = Report::merge(vec![p.outcome()], false);
        assert!(report.findings[0].is_guessed());
    }
    let mut p = Program::with(AnalysisOptions {
        judging: Judging { pedantic: true, ..Default::default() },
        ..Default::default()
    });
    p.malloc(X, N);
    let mystery = p.define("mystery");
    p.alloc(PINNED, N, MemoryKind::PinnedHost);
    p.launch(A, mystery, &[X]);
    p.copy(B, PINNED, X, N, D2H);
    assert_eq!(p.findings()[0].confidence, Confidence::Possible, "the copy reads");
}

/// The other side writes: whatever the kernel does there, the two conflict.
#[test]
fn a_write_beside_it_is_a_race_either_way() {
    for mystery_first in [false, true] {
        let mut p = Program::new();
        p.malloc(X, N);
        let mystery = p.define("mystery");
        let writer = p.kernel("writer", &[writes(0, Shape::Exact(0, N))]);
        let (first, second) = if mystery_first { (mystery, writer) } else { (writer, mystery) };
        p.launch(A, first, &[X]);
        p.launch(B, second, &[X]);
        assert_eq!(confidence(&mut p), Some("likely"));
        assert!(fails(&mut p));
    }
}

/// Both may be atomics, which do not conflict.
#[test]
fn an_atomic_beside_it_may_be_none() {
    let mut p = Program::new();
    p.malloc(X, N);
    let mystery = p.define("mystery");
    p.go(A, X, &[atomics(0, Shape::Exact(0, N))]);
    p.launch(B, mystery, &[X]);
    assert_eq!(confidence(&mut p), Some("possible"));
}

/// A kernel that surely writes, and behind it in its stream one of which nothing is known: the
/// second must not hide the first from a reader on another stream.
#[test]
fn a_guess_does_not_stand_for_what_is_known() {
    for extent in [Shape::Unknown, Shape::Exact(0, N)] {
        let mut p = Program::new();
        p.malloc(X, N);
        let mystery = p.define("mystery");
        p.go(A, X, &[writes(0, extent)]);
        p.launch(A, mystery, &[X]);
        p.go(B, X, &[reads(0, Shape::Exact(0, N))]);
        assert!(fails(&mut p), "{:#?}", p.findings());
    }
    // Its twin waits.
    let mut p = Program::new();
    p.malloc(X, N);
    let mystery = p.define("mystery");
    p.go(A, X, &[writes(0, Shape::Unknown)]);
    p.launch(A, mystery, &[X]);
    p.order(A, B);
    p.go(B, X, &[reads(0, Shape::Exact(0, N))]);
    p.silent();
}

/// A launch whose evaluation fails is one of which nothing is known, whatever was found before.
#[test]
fn a_failed_evaluation_is_no_code() {
    let failing = [reads(0, Shape::Exact(0, N)), reads(0, Shape::Failed)];
    for (other, expected) in [(reads(0, Shape::Exact(0, N)), "possible"), (writes(0, Shape::Exact(0, N)), "likely")] {
        let mut p = Program::new();
        p.malloc(X, N);
        p.go(A, X, &failing);
        p.go(B, X, &[other]);
        assert_eq!(confidence(&mut p), Some(expected));
        let c = p.outcome().coverage;
        assert_eq!((c.launches, c.launches_unknown, c.launches_exact), (2, 1, 1));
    }
}
