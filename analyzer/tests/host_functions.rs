//! Host accesses beside host functions: a function that has not ended holds back the work behind
//! it, and tells that work of what its thread knows.

use crate::host::{N, caught, changed, computing, touch, watch};
use crate::support::*;
use analysis::AnalysisOptions;
use settings::Judging;
use trace::*;

#[test]
fn a_host_function_may_touch_what_came_before_it_in_its_stream() {
    let function = |p: &mut Program, stream| {
        p.does("cudaLaunchHostFunc", Op::HostFunc { stream, func: HostFuncId(1), address: 1 });
    };
    let runs = |p: &mut Program| {
        p.does("", Op::HostFuncRun { func: HostFuncId(1), done: false });
        let region = Region::linear(PINNED, 64);
        p.does("", Op::HostTouch { region, writes: false, atomic: false, polled: false, func: HostFuncId(1) });
    };
    let mut p = computing();
    function(&mut p, A);
    // Behind it, but enqueued before it runs.
    p.go(A, PINNED, &[writes(0, Shape::Exact(0, N))]);
    runs(&mut p);
    p.silent();
    let mut p = computing();
    function(&mut p, B);
    runs(&mut p);
    p.finds("read-after-write certain");
    // Work that is enqueued later on another stream is not ordered with it either.
    let mut p = Program::new();
    p.alloc(PINNED, N, MemoryKind::Managed);
    function(&mut p, B);
    runs(&mut p);
    p.go(A, PINNED, &[writes(0, Shape::Exact(0, N))]);
    p.finds("write-after-read certain");
}

/// How the host is seen to touch the bytes of a copy.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Seen {
    Touch,
    InTheAct,
    Changed,
}

/// Where a host function stands, of which the host need not have seen the end.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Function {
    BeforeOnItsStream,
    BeforeOnAnother,
    Behind,
    Unordered,
    InAGraph,
}

fn behind_a_function(function: Function, seen: Seen, returned: bool) -> Vec<String> {
    let func = HostFuncId(1);
    let mut p = Program::new();
    p.malloc(X, N);
    p.alloc(PINNED, N, MemoryKind::PinnedHost);
    let enqueue = |p: &mut Program, stream| {
        p.does("cudaLaunchHostFunc", Op::HostFunc { stream, func, address: 1 });
        // One that is behind the work cannot run yet.
        if function != Function::Behind {
            p.does("", Op::HostFuncRun { func, done: false });
        }
    };
    match function {
        Function::BeforeOnItsStream => enqueue(&mut p, A),
        Function::BeforeOnAnother => {
            enqueue(&mut p, B);
            p.order(B, A);
        }
        Function::Unordered => enqueue(&mut p, B),
        Function::InAGraph => {
            let exec = GraphExecId(1);
            p.does("cudaGraphInstantiate", Op::GraphExec { exec, nodes: 1, flags: 0, handle: 0 });
            let (mut body, op) = ([0; 64], Op::HostFunc { stream: StreamId::NONE, func: HostFuncId::NONE, address: 1 });
            let mut to = Encoder::new(&mut body);
            op.encode(&mut to);
            let len = to.finish().expect("fits");
            let (dependencies, call) = (trace::codec::List::new(&[]), p.call("cuGraphAddHostNode"));
            let (body, tag, stack) = (&body[..len], op.tag(), StackId(9));
            p.raw(Op::GraphNode { exec, index: 0, stack, call, enabled: true, dependencies, tag, body });
            p.does("cudaGraphLaunch", Op::GraphLaunch { exec, stream: A });
        }
        Function::Behind => {}
    }
    p.copy(A, X, PINNED, N, H2D);
    watch(&mut p, 1, A, false);
    if function == Function::Behind {
        enqueue(&mut p, A);
    }
    if returned && seen != Seen::Changed && function != Function::Behind {
        p.does("", Op::HostFuncRun { func, done: true });
    }
    match seen {
        Seen::Touch => touch(&mut p, Region::linear(PINNED + 8, 4), true, false, false),
        Seen::InTheAct => caught(&mut p, 1, true),
        Seen::Changed => {
            // Between the copy's call and this look.
            if function != Function::Behind {
                p.does("", Op::HostFuncRun { func, done: true });
            }
            changed(&mut p, 1);
        }
    }
    p.verdict()
}

/// A stream that wakes a producer by a host function, and copies what the producer has written when
/// the function returns.
#[test]
fn work_behind_a_host_function_has_not_begun() {
    use Function::*;
    for seen in [Seen::Touch, Seen::InTheAct, Seen::Changed] {
        for returned in [false, true] {
            for function in [BeforeOnItsStream, BeforeOnAnother, Behind, Unordered, InAGraph] {
                let pending = match function {
                    BeforeOnItsStream | BeforeOnAnother => !returned || seen == Seen::Changed,
                    InAGraph => true,
                    Behind | Unordered => false,
                };
                let expected = if pending { "write-after-read possible" } else { "write-after-read certain" };
                let found = behind_a_function(function, seen, returned);
                assert_eq!(found, [expected], "{function:?}, {seen:?}, returned: {returned}");
            }
        }
    }
}

/// A program whose threads have timelines of their own, with memory of the device and of the host.
fn with_threads() -> Program {
    let judging = Judging { host_threads: true, ..Default::default() };
    let mut p = Program::with(AnalysisOptions { judging, ..AnalysisOptions::default() });
    p.raw(Op::HostThreads {});
    p.malloc(X, N);
    p.alloc(PINNED, N, MemoryKind::PinnedHost);
    p
}

/// The same with threads that have timelines of their own: the function's thread has waited for the
/// one that touches the bytes, or it has not.
#[test]
fn the_thread_of_a_host_function_knows_of_a_touch_or_not() {
    let (func, object) = (HostFuncId(1), 7);
    for seen in [Seen::Touch, Seen::InTheAct] {
        for waits in [true, false] {
            let mut p = with_threads();
            p.does("cudaLaunchHostFunc", Op::HostFunc { stream: A, func, address: 1 });
            p.copy(A, X, PINNED, N, H2D);
            watch(&mut p, 1, A, false);
            p.thread(2).does("", Op::HostFuncRun { func, done: false });
            p.thread(3);
            match seen {
                Seen::InTheAct => caught(&mut p, 1, true),
                _ => touch(&mut p, Region::linear(PINNED + 8, 4), true, false, false),
            }
            p.does("", Op::HostEdge { object, acquire: false, start: false });
            p.thread(2);
            if waits {
                p.does("", Op::HostEdge { object, acquire: true, start: false });
            }
            p.does("", Op::HostFuncRun { func, done: true });
            let expected: &[&str] = if waits { &[] } else { &["write-after-read certain"] };
            assert_eq!(p.verdict(), expected, "{seen:?}, waits: {waits}");
        }
    }
}

/// Of several host functions, the thread of one knows of the touch: of one before the work, on its
/// stream or behind a wait of it, or of one that has nothing to do with the work.
#[test]
fn only_a_host_function_before_the_work_tells_it_of_a_touch() {
    let object = 7;
    // Where the functions are enqueued, before the copy on stream A: "other" is stream B, which
    // nothing orders with it, "waited" is stream B with a wait of A for it.
    for places in [&["A"][..], &["other"], &["A", "other"], &["A", "A"], &["waited", "A"], &["other", "other"]] {
        for knows in 0..places.len() {
            for last_first in [false, true] {
                let event = EventId(40);
                let mut p = with_threads();
                let funcs: Vec<HostFuncId> = (1..).take(places.len()).map(HostFuncId).collect();
                for (&func, place) in funcs.iter().zip(places) {
                    let stream = if *place == "A" { A } else { B };
                    p.does("cudaLaunchHostFunc", Op::HostFunc { stream, func, address: 1 });
                    if *place == "waited" {
                        p.record(event, B);
                        p.wait(A, event);
                    }
                }
                p.copy(A, X, PINNED, N, H2D);
                // The driver's threads are there before the touch: a new thread knows all.
                for thread in 0..places.len() as u32 {
                    p.thread(10 + thread).does("", Op::HostEdge { object: 8, acquire: false, start: false });
                }
                p.thread(3);
                touch(&mut p, Region::linear(PINNED + 8, 4), true, false, false);
                p.does("", Op::HostEdge { object, acquire: false, start: false });
                let mut ends: Vec<usize> = (0..places.len()).collect();
                ends.sort_by_key(|k| if last_first { places.len() - k } else { *k });
                for k in ends {
                    // Each on a thread of its own: one that knows would tell the next.
                    p.thread(10 + k as u32).does("", Op::HostFuncRun { func: funcs[k], done: false });
                    if k == knows {
                        p.does("", Op::HostEdge { object, acquire: true, start: false });
                    }
                    p.does("", Op::HostFuncRun { func: funcs[k], done: true });
                }
                let silent = places[knows] != "other";
                let expected: &[&str] = if silent { &[] } else { &["write-after-read certain"] };
                assert_eq!(p.verdict(), expected, "{places:?}, {knows} knows, the last first: {last_first}");
            }
        }
    }
}
