//! What the coverage says of memory that nothing looks after.

use crate::support::*;
use report::format::text;
use report::model::Report;
use trace::*;

const N: u64 = 4096;
const HEAP: u64 = 0x5555_0000_0000;
const NOTE: &str = "used memory that no CUDA call allocated";

/// The number of launches that were given memory of the operating system, and whether the report
/// has a line about them. Both must say the same.
fn told(p: &mut Program) -> u64 {
    let report = Report::merge(vec![p.outcome()], false);
    let text = text::report(&report, text::Style::default(), 9);
    assert_eq!(text.contains(NOTE), report.coverage.launches_system > 0, "{text}");
    report.coverage.launches_system
}

/// A program on a device that reaches what `malloc` gave, or does not.
fn program(reaches: bool) -> Program {
    let mut p = Program::new();
    if reaches {
        p.raw(Op::Note { kind: NoteKind::Info, text: SYSTEM_MEMORY.into(), count: 1 });
    }
    p.malloc(X, N);
    p
}

#[test]
fn launches_with_memory_that_no_call_allocated_are_told_where_devices_reach_it() {
    for (name, shape) in [("exact", Shape::Exact(0, N)), ("bound", Shape::Bound(0, N)), ("unknown", Shape::Unknown)] {
        for (reaches, launches) in [(true, 3), (false, 0)] {
            let mut p = program(reaches);
            let k = p.kernel("writer", &[writes(0, shape.clone())]);
            // The same launch again takes another way through the analysis.
            for _ in 0..3 {
                p.launch(A, k, &[HEAP]);
            }
            assert_eq!(told(&mut p), launches, "{name}");
        }
    }
}

#[test]
fn null_pointers_numbers_and_rests_of_allocations_are_no_memory_of_the_system() {
    let mut p = program(true);
    let writer = p.kernel("writer", &[writes(0, Shape::Exact(0, N))]);
    p.launch(A, writer, &[0]);
    p.launch(A, writer, &[8 * N]);
    p.launch(A, writer, &[X]);
    // It runs over the end of what it was given: that is a finding's or a fault's affair.
    p.launch(A, writer, &[X + N / 2]);
    assert_eq!(told(&mut p), 0);
    // Nothing is known of its code, so a word is not known to be a pointer.
    let mystery = p.define("mystery");
    p.launch(A, mystery, &[HEAP]);
    assert_eq!(told(&mut p), 0);
}
