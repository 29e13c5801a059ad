//! Many findings with many causes: the time grows with their number, or a bound is named.

use crate::support::*;
use analyzer::report::format::{json, text};

const BYTES: u64 = 64;

/// So many places where a wait is missing, each with `each` findings of lines of their own.
fn missing_waits(causes: u32, each: u32) -> Program {
    let mut p = Program::new();
    p.malloc(X, u64::from(causes * each) * BYTES);
    let write = p.kernel("write", &[writes(0, Shape::Exact(0, BYTES))]);
    let read = p.kernel("read", &[reads(0, Shape::Exact(0, BYTES))]);
    for cause in 0..causes {
        let (first, at) = (cause * each, |n: u32| X + u64::from(n) * BYTES);
        for n in first..first + each {
            p.line(2 * n + 1).launch(A, write, &[at(n)]);
        }
        for n in first..first + each {
            p.line(2 * n + 2).launch(B, read, &[at(n)]);
        }
        // The next ones are ordered behind these.
        p.order(A, B);
        p.order(B, A);
    }
    p
}

/// Processor time of this thread, in seconds: other tests run beside it.
fn seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: time is writable; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[test]
fn five_thousand_findings_with_five_hundred_causes_take_seconds() {
    for (causes, each, within) in [(1, 50, 1.0), (50, 10, 3.0), (500, 10, 10.0)] {
        let mut p = missing_waits(causes, each);
        let began = seconds();
        let report = p.report();
        let printed = text::report(&report, text::Style::default(), 50);
        assert_eq!(json::report(&report)["findings"].as_array().map(Vec::len), Some(report.findings.len()));
        let took = seconds() - began;
        assert!(took < within, "{causes} causes of {each} findings took {took} s");
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
