//! Many findings with many causes: the time grows with their number, or a bound is named.

use crate::support::*;
use analyzer::report::format::{json, text};

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
        let printed = text::report(&report, text::Style::default(), 50);
        assert_eq!(json::report(&report)["findings"].as_array().map(Vec::len), Some(report.findings.len()));
        assert_eq!(report.findings.len() as u32, causes * each);
        let mended = report.mended.as_ref().expect("tried, or why not");
        if mended.skipped.is_empty() {
            assert_eq!((mended.waits, mended.remain), (u64::from(causes), 0), "{mended:?}");
            assert_eq!(report.causes.len() as u32, causes);
        } else {
            assert!(printed.contains("NOTE: the mending waits were not tried: "), "the bound is named: {printed}");
        }
    }
}
