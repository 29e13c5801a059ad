//! Many findings with many causes: the time grows with their number, or a bound is named.

use crate::support::*;
use report::format::json;

const BYTES: u64 = 64;

/// So many places where a wait is missing, each with `each` findings of lines of their own.
fn missing_waits(causes: u32, each: u32) -> Program {
    let mut p = Program::new();
    p.malloc(X, u64::from(causes * each) * BYTES);
    let write = p.kernel("write", &[writes(0, Shape::Exact(0, BYTES * u64::from(each)))]);
    let read = p.kernel("read", &[reads(0, Shape::Exact(0, BYTES))]);
    for cause in 0..causes {
        let (first, at) = (cause * each, |n: u32| X + u64::from(n) * BYTES);
        p.line(cause * (each + 1) + 1).launch(A, write, &[at(first)]);
        for n in first..first + each {
            p.line(cause * (each + 1) + 2 + n - first).launch(B, read, &[at(n)]);
        }
        // The next ones are ordered behind these.
        p.order(A, B);
        p.order(B, A);
    }
    p
}

#[test]
fn a_thousand_findings_have_a_hundred_causes() {
    for (causes, each) in [(1, 50), (50, 10), (100, 10)] {
        let mut p = missing_waits(causes, each);
        let report = p.report();
        assert_eq!(json::report(&report)["findings"].as_array().map(Vec::len), Some(report.findings.len()));
        assert_eq!(report.findings.len() as u32, causes * each);
        let mended = report.mended.as_ref().expect("tried");
        assert_eq!((mended.waits, mended.remain, mended.smallest), (u64::from(causes), 0, true), "{mended:?}");
        assert_eq!(report.causes.len() as u32, causes);
    }
}

#[test]
fn the_work_grows_as_the_causes_do() {
    let work = |causes| {
        let report = missing_waits(causes, 4).report();
        let mended = report.mended.expect("tried");
        assert_eq!((mended.waits, mended.remain, mended.smallest), (u64::from(causes), 0, true), "{mended:?}");
        (mended.trials, mended.weighed)
    };
    let (few, many) = (work(20), work(160));
    assert_eq!(few.0, many.0, "as many trials");
    assert!(many.1 <= 9 * few.1, "{few:?} to {many:?}");
}

#[test]
fn a_stack_is_resolved_as_often_as_it_is_there_not_as_findings_name_it() {
    // So many writes at lines of their own, and as many reads of all that was written.
    let resolved_for = |lines: u32| {
        let mut p = Program::new();
        let all = BYTES * u64::from(lines);
        p.malloc(X, all);
        let write = p.kernel("write", &[writes(0, Shape::Exact(0, BYTES))]);
        let read = p.kernel("read", &[reads(0, Shape::Exact(0, all))]);
        for n in 0..lines {
            p.line(1 + n).launch(A, write, &[X + u64::from(n) * BYTES]);
        }
        for n in 0..lines {
            p.line(1 + lines + n).launch(B, read, &[X]);
        }
        let before = resolved();
        assert_eq!(p.analysis.finish().findings.len() as u32, lines * lines);
        resolved() - before
    };
    let (few, many) = (resolved_for(8), resolved_for(32));
    assert!(many <= 5 * few, "{few} for 64 findings, {many} for 1,024");
}
