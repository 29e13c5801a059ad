//! `excess` on captured graphs with known answers, each with a twin that gets another one.

use crate::support::*;
use analysis::counterfactual::excess::listing::{Listing, SyncVerdict};
use analysis::counterfactual::excess::text;
use trace::codec::List;
use trace::*;

const WHOLE: Shape = Shape::Exact(0, 1024);
const EXEC: GraphExecId = GraphExecId(1);
const CAPTURE: CaptureId = CaptureId(9);
const EVENT: EventId = EventId(1);

fn verdicts(listing: &Listing) -> Vec<(SyncVerdict, u64, bool)> {
    listing.sites.iter().map(|site| (site.verdict, site.count, site.can_go)).collect()
}

/// A kernel on A, a wait of B for it, a kernel on B, and a join: captured, and launched three
/// times. `then`: the pointer of the second kernel. `known`: whether its bytes are.
fn forked(then: u64, known: bool, is_changed: bool) -> Program {
    let mut p = Program::new();
    p.malloc(X, 4096);
    let first = p.kernel("first", &[writes(0, WHOLE)]);
    let second = if known { p.kernel("second", &[reads(0, WHOLE)]) } else { p.define("second") };
    let capture = CAPTURE;
    let record = |stream| Op::CaptureRecord { capture, event: EVENT, stream };
    p.line(20).does("cudaStreamBeginCapture", Op::CaptureStart { capture, stream: A });
    p.does("cudaLaunchKernel", Op::CaptureNode { capture, stream: A, node: 11 });
    p.does("cudaEventRecord", record(A));
    p.line(30).does("cudaStreamWaitEvent", Op::CaptureWait { capture, stream: B, event: EVENT });
    p.does("cudaLaunchKernel", Op::CaptureNode { capture, stream: B, node: 12 });
    if is_changed {
        p.does("cudaStreamUpdateCaptureDependencies", Op::CaptureChanged { capture });
    }
    p.does("cudaEventRecord", record(B));
    p.line(40).does("cudaStreamWaitEvent", Op::CaptureWait { capture, stream: A, event: EVENT });
    p.does("cudaStreamEndCapture", Op::CaptureDone { stream: A });
    p.line(50).graph(EXEC, &[(21, first, X, vec![]), (31, second, then, vec![0])], &[]);
    for (index, node) in [(0, 11), (1, 12)] {
        p.raw(Op::NodeOf { exec: EXEC, index, part: 0, node });
    }
    launch(&mut p);
    p
}

fn launch(p: &mut Program) {
    for _ in 0..3 {
        p.line(60).does("cudaGraphLaunch", Op::GraphLaunch { stream: A, exec: EXEC });
    }
}

#[test]
fn a_wait_that_orders_two_nodes_is_needed_and_names_both() {
    let listing = forked(X, true, false).listing();
    assert_eq!(verdicts(&listing), [(SyncVerdict::Needed, 3, false), (SyncVerdict::Capture, 3, false)]);
    let pair = listing.sites[0].pair.as_ref().expect("a pair");
    let then = pair.then.as_ref().expect("a second side");
    assert_eq!((pair.why, &*pair.first.at, &*then.at), ("read-after-write", "app.cu:21", "app.cu:31"));
    assert!(pair.first.stream.starts_with("stream 1") && then.stream.starts_with("stream 2"), "{pair:?}");
    let said = text::text(&[listing]);
    assert!(
        said.contains("without it the capture has unjoined work: kernel second(float*, int) (app.cu:31)"),
        "{said}"
    );
    assert!(!said.contains("not judged"), "{said}");
}

#[test]
fn a_fork_between_kernels_that_share_nothing_is_needed_for_the_capture_alone() {
    let listing = forked(X + 2048, true, false).listing();
    assert_eq!(verdicts(&listing), [(SyncVerdict::Capture, 3, false); 2]);
    let said = text::text(&[listing]);
    assert!(said.contains("without it kernel second(float*, int) (app.cu:31) on stream 2"), "{said}");
    assert!(said.contains("is not captured"), "{said}");
}

#[test]
fn a_node_whose_bytes_are_not_known_leaves_a_second_wait_open() {
    // B waits again: the first wait still brings it in.
    let run = |known| {
        let mut p = Program::new();
        p.malloc(X, 4096);
        let first = p.kernel("first", &[writes(0, WHOLE)]);
        let second = if known { p.kernel("second", &[reads(0, WHOLE)]) } else { p.define("second") };
        let capture = CAPTURE;
        p.does("cudaStreamBeginCapture", Op::CaptureStart { capture, stream: A });
        p.does("cudaEventRecord", Op::CaptureRecord { capture, event: EVENT, stream: A });
        p.does("cudaStreamWaitEvent", Op::CaptureWait { capture, stream: B, event: EVENT });
        p.does("cudaLaunchKernel", Op::CaptureNode { capture, stream: A, node: 11 });
        p.does("cudaEventRecord", Op::CaptureRecord { capture, event: EVENT, stream: A });
        p.line(30).does("cudaStreamWaitEvent", Op::CaptureWait { capture, stream: B, event: EVENT });
        p.does("cudaLaunchKernel", Op::CaptureNode { capture, stream: B, node: 12 });
        p.does("cudaEventRecord", Op::CaptureRecord { capture, event: EVENT, stream: B });
        p.does("cudaStreamWaitEvent", Op::CaptureWait { capture, stream: A, event: EVENT });
        p.does("cudaStreamEndCapture", Op::CaptureDone { stream: A });
        p.graph(EXEC, &[(21, first, X, vec![]), (31, second, X + 2048, vec![0])], &[]);
        for (index, node) in [(0, 11), (1, 12)] {
            p.raw(Op::NodeOf { exec: EXEC, index, part: 0, node });
        }
        launch(&mut p);
        p.listing()
    };
    let open = run(false);
    assert_eq!(open.sites[1].verdict, SyncVerdict::Unknown, "{open:#?}");
    assert_eq!(open.sites[1].kernels, ["kernel second(float*, int)"]);
    assert_eq!(run(true).sites[1].verdict, SyncVerdict::Together, "the two waits stand for each other");
}

#[test]
fn waits_of_a_capture_that_was_changed_by_hand_are_not_judged() {
    let listing = forked(X + 2048, true, true).listing();
    assert_eq!(verdicts(&listing), [(SyncVerdict::Unknown, 3, false); 2]);
    assert!(listing.notes[0].starts_with("not all edges of the graphs of #1 #2 follow"), "{:?}", listing.notes);
}

#[test]
fn edges_that_graph_calls_made_are_counted_and_not_judged() {
    let mut p = Program::new();
    p.malloc(X, 1024);
    let first = p.kernel("first", &[writes(0, WHOLE)]);
    let second = p.kernel("second", &[reads(0, WHOLE)]);
    p.graph(EXEC, &[(21, first, X, vec![]), (31, second, X, vec![0])], &[]);
    launch(&mut p);
    let listing = p.listing();
    assert_eq!((listing.sites.len(), listing.findings), (0, 0));
    assert_eq!(listing.notes, ["not judged: 1 edge of launched graphs that no recorded wait made"]);
}

/// B writes, and a graph on A waits for B's event in a node of its own. `again`: A waits itself.
fn waits_outside(again: bool) -> Listing {
    let mut p = Program::new();
    p.malloc(X, 1024);
    let kernel = p.kernel("reads", &[reads(0, WHOLE)]);
    p.does("cudaEventCreate", Op::EventCreate { event: EVENT, context: CONTEXT, flags: 0, handle: 0 });
    p.line(50).graph(EXEC, &[(21, kernel, X, vec![1])], &[]);
    let call = p.call("cuGraphAddEventWaitNode");
    let wait = Op::StreamWait { stream: StreamId::NONE, event: EVENT, mode: EventMode::External };
    let mut body = [0; 64];
    let mut to = Encoder::new(&mut body);
    wait.encode(&mut to);
    let len = to.finish().expect("fits");
    let (stack, dependencies) = (StackId(20), List::new(&[]));
    p.raw(Op::GraphNode {
        exec: EXEC,
        index: 1,
        stack,
        call,
        enabled: true,
        dependencies,
        tag: wait.tag(),
        body: &body[..len],
    });
    p.line(70).go(B, X, &[writes(0, WHOLE)]);
    p.record(EVENT, B);
    if again {
        p.wait(A, EVENT);
    }
    p.line(80).does("cudaGraphLaunch", Op::GraphLaunch { stream: A, exec: EXEC });
    p.listing()
}

#[test]
fn a_node_that_waits_for_an_event_of_outside_is_a_site() {
    let alone = waits_outside(false);
    assert_eq!(verdicts(&alone), [(SyncVerdict::Needed, 1, false)]);
    assert_eq!((alone.sites[0].kind, &*alone.sites[0].at), ("captured-wait", "app.cu:20"));
    let both = waits_outside(true);
    assert!(both.sites.iter().all(|site| site.verdict == SyncVerdict::Together), "{both:#?}");
}

#[test]
fn an_unjoined_capture_names_its_streams() {
    let run = |joined: bool| {
        let mut p = Program::new();
        let capture = CAPTURE;
        p.line(20).does("cudaStreamBeginCapture", Op::CaptureStart { capture, stream: A });
        p.does("cudaEventRecord", Op::CaptureRecord { capture, event: EVENT, stream: A });
        p.line(30).does("cudaStreamWaitEvent", Op::CaptureWait { capture, stream: B, event: EVENT });
        p.line(40).does("cudaLaunchKernel", Op::CaptureNode { capture, stream: B, node: 12 });
        p.does("cudaEventRecord", Op::CaptureRecord { capture, event: EVENT, stream: B });
        if joined {
            p.does("cudaStreamWaitEvent", Op::CaptureWait { capture, stream: A, event: EVENT });
        }
        p.line(50).does("cudaStreamEndCapture", Op::Failed { result: 904, stream: StreamId::NONE });
        let fault = p.outcome().faults.remove(0);
        fault.explained().expect("it is known what it means")
    };
    let (said, lines) = run(false);
    assert!(said.contains("stream 2 (non-blocking, created at app.cu:3), drawn in by the wait at app.cu:30"), "{said}");
    assert_eq!(
        lines,
        [
            "cudaEventRecord(event, stream_2);         // after its last captured call, app.cu:40",
            "cudaStreamWaitEvent(stream_1, event, 0);  // before cudaStreamEndCapture, app.cu:50",
        ]
    );
    let (said, _) = run(true);
    assert!(said.contains("a stream that was drawn into the capture"), "no stream is blamed that was joined: {said}");
}
