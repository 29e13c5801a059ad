//! Work that escapes a capture: a NOTE where a graph goes on reading what was made once of bytes
//! that have changed, and nothing otherwise.

use crate::support::{A, B, D2D, LEGACY, Program, Shape, X, launch, reads, writes};
use report::format::text;
use trace::codec::List;
use trace::*;

const N: u64 = 4096;
const INPUT: u64 = X;
const MADE: u64 = X + (1 << 30);
const RESULT: u64 = X + (2 << 30);
const OTHER: u64 = X + (3 << 30);
const EXEC: GraphExecId = GraphExecId(1);

/// What makes the bytes that the graph reads.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Maker {
    Kernel,
    Copy,
}

/// What is different from the mistake.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Twist {
    /// Nothing: it is one.
    None,
    /// The input is changed by a copy, not by a kernel.
    ChangedByCopy,
    /// It changes between two launches of the graph.
    ChangedLater,
    /// Two nodes read what was made.
    InPieces,
    /// Nothing changes the input.
    Constant,
    /// Other bytes change.
    ChangedBeside,
    /// Another thread does it.
    OtherThread,
    /// Before the capture begins, or after it has ended.
    Before,
    After,
    /// It is made again before the launch, of what is there now.
    MadeAgain,
    /// The graph makes it itself.
    MadeByGraph,
    /// The graph reads something else.
    NotRead,
    /// It is made of nothing.
    Filled,
    /// The memory of the input was freed and is used for something else.
    FreedInput,
    /// A kernel writes to an address that is not known.
    Unknown,
}

const MISTAKES: [Twist; 4] = [Twist::None, Twist::ChangedByCopy, Twist::ChangedLater, Twist::InPieces];
const MEANT: [Twist; 11] = [
    Twist::Constant,
    Twist::ChangedBeside,
    Twist::OtherThread,
    Twist::Before,
    Twist::After,
    Twist::MadeAgain,
    Twist::MadeByGraph,
    Twist::NotRead,
    Twist::Filled,
    Twist::FreedInput,
    Twist::Unknown,
];

fn whole() -> Shape {
    Shape::Exact(0, N)
}

fn make(p: &mut Program, maker: Maker, twist: Twist) {
    match maker {
        _ if twist == Twist::Filled => p.set(LEGACY, MADE, N),
        Maker::Copy => p.copy(LEGACY, MADE, INPUT, N, D2D),
        Maker::Kernel => {
            let kernel = p.kernel("produce", &[reads(0, whole()), writes(8, whole())]);
            p.launch(LEGACY, kernel, &[INPUT, MADE]);
        }
    }
}

fn change(p: &mut Program, twist: Twist) {
    match twist {
        Twist::Constant => {}
        Twist::ChangedByCopy => p.copy(LEGACY, INPUT, OTHER, N, D2D),
        Twist::ChangedBeside => p.go(LEGACY, OTHER, &[writes(0, whole())]),
        Twist::FreedInput => {
            p.free(INPUT, FreeKind::Plain, StreamId::NONE);
            p.malloc(INPUT, N);
            p.go(LEGACY, INPUT, &[writes(0, whole())]);
        }
        Twist::Unknown => {
            p.go(LEGACY, INPUT, &[writes(0, whole())]);
            let kernel = p.define("closed");
            p.launch(LEGACY, kernel, &[OTHER]);
        }
        _ => p.go(LEGACY, INPUT, &[writes(0, whole())]),
    }
}

/// A node captured on stream A; `number` is its own.
fn captured(p: &mut Program, number: u32) {
    p.does("cuLaunchKernel", Op::CaptureNode { capture: CaptureId(1), stream: A, node: number });
}

fn graph(p: &mut Program, nodes: &[(KernelId, [u64; 2])]) {
    let exec = EXEC;
    p.does("cudaGraphInstantiate", Op::GraphExec { exec, nodes: nodes.len() as u32, flags: 0, handle: 0 });
    let call = p.call("cuLaunchKernel");
    for (index, (kernel, pointers)) in nodes.iter().enumerate() {
        let params: Vec<u8> = pointers.iter().flat_map(|pointer| pointer.to_le_bytes()).collect();
        let (mut body, index) = ([0; 256], index as u32);
        let op = launch(StreamId::NONE, *kernel, &params);
        let mut to = Encoder::new(&mut body);
        op.encode(&mut to);
        let len = to.finish().expect("fits");
        let before = [Dependency { from: index.wrapping_sub(1), port: 0 }];
        let dependencies = List::new(&before[usize::from(index == 0)..]);
        let (stack, tag, body) = (StackId(60 + index), op.tag(), &body[..len]);
        p.raw(Op::GraphNode { exec, index, stack, call, enabled: true, dependencies, tag, body });
        p.raw(Op::NodeOf { exec, index, part: 0, node: 1 + index });
    }
}

/// A capture with something beside it, and two launches of the graph.
fn program(maker: Maker, twist: Twist) -> Program {
    let mut p = Program::new();
    for memory in [INPUT, MADE, RESULT, OTHER] {
        p.malloc(memory, N);
    }
    p.go(LEGACY, INPUT, &[writes(0, whole())]);
    if twist == Twist::Before {
        make(&mut p, maker, twist);
    }
    p.does("cudaStreamBeginCapture", Op::CaptureStart { capture: CaptureId(1), stream: A });
    if twist == Twist::OtherThread {
        p.thread(2);
    }
    if !matches!(twist, Twist::Before | Twist::After) {
        make(&mut p, maker, twist);
    }
    p.thread(1);
    captured(&mut p, 1);
    captured(&mut p, 2);
    p.does("cudaStreamEndCapture", Op::CaptureDone { stream: A });
    if twist == Twist::After {
        make(&mut p, maker, twist);
    }
    let consume = p.kernel("consume", &[reads(0, whole()), writes(8, whole())]);
    let part = p.kernel("part", &[reads(0, Shape::Bound(0, N / 2)), writes(8, Shape::Exact(0, N / 2))]);
    let again = p.kernel("again", &[reads(0, whole()), writes(8, whole())]);
    let nodes = match twist {
        Twist::MadeByGraph => [(again, [INPUT, MADE]), (consume, [MADE, RESULT])],
        Twist::NotRead => [(consume, [OTHER, RESULT]), (consume, [OTHER, RESULT])],
        Twist::InPieces => [(part, [MADE, RESULT]), (part, [MADE + N / 2, RESULT + N / 2])],
        _ => [(consume, [OTHER, RESULT]), (consume, [MADE, RESULT])],
    };
    graph(&mut p, &nodes);
    p.sync(LEGACY);
    if twist != Twist::ChangedLater {
        change(&mut p, twist);
    }
    for _ in 0..2 {
        if twist == Twist::MadeAgain {
            make(&mut p, maker, twist);
        }
        p.does("cudaGraphLaunch", Op::GraphLaunch { stream: LEGACY, exec: EXEC });
        change(&mut p, twist);
    }
    p
}

fn cases() -> impl Iterator<Item = (Maker, Twist)> {
    let twists = MISTAKES.into_iter().chain(MEANT);
    [Maker::Kernel, Maker::Copy].into_iter().flat_map(move |maker| twists.clone().map(move |twist| (maker, twist)))
}

#[test]
fn a_graph_that_misses_escaped_work_is_noted() {
    let (mut noted, mut silent) = (0, 0);
    for (maker, twist) in cases() {
        let outcome = program(maker, twist).outcome();
        let lines = &outcome.coverage.escaped;
        if MISTAKES.contains(&twist) {
            noted += 1;
            let [line] = &lines[..] else { panic!("{maker:?} {twist:?}: {lines:?}") };
            let what = if maker == Maker::Copy { "a copy" } else { "kernel produce" };
            assert!(line.starts_with(what) && line.contains(" ran once, while its thread captured stream 1"), "{line}");
            let node = if twist == Twist::InPieces { "kernel part" } else { "kernel consume" };
            assert!(line.contains(&format!("no node of the graph: {node}")), "{line}");
        } else {
            silent += 1;
            assert!(lines.is_empty(), "{maker:?} {twist:?}: {lines:?}");
        }
        assert!(outcome.findings.is_empty(), "{maker:?} {twist:?}");
    }
    assert_eq!((noted, silent), (8, 22));
}

/// The NOTE stands in the report, which is as clean as without it.
#[test]
fn the_note_stands_in_the_report() {
    let report = program(Maker::Kernel, Twist::None).report();
    let said = text::report(&report, text::Style::default(), 9);
    assert!(said.contains("streamsan: NOTE: kernel produce(float*, int) ("), "{said}");
    assert!(said.contains("SUMMARY: 0 findings"), "{said}");
}

/// What escapes many captures is forgotten in the end.
#[test]
fn escaped_work_is_not_watched_for_ever() {
    let mut p = Program::new();
    for memory in [INPUT, MADE, RESULT, OTHER] {
        p.malloc(memory, N);
    }
    for n in 0..200 {
        let capture = CaptureId(1 + n);
        p.does("cudaStreamBeginCapture", Op::CaptureStart { capture, stream: B });
        make(&mut p, Maker::Kernel, Twist::None);
        p.does("cuLaunchKernel", Op::CaptureNode { capture, stream: B, node: 10 + n as u32 });
        p.does("cudaStreamEndCapture", Op::CaptureDone { stream: B });
    }
    assert!(p.outcome().coverage.escaped.is_empty());
}
