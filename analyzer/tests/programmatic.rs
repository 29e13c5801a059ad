//! Programmatic dependent launch: launches and nodes that may overlap their predecessor, and where
//! they do not.

use crate::support::*;
use analysis::AnalysisOptions;
use trace::codec::List;
use trace::*;

const N: u64 = 4096;

fn whole() -> Shape {
    Shape::Exact(0, N)
}

#[test]
fn a_launch_that_may_overlap_its_predecessor() {
    let go = |p: &mut Program, flags| {
        let params = X.to_le_bytes();
        let kernel = p.kernel("k", &[writes(0, whole())]);
        p.does("cudaLaunchKernelExC", launch_with(A, kernel, flags, &params));
    };
    for (flags, found) in [(0, false), (launch_flags::PROGRAMMATIC_SERIALIZATION, true)] {
        let mut p = Program::new();
        p.malloc(X, N);
        go(&mut p, flags);
        go(&mut p, flags);
        assert_eq!(!p.findings().is_empty(), found, "flags {flags}");
    }
    // Below compute capability 9.0 no launch overlaps another. Where it is not known, none is said
    // to, and the report says that this was not seen.
    for (arch, found, notes) in [(Some(90), true, 0), (Some(89), false, 0), (Some(80), false, 0), (None, false, 2)] {
        let mut p = Program::on_device(AnalysisOptions::default(), arch);
        p.malloc(X, N);
        go(&mut p, launch_flags::PROGRAMMATIC_SERIALIZATION);
        go(&mut p, launch_flags::PROGRAMMATIC_SERIALIZATION);
        let outcome = p.outcome();
        assert_eq!(!outcome.findings.is_empty(), found, "{arch:?}");
        let overlaps = outcome.coverage.unobserved.iter().filter(|(what, _)| what.contains("overlap"));
        assert_eq!(overlaps.map(|(_, count)| count).sum::<u64>(), notes, "{arch:?}");
    }
    // The kernel has no readable code, so it counts as waiting.
    let mut p = Program::new();
    p.malloc(X, N);
    let kernel = p.define("mystery");
    for _ in 0..2 {
        let params = X.to_le_bytes();
        let flags = launch_flags::PROGRAMMATIC_SERIALIZATION;
        p.does("cudaLaunchKernelExC", launch_with(A, kernel, flags, &params));
    }
    p.silent();
}

/// A kernel node behind another one, by an edge from its programmatic trigger (port 1) or a full
/// one (port 0).
fn graph(p: &mut Program, port: u32) {
    let exec = GraphExecId(1);
    p.malloc(X, N);
    let kernel = p.kernel("k", &[writes(0, whole())]);
    p.does("cudaGraphInstantiate", Op::GraphExec { exec, nodes: 2, flags: 0, handle: 1 });
    let call = p.call("cudaGraphAddKernelNode");
    for index in 0..2 {
        let params = X.to_le_bytes();
        let op = launch(StreamId(0), kernel, &params);
        let mut body = [0; 256];
        let mut to = Encoder::new(&mut body);
        op.encode(&mut to);
        let len = to.finish().expect("room");
        let edges = [Dependency { from: 0, port }];
        let dependencies = List::new(if index == 1 { &edges[..] } else { &[] });
        let (stack, tag, body) = (StackId(70 + index), op.tag(), &body[..len]);
        p.raw(Op::GraphNode { exec, index, stack, call, enabled: true, dependencies, tag, body });
    }
    p.does("cudaGraphLaunch", Op::GraphLaunch { stream: A, exec });
}

#[test]
fn a_programmatic_edge_counts_by_the_device() {
    for (arch, port, found, notes) in [
        (Some(90), 1, true, 0),
        (Some(90), 0, false, 0),
        (Some(80), 1, false, 0),
        (None, 1, false, 1),
        (None, 0, false, 0),
    ] {
        let mut p = Program::on_device(AnalysisOptions::default(), arch);
        graph(&mut p, port);
        let outcome = p.outcome();
        assert_eq!(!outcome.findings.is_empty(), found, "{arch:?}, port {port}");
        assert_eq!(outcome.coverage.unobserved.values().sum::<u64>(), notes, "{arch:?}, port {port}");
    }
}
