//! Graphs that name memory which has ended: a finding of their own where a node surely touches it,
//! less where the program may count on it, and nothing where the node has other memory.

use crate::support::{A, CONTEXT, D2D, Program, Shape, X, launch, reads, writes};
use detect::confidence::{Confidence, Weakness};
use report::format::text;
use report::model::Finding;
use trace::codec::List;
use trace::*;

const N: u64 = 4096;
const INPUT: u64 = X;
const OUTPUT: u64 = X + (1 << 30);
const OTHER: u64 = X + (2 << 30);
const EXEC: GraphExecId = GraphExecId(1);

/// What the only node of the graph does.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Node {
    /// A kernel that reads `INPUT` and writes `OUTPUT`, all of both.
    Kernel,
    /// One of which only an upper bound is known.
    Bounded,
    /// One without readable code.
    Closed,
    /// One that takes `INPUT` and does not use it.
    Unused,
    /// A copy from `INPUT` to `OUTPUT`.
    CopyFrom,
    /// A copy from `OUTPUT` to `INPUT`.
    CopyTo,
    /// A fill of `INPUT`.
    Fill,
}

fn tell(p: &mut Program, node: Node, pointers: [u64; 2], enabled: bool) {
    let call = p.call("cuLaunchKernel");
    let whole = || Shape::Exact(0, N);
    let params: Vec<u8> = pointers.iter().flat_map(|pointer| pointer.to_le_bytes()).collect();
    let kernel = match node {
        Node::Bounded => p.kernel("bounded", &[reads(0, Shape::Bound(0, N)), writes(8, whole())]),
        Node::Closed => p.define("closed"),
        Node::Unused => p.kernel("unused", &[writes(8, whole())]),
        _ => p.kernel("scale", &[reads(0, whole()), writes(8, whole())]),
    };
    let copy = |dst, src| Op::Copy {
        stream: StreamId::NONE,
        dst: Region::linear(dst, N),
        src: Region::linear(src, N),
        dst_space: D2D.0,
        src_space: D2D.1,
        asynchronous: true,
        batch: 0,
    };
    let op = match node {
        Node::CopyFrom => copy(pointers[1], pointers[0]),
        Node::CopyTo => copy(pointers[0], pointers[1]),
        Node::Fill => Op::Set { stream: StreamId::NONE, dst: Region::linear(pointers[0], N), asynchronous: true },
        _ => launch(StreamId::NONE, kernel, &params),
    };
    let mut body = [0; 256];
    let mut to = Encoder::new(&mut body);
    op.encode(&mut to);
    let len = to.finish().expect("fits");
    let (stack, tag, body) = (StackId(60), op.tag(), &body[..len]);
    p.raw(Op::GraphNode { exec: EXEC, index: 0, stack, call, enabled, dependencies: List::new(&[]), tag, body });
}

fn instantiate(p: &mut Program, node: Node) {
    p.line(40).does("cudaGraphInstantiate", Op::GraphExec { exec: EXEC, nodes: 1, flags: 0, handle: 0 });
    tell(p, node, [INPUT, OUTPUT], true);
}

fn go(p: &mut Program) {
    p.line(80).does("cudaGraphLaunch", Op::GraphLaunch { stream: A, exec: EXEC });
    p.sync(A);
}

fn alloc(p: &mut Program, line: u32, ptr: u64, size: u64, kind: MemoryKind) {
    let op = Op::Alloc { ptr, size, kind, context: CONTEXT, stream: A, pool: PoolId(0), flags: 0 };
    p.line(line).does("cudaMalloc", op);
}

fn free(p: &mut Program, ptr: u64, kind: FreeKind) {
    p.line(70).does("cudaFree", Op::Free { ptr, kind, stream: A });
}

/// The graph is made, launched, `between` happens, and it is launched twice.
fn program(node: Node, kind: MemoryKind, between: impl FnOnce(&mut Program)) -> Program {
    let mut p = Program::new();
    alloc(&mut p, 20, INPUT, N, kind);
    p.malloc(OUTPUT, N);
    instantiate(&mut p, node);
    go(&mut p);
    between(&mut p);
    go(&mut p);
    go(&mut p);
    p
}

fn stale(p: &mut Program) -> Vec<Finding> {
    let found = p.findings();
    assert!(found.iter().all(|f| f.kind.name() == "stale-graph-memory"), "{found:#?}");
    found
}

fn grade(p: &mut Program) -> Option<(Confidence, Option<Weakness>)> {
    let found = stale(p);
    assert!(found.len() < 2, "{found:#?}");
    found.first().map(|f| (f.confidence, f.weakness))
}

#[test]
fn freed_memory_is_named_with_the_node_the_free_and_who_has_it_now() {
    for node in [Node::Kernel, Node::CopyFrom, Node::CopyTo, Node::Fill] {
        let mut p = program(node, MemoryKind::Device, |p| {
            free(p, INPUT, FreeKind::Plain);
            alloc(p, 75, INPUT, 4 * N, MemoryKind::Device);
        });
        let found = stale(&mut p);
        let [f] = &found[..] else { panic!("{node:?}: {found:#?}") };
        assert_eq!((f.confidence, f.count, f.access.node), (Confidence::Certain, 2, Some(0)), "{node:?}");
        let (lines, source) = (|stack: &[symbols::frame::Frame]| stack[0].line, f.stale.as_ref().expect("stale"));
        assert_eq!(lines(&f.access.stack), Some(60));
        assert_eq!(lines(&f.access.launched), Some(80));
        assert_eq!(lines(&f.previous.stack), Some(70));
        assert_eq!(lines(&f.allocation.as_ref().expect("memory").stack), Some(20));
        assert_eq!(lines(&source.now.as_ref().expect("somebody").stack), Some(75));
        assert_eq!(lines(&source.instantiated), Some(40));
        let (place, verb) = match node {
            Node::Kernel => ("parameter 1", "reads"),
            Node::CopyFrom => ("its source", "reads"),
            _ => ("its target", "writes"),
        };
        assert_eq!((source.place.as_str(), f.access.verb.name()), (place, verb));
    }
}

#[test]
fn how_sure_it_is_depends_on_the_node() {
    let after = |node| grade(&mut program(node, MemoryKind::Device, |p| free(p, INPUT, FreeKind::Plain)));
    assert_eq!(after(Node::Kernel), Some((Confidence::Certain, None)));
    assert_eq!(after(Node::Bounded), Some((Confidence::Likely, None)));
    assert_eq!(after(Node::Closed), Some((Confidence::Possible, Some(Weakness::Guess))));
    assert_eq!(after(Node::Unused), None);
}

#[test]
fn how_sure_it_is_depends_on_what_has_become_of_the_memory() {
    use MemoryKind::{Device, GraphNode, Managed, Mapped, PinnedHost, Pool, RegisteredHost};
    let sure = Some((Confidence::Certain, None));
    let again = |kind, free_kind, line: u32, size, then| {
        grade(&mut program(Node::Kernel, kind, |p| {
            free(p, INPUT, free_kind);
            if line > 0 {
                alloc(p, line, INPUT, size, then);
            }
        }))
    };
    for (kind, free_kind) in
        [(Device, FreeKind::Plain), (Managed, FreeKind::Plain), (PinnedHost, FreeKind::Host), (Pool, FreeKind::Async)]
    {
        assert_eq!(again(kind, free_kind, 0, N, kind), sure, "{kind:?}");
        assert_eq!(again(kind, free_kind, 75, 2 * N, kind), sure, "{kind:?}");
        assert_eq!(again(kind, free_kind, 75, N, kind), Some((Confidence::Likely, None)), "{kind:?}");
        let on_purpose = Some((Confidence::Possible, Some(Weakness::SameBounds)));
        assert_eq!(again(kind, free_kind, 20, N, kind), on_purpose, "{kind:?}");
    }
    // The address is promised for the graph's life, and a mapping is put back on purpose.
    assert_eq!(again(GraphNode, FreeKind::Async, 75, N, GraphNode), None);
    assert_eq!(again(GraphNode, FreeKind::Async, 0, N, GraphNode), sure);
    assert_eq!(again(GraphNode, FreeKind::Async, 75, N, Pool), Some((Confidence::Likely, None)));
    assert_eq!(again(Mapped, FreeKind::Unmap, 75, N, Mapped), None);
    assert_eq!(again(Mapped, FreeKind::Unmap, 0, N, Mapped), sure);
    // What was unregistered is still the host's, for a copy.
    assert_eq!(again(RegisteredHost, FreeKind::Unregister, 0, N, Device), sure);
    let mut reached = program(Node::Kernel, RegisteredHost, |p| {
        p.raw(Op::Note { kind: NoteKind::Info, text: SYSTEM_MEMORY.into(), count: 0 });
        free(p, INPUT, FreeKind::Unregister);
    });
    reached.silent();
    for node in [Node::CopyFrom, Node::CopyTo] {
        program(node, RegisteredHost, |p| free(p, INPUT, FreeKind::Unregister)).silent();
    }
}

#[test]
fn a_node_with_other_memory_is_silent() {
    // Other memory before the launch.
    program(Node::Kernel, MemoryKind::Device, |p| {
        p.malloc(OTHER, N);
        free(p, INPUT, FreeKind::Plain);
        tell(p, Node::Kernel, [OTHER, OUTPUT], true);
    })
    .silent();
    // The same address, which the program has seen to be that of new memory.
    program(Node::Kernel, MemoryKind::Device, |p| {
        free(p, INPUT, FreeKind::Plain);
        alloc(p, 75, INPUT, 2 * N, MemoryKind::Device);
        tell(p, Node::Kernel, [INPUT, OUTPUT], true);
    })
    .silent();
    // The whole graph again.
    program(Node::CopyFrom, MemoryKind::Device, |p| {
        free(p, INPUT, FreeKind::Plain);
        alloc(p, 75, INPUT, 2 * N, MemoryKind::Device);
        p.does("cudaGraphExecUpdate", Op::GraphExec { exec: EXEC, nodes: 1, flags: 0, handle: 0 });
        tell(p, Node::CopyFrom, [INPUT, OUTPUT], true);
    })
    .silent();
    // Disabled.
    program(Node::Fill, MemoryKind::Device, |p| {
        free(p, INPUT, FreeKind::Plain);
        tell(p, Node::Fill, [INPUT, OUTPUT], false);
    })
    .silent();
    // Other memory is freed.
    program(Node::Kernel, MemoryKind::Device, |p| {
        p.malloc(OTHER, N);
        free(p, OTHER, FreeKind::Plain);
    })
    .silent();
}

/// A node that is disabled and enabled again names what it named before.
#[test]
fn enabling_a_node_gives_it_no_other_memory() {
    let mut p = program(Node::Fill, MemoryKind::Device, |p| {
        tell(p, Node::Fill, [INPUT, OUTPUT], false);
        free(p, INPUT, FreeKind::Plain);
        alloc(p, 75, INPUT, 2 * N, MemoryKind::Device);
        tell(p, Node::Fill, [INPUT, OUTPUT], true);
    });
    assert_eq!(grade(&mut p), Some((Confidence::Certain, None)));
}

#[test]
fn a_free_behind_the_last_launch_is_silent() {
    let mut p = program(Node::Kernel, MemoryKind::Device, |_| {});
    free(&mut p, INPUT, FreeKind::Plain);
    p.does("cudaGraphExecDestroy", Op::GraphExecDestroy { exec: EXEC });
    p.silent();
}

/// Memory that is freed between the capture and the instantiation.
#[test]
fn a_node_that_is_told_after_the_free_is_found() {
    let case = |is_freed: bool| {
        let mut p = Program::new();
        alloc(&mut p, 20, INPUT, N, MemoryKind::Device);
        p.malloc(OUTPUT, N);
        if is_freed {
            free(&mut p, INPUT, FreeKind::Plain);
        }
        instantiate(&mut p, Node::CopyFrom);
        go(&mut p);
        grade(&mut p)
    };
    assert_eq!(case(true), Some((Confidence::Certain, None)));
    assert_eq!(case(false), None);
}

/// Blocks of a pool: PyTorch's, for example.
#[test]
fn blocks_count_while_their_pool_is_not_the_graph_s_own() {
    let case = |is_captured: bool, then: &dyn Fn(&mut Program)| {
        let mut p = Program::new();
        p.malloc(INPUT, 16 * N);
        p.malloc(OUTPUT, N);
        if is_captured {
            p.does("cudaStreamBeginCapture", Op::CaptureStart { capture: CaptureId(1), stream: A });
        }
        p.alloc(INPUT, N, MemoryKind::Block);
        if is_captured {
            p.does("cudaStreamEndCapture", Op::CaptureDone { stream: A });
        }
        instantiate(&mut p, Node::Kernel);
        free(&mut p, INPUT, FreeKind::Block);
        then(&mut p);
        go(&mut p);
        grade(&mut p)
    };
    let handed_out = |p: &mut Program| p.alloc(INPUT, 4 * N, MemoryKind::Block);
    let segment_freed = |p: &mut Program| free(p, INPUT, FreeKind::Plain);
    assert_eq!(case(false, &|_| {}), Some((Confidence::Possible, Some(Weakness::NotHandedOut))));
    assert_eq!(case(false, &handed_out), Some((Confidence::Likely, None)));
    assert_eq!(case(false, &segment_freed), Some((Confidence::Certain, None)));
    assert_eq!(case(true, &|_| {}), None);
    assert_eq!(case(true, &handed_out), None);
    // The pool of another graph is reset.
    assert_eq!(case(true, &segment_freed), Some((Confidence::Certain, None)));
}

/// Memory that the graph allocates itself has its address at each launch.
#[test]
fn memory_of_the_graph_itself_is_silent() {
    let mut p = Program::new();
    p.malloc(OUTPUT, N);
    p.does("cudaGraphInstantiate", Op::GraphExec { exec: EXEC, nodes: 2, flags: 0, handle: 0 });
    tell(&mut p, Node::Fill, [INPUT, OUTPUT], true);
    let (mut body, call) = ([0; 256], p.call("cudaMallocAsync"));
    let (kind, stream) = (MemoryKind::GraphNode, StreamId::NONE);
    let op = Op::Alloc { ptr: INPUT, size: N, kind, context: CONTEXT, stream, pool: PoolId(0), flags: 0 };
    let mut to = Encoder::new(&mut body);
    op.encode(&mut to);
    let len = to.finish().expect("fits");
    let (dependencies, tag, body) = (List::new(&[]), op.tag(), &body[..len]);
    let node = |index, stack, dependencies, tag, body| Op::GraphNode {
        exec: EXEC,
        index,
        stack: StackId(stack),
        call,
        enabled: true,
        dependencies,
        tag,
        body,
    };
    p.raw(node(1, 61, dependencies, tag, body));
    tell(&mut p, Node::Fill, [INPUT, OUTPUT], true);
    for _ in 0..3 {
        go(&mut p);
        free(&mut p, INPUT, FreeKind::Async);
        p.sync(A);
    }
    let found: Vec<_> = p.findings().into_iter().filter(|f| f.kind.name() == "stale-graph-memory").collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_report_says_it_in_words() {
    let mut p = program(Node::Kernel, MemoryKind::Device, |p| {
        free(p, INPUT, FreeKind::Plain);
        alloc(p, 75, INPUT, 4 * N, MemoryKind::Device);
    });
    let said = text::report(&p.report(), text::Style::default(), 9);
    for part in [
        "streamsan: STALE GRAPH MEMORY (certain)\n",
        "Node 0 of a launched graph, kernel scale",
        "reads memory that was freed before the launch.",
        "through the pointer in parameter 1",
        "the graph was instantiated at",
        "Free: cudaFree frees all 4096 bytes",
        "At its address now: 16384 bytes of device memory",
        "This would mend it:",
        "cudaGraphExecKernelNodeSetParams(exec, node, &params);",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// A copy node keeps an array by its handle: the one of the two that is destroyed is not there.
#[test]
fn an_array_that_was_destroyed_is_named() {
    const ARRAY: ArrayId = ArrayId(1);
    for (destroyed, is_target, place) in
        [(ARRAY, false, Some("its source")), (ARRAY, true, Some("its target")), (ArrayId(2), true, None)]
    {
        let mut p = Program::new();
        for array in [ARRAY, ArrayId(2)] {
            p.line(20).does("cuArrayCreate", Op::ArrayCreate { array, handle: 8, size: N });
        }
        p.malloc(OUTPUT, N);
        p.line(40).does("cudaGraphInstantiate", Op::GraphExec { exec: EXEC, nodes: 1, flags: 0, handle: 0 });
        let of_array = Region { array: ARRAY, ..Region::linear(0, N) };
        let (memory, spaces) = (Region::linear(OUTPUT, N), [Space::Array, Space::Device]);
        let (sides, spaces) = match is_target {
            true => ([of_array, memory], spaces),
            false => ([memory, of_array], [spaces[1], spaces[0]]),
        };
        let op = Op::Copy {
            stream: StreamId::NONE,
            dst: sides[0],
            src: sides[1],
            dst_space: spaces[0],
            src_space: spaces[1],
            asynchronous: true,
            batch: 0,
        };
        let (mut body, call) = ([0; 256], p.call("cuMemcpy3D"));
        let mut to = Encoder::new(&mut body);
        op.encode(&mut to);
        let len = to.finish().expect("fits");
        let (stack, tag, dependencies) = (StackId(60), op.tag(), List::new(&[]));
        let body = &body[..len];
        p.raw(Op::GraphNode { exec: EXEC, index: 0, stack, call, enabled: true, dependencies, tag, body });
        go(&mut p);
        p.line(70).does("cuArrayDestroy", Op::ArrayDestroy { array: destroyed });
        go(&mut p);
        let found = stale(&mut p);
        let said = found.iter().map(|f| (f.confidence, f.stale.as_ref().map(|stale| stale.place.as_str())));
        let wanted = place.map(|place| (Confidence::Certain, Some(place)));
        assert_eq!(said.collect::<Vec<_>>(), Vec::from_iter(wanted));
    }
}
