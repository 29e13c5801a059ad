//! Launches of executable graphs.

use crate::common::World;
use trace::*;

const EXEC: GraphExecId = GraphExecId(1);

fn graph(w: &mut World) {
    w.op(Op::GraphExec { exec: EXEC, nodes: 0, flags: 0, handle: 1 });
}

fn node(w: &mut World, index: u32, enabled: bool, op: Op<'_>) {
    node_behind(w, index, enabled, &[], op);
}

fn node_behind(w: &mut World, index: u32, enabled: bool, behind: &[u32], op: Op<'_>) {
    let mut buffer = [0; 64];
    let mut to = Encoder::new(&mut buffer);
    op.encode(&mut to);
    let len = to.finish().expect("fits");
    let dependencies: Vec<_> = behind.iter().map(|&from| Dependency { from, port: 0 }).collect();
    let dependencies = codec::List::new(&dependencies);
    let (stack, call, tag) = (StackId::NONE, CallId::NONE, op.tag());
    let body = &buffer[..len];
    w.op(Op::GraphNode { exec: EXEC, index, stack, call, enabled, dependencies, tag, body });
}

/// `cuGraphLaunch`: launches of one executable graph run one after the other.
#[test]
fn launches_of_one_graph_are_ordered() {
    let mut w = World::new();
    let [a, b, c] = w.streams();
    graph(&mut w);
    let first = w.op(Op::GraphLaunch { stream: a, exec: EXEC });
    let late = w.launch(a);
    w.op(Op::GraphLaunch { stream: b, exec: EXEC });
    assert!(w.after(first) && !w.after(late));
    assert!(w.launch_after(b, first));
    w.op(Op::GraphLaunch { stream: c, exec: GraphExecId(2) });
    assert!(!w.after(first), "another graph");
}

/// `cuGraphLaunch`: after the work of the stream before it, before what comes later.
#[test]
fn a_graph_launch_is_an_op_of_its_stream() {
    let mut w = World::new();
    let [a, b] = w.streams();
    graph(&mut w);
    let k = w.launch(a);
    let g = w.op(Op::GraphLaunch { stream: a, exec: EXEC });
    assert!(w.after(k));
    assert_eq!(w.engine.graph_epoch(EXEC), Some(g));
    assert!(w.launch_after(a, g) && !w.launch_after(b, g));
    w.sync_stream(a);
    assert!(w.host_after(g));
}

/// `cuGraphExecDestroy`: a new graph under an old handle is another graph.
#[test]
fn a_destroyed_graph_leaves_no_order() {
    let mut w = World::new();
    let [a, b] = w.streams();
    graph(&mut w);
    let g = w.op(Op::GraphLaunch { stream: a, exec: EXEC });
    w.op(Op::GraphExecDestroy { exec: EXEC });
    w.op(Op::GraphLaunch { stream: b, exec: EXEC });
    assert!(!w.after(g));
}

/// `cuGraphAddEventRecordNode`, `cuGraphAddEventWaitNode`.
#[test]
fn event_nodes_record_and_wait() {
    let mut w = World::new();
    let [a, b, c] = w.streams();
    let mode = EventMode::External;
    graph(&mut w);
    node(&mut w, 0, true, Op::StreamWait { stream: StreamId::NONE, event: EventId(1), mode });
    node_behind(&mut w, 4, true, &[0], Op::HostFunc { func: HostFuncId(1), stream: StreamId::NONE, address: 0 });
    node_behind(&mut w, 1, true, &[0, 4], Op::EventRecord { event: EventId(2), stream: StreamId::NONE, mode });
    node(&mut w, 2, false, Op::StreamWait { stream: StreamId::NONE, event: EventId(3), mode });
    let (ka, kc) = (w.launch(a), w.launch(c));
    w.record(1, a);
    w.record(3, c);
    let g = w.op(Op::GraphLaunch { stream: b, exec: EXEC });
    assert!(w.after(ka) && !w.after(kc), "a disabled node does not wait");
    w.wait(c, 2);
    assert!(w.launch_after(c, g));
    let bad = Op::GraphNode {
        exec: EXEC,
        index: 3,
        stack: StackId::NONE,
        call: CallId::NONE,
        enabled: true,
        dependencies: codec::List::new(&[]),
        tag: 38,
        body: &[1],
    };
    w.op(bad);
    w.op(Op::GraphLaunch { stream: b, exec: EXEC });
}

/// `cuGraphAddEventRecordNode`: an event is recorded when the nodes in front of its node have
/// completed. Without work in front, that is before the graph's work, and after all that the graph
/// is after.
#[test]
fn an_event_is_recorded_before_work_that_is_not_in_front_of_it() {
    let (mode, stream) = (EventMode::External, StreamId::NONE);
    let record = Op::EventRecord { event: EventId(2), stream, mode };
    let wait = Op::StreamWait { stream, event: EventId(1), mode };
    let work = Op::HostFunc { func: HostFuncId(1), stream, address: 0 };
    // Nodes, and the nodes in front of them. The last one records.
    let early: [&[(Op<'_>, &[u32])]; 4] = [
        &[(record, &[])],
        &[(wait, &[]), (record, &[0])],
        &[(work, &[]), (record, &[])],
        &[(wait, &[]), (record, &[0]), (work, &[1]), (record, &[0, 1])],
    ];
    let late: [&[(Op<'_>, &[u32])]; 3] = [
        &[(work, &[]), (record, &[0])],
        &[(wait, &[]), (work, &[0]), (record, &[0, 1])],
        &[(record, &[]), (work, &[0]), (wait, &[1]), (record, &[2])],
    ];
    for (nodes, before) in early.iter().map(|nodes| (nodes, true)).chain(late.iter().map(|nodes| (nodes, false))) {
        let mut w = World::new();
        let [a, b, c] = w.streams();
        graph(&mut w);
        for (index, (op, behind)) in nodes.iter().enumerate() {
            node_behind(&mut w, index as u32, true, behind, *op);
        }
        let (earlier, waited_for) = (w.launch(a), w.launch(b));
        w.record(1, b);
        let waits = nodes.iter().any(|(op, _)| matches!(op, Op::StreamWait { .. }));
        let g = w.op(Op::GraphLaunch { stream: a, exec: EXEC });
        let is_work = |(op, _): &(Op<'_>, &[u32])| matches!(op, Op::HostFunc { .. });
        let index = nodes.iter().position(is_work).unwrap_or(0) as u32;
        let g = w.engine.node_epoch(EXEC, index).unwrap_or(g);
        w.wait(c, 2);
        w.launch(c);
        assert!(w.after(earlier), "silent: before the graph");
        assert_eq!(w.after(waited_for), waits);
        assert_eq!(w.after(g), !before, "{nodes:?}");
        // The graph is changed: its nodes come once more.
        graph(&mut w);
        node(&mut w, 0, true, work);
        node_behind(&mut w, 1, true, &[0], record);
        let g = w.op(Op::GraphLaunch { stream: a, exec: EXEC });
        w.wait(c, 2);
        assert!(w.launch_after(c, g));
    }
}

/// Memory operations inside a graph (cuda.h, `cuGraphAddBatchMemOpNode`): the same as those of
/// streams.
#[test]
fn values_are_written_and_waited_for_by_nodes() {
    const FLAG: u64 = 0x500;
    let stream = StreamId::NONE;
    let write = Op::WriteValue { stream, address: FLAG, value: 1, width: 4, barrier: true };
    let wait_op = |stream, value| Op::WaitValue { stream, address: FLAG, value, width: 4, compare: WaitCompare::Equal };
    let mut w = World::new();
    let [a, b, c] = w.streams();
    graph(&mut w);
    node(&mut w, 0, true, write);
    let k = w.launch(a);
    let g = w.op(Op::GraphLaunch { stream: a, exec: EXEC });
    w.op(wait_op(b, 1));
    assert!(w.launch_after(b, g) && w.after(k), "silent: released by the graph");
    assert!(!w.launch_after(c, g), "reported: c did not wait");

    let mut w = World::new();
    let [a, b, c] = w.streams();
    graph(&mut w);
    node(&mut w, 0, true, wait_op(stream, 1));
    let k = w.launch(a);
    w.op(Op::WriteValue { stream: a, address: FLAG, value: 1, width: 4, barrier: true });
    let other = w.launch(c);
    w.op(Op::GraphLaunch { stream: b, exec: EXEC });
    assert!(w.after(k), "silent: the graph waited");
    assert!(!w.after(other), "reported");

    // A wait for what the graph writes itself is an edge inside, and leaves nothing open.
    let mut w = World::new();
    let [a, b] = w.streams();
    graph(&mut w);
    node(&mut w, 0, true, write);
    node(&mut w, 1, true, wait_op(stream, 1));
    let g = w.op(Op::GraphLaunch { stream: a, exec: EXEC });
    assert!(!w.launch_after(b, g), "reported");
    assert!(w.launch_after(a, g), "silent");
}

/// Values in the middle of a graph order what is outside with the nodes on the same side of them.
#[test]
fn values_order_the_nodes_before_and_behind_them() {
    const FLAG: u64 = 0x500;
    let stream = StreamId::NONE;
    let work = Op::HostFunc { func: HostFuncId(1), stream, address: 0 };
    let write = Op::WriteValue { stream, address: FLAG, value: 1, width: 4, barrier: true };
    let wait_op = |stream, value| Op::WaitValue { stream, address: FLAG, value, width: 4, compare: WaitCompare::Equal };
    // The nodes in front of the write, of four works 0 to 3, of which 3 is behind it.
    for in_front in [&[0][..], &[0, 1], &[1, 2], &[0, 1, 2]] {
        let mut w = World::new();
        let [a, b, c] = w.streams();
        graph(&mut w);
        for index in 0..3 {
            node(&mut w, index, true, work);
        }
        node_behind(&mut w, 4, true, in_front, write);
        node_behind(&mut w, 3, true, &[4], work);
        for launch in 0..3 {
            let (before, beside) = (w.launch(a), w.launch(c));
            let g = w.op(Op::GraphLaunch { stream: a, exec: EXEC });
            let nodes = [0, 1, 2, 3].map(|index| w.engine.node_epoch(EXEC, index).expect("in parts"));
            w.op(wait_op(b, 1));
            w.launch(b);
            assert!(w.after(before) && !w.after(beside) && !w.after(g), "launch {launch}");
            for (index, epoch) in (0..).zip(nodes) {
                assert_eq!(w.after(epoch), in_front.contains(&index), "launch {launch}, {in_front:?}, node {index}");
            }
            assert!(w.launch_after(a, g) && nodes.iter().all(|epoch| w.after(*epoch)), "silent: behind the graph");
            // The value is overwritten before the next launch, and the host knows.
            w.op(Op::WriteValue { stream: a, address: FLAG, value: 0, width: 4, barrier: true });
            w.sync_stream(a);
            assert!(nodes.iter().all(|epoch| w.host_after(*epoch)));
        }
    }
    // Of two works, the one behind a wait waits.
    let mut w = World::new();
    let [a, b, c] = w.streams();
    graph(&mut w);
    node(&mut w, 0, true, wait_op(stream, 1));
    node_behind(&mut w, 1, true, &[0], work);
    node(&mut w, 2, true, work);
    let writer = w.launch(b);
    w.op(Op::WriteValue { stream: b, address: FLAG, value: 1, width: 4, barrier: true });
    w.op(Op::GraphLaunch { stream: a, exec: EXEC });
    for (index, waits) in [(1, true), (2, false)] {
        w.engine.begin_node(EXEC, index).expect("in parts");
        assert_eq!(w.after(writer), waits, "node {index}");
    }
    w.engine.end_nodes(EXEC);
    assert!(w.after(writer) && w.launch_after(a, writer) && !w.launch_after(c, writer));
}

/// A graph with more links than are told apart is one op.
#[test]
fn a_graph_with_many_events_is_one_op() {
    let (mode, stream) = (EventMode::External, StreamId::NONE);
    let work = Op::HostFunc { func: HostFuncId(1), stream, address: 0 };
    for (events, told_apart) in [(2, true), (60, true), (70, false)] {
        let mut w = World::new();
        let [a, c] = w.streams();
        graph(&mut w);
        // A chain: work, record, work, record.
        for at in 0..events {
            let behind: &[u32] = if at > 0 { &[2 * at - 1] } else { &[] };
            node_behind(&mut w, 2 * at, true, behind, work);
            node_behind(&mut w, 2 * at + 1, true, &[2 * at], Op::EventRecord { event: EventId(at + 1), stream, mode });
        }
        let g = w.op(Op::GraphLaunch { stream: a, exec: EXEC });
        w.wait(c, 1);
        w.launch(c);
        let (first, second) = (w.engine.node_epoch(EXEC, 0), w.engine.node_epoch(EXEC, 2));
        assert_eq!((first.is_some(), second.is_some()), (told_apart, told_apart), "{events} events");
        assert!(w.after(first.unwrap_or(g)) && w.after(second.unwrap_or(g)) != told_apart);
    }
}

/// A graph that waits for a value which comes later, or from somewhere unseen, is not judged until
/// it does.
#[test]
fn a_graph_behind_an_open_wait_is_not_judged() {
    const FLAG: u64 = 0x500;
    let stream = StreamId::NONE;
    let mut w = World::new();
    let [a, b, c] = w.streams();
    graph(&mut w);
    node(&mut w, 0, true, Op::WaitValue { stream, address: FLAG, value: 1, width: 4, compare: WaitCompare::Equal });
    let before = w.launch(c);
    w.op(Op::GraphLaunch { stream: b, exec: EXEC });
    assert!(w.after(before) && w.engine.start_clock().is_behind_open_wait());
    w.op(Op::WriteValue { stream: a, address: FLAG, value: 1, width: 4, barrier: true });
    assert!(!w.launch_after(b, before), "released by a, which knows nothing of c");
}

/// `cuStreamBeginCapture`: what is enqueued is captured, not executed.
#[test]
fn captured_streams_do_nothing() {
    let mut w = World::new();
    let [a, b] = w.streams();
    w.op(Op::CaptureBegin { stream: a, graph: GraphId(1) });
    w.op(Op::CaptureEnd { stream: a, graph: GraphId(1) });
    let k = w.launch(a);
    assert!(!w.launch_after(b, k));
}

/// `cuGraphAddHostNode`: what a function touches is ordered after what its launch came after. It
/// runs for one launch after the other.
#[test]
fn a_host_function_of_a_graph_runs_for_the_oldest_launch() {
    const FUNC: HostFuncId = HostFuncId(7);
    let run = |w: &mut World, done| w.op(Op::HostFuncRun { func: FUNC, done });
    let function = |address| Op::HostFunc { stream: StreamId::NONE, func: FUNC, address };
    let mut w = World::new();
    let [a, b] = w.streams();
    graph(&mut w);
    node(&mut w, 0, true, function(1));
    let (before, unrelated) = (w.launch(a), w.launch(b));
    let first = w.op(Op::GraphLaunch { stream: a, exec: EXEC });
    let between = w.launch(a);
    let second = w.op(Op::GraphLaunch { stream: a, exec: EXEC });
    assert_eq!(run(&mut w, false), first);
    assert!(w.after(before) && !w.after(unrelated) && !w.after(between));
    run(&mut w, true);
    assert!(!w.host_after(first), "the rest of the graph may still run");
    assert_eq!(run(&mut w, false), second);
    assert!(w.after(between) && w.after(first) && !w.after(unrelated));
    run(&mut w, true);
    assert!(w.engine.host_function(FUNC).is_none());
    for (enabled, address) in [(false, 1), (true, 0)] {
        node(&mut w, 0, enabled, function(address));
        w.op(Op::GraphLaunch { stream: a, exec: EXEC });
        assert!(w.engine.host_function(FUNC).is_none(), "it does not run, or is not seen running");
    }
}
