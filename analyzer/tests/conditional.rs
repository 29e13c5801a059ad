//! Work in bodies of conditional nodes, which a condition may leave out: how it is graded, and that
//! it takes the place of nothing that surely runs.

use crate::support::*;
use trace::*;

const N: u64 = 1024;
/// Memory that the graph uses besides.
const Y: u64 = X + (1 << 20);
const EXEC: GraphExecId = GraphExecId(1);

/// A graph of kernels on X, of which those with these indices are in a body.
fn graph(p: &mut Program, nodes: &[(u32, KernelId, u64, Vec<u32>)], inside: &[u32]) {
    p.graph(EXEC, nodes, &[]);
    for &index in inside {
        p.raw(Op::NodeConditional { exec: EXEC, index, condition: 0 });
    }
}

fn launch_graph(p: &mut Program, stream: StreamId) {
    p.does("cudaGraphLaunch", Op::GraphLaunch { stream, exec: EXEC });
}

#[test]
fn a_pair_with_a_body_is_possible_whoever_is_in_it() {
    for (inside, possible) in [(&[][..], false), (&[0], true), (&[1], true), (&[0, 1], true), (&[2], false)] {
        for launches in [1, 4] {
            for mended in [false, true] {
                let mut p = Program::new();
                p.malloc(X, N);
                p.malloc(Y, N);
                let store = p.kernel("store", &[writes(0, Shape::Exact(0, N))]);
                let load = p.kernel("load", &[reads(0, Shape::Exact(0, N))]);
                let before = if mended { vec![0] } else { vec![] };
                graph(&mut p, &[(71, store, X, vec![]), (72, load, X, before), (73, store, Y, vec![])], inside);
                for _ in 0..launches {
                    launch_graph(&mut p, A);
                }
                let wanted: &[&str] = match (mended, possible) {
                    (true, _) => &[],
                    (false, true) => &["read-after-write possible"],
                    (false, false) => &["read-after-write certain"],
                };
                assert_eq!(p.verdict(), wanted, "in a body: {inside:?}, launches: {launches}");
            }
        }
    }
}

#[test]
fn a_body_stands_for_nothing_that_surely_runs() {
    // A kernel writes, then a graph on its stream writes the same, and another stream reads.
    for (inside, launches) in [(&[][..], 1), (&[0], 1), (&[0], 4)] {
        let mut p = Program::new();
        p.malloc(X, N);
        let store = p.kernel("store", &[writes(0, Shape::Exact(0, N))]);
        p.go(A, X, &[writes(0, Shape::Exact(0, N))]);
        graph(&mut p, &[(71, store, X, vec![])], inside);
        for _ in 0..launches {
            launch_graph(&mut p, A);
        }
        p.go(B, X, &[reads(0, Shape::Exact(0, N))]);
        let mut found = p.verdict();
        found.sort();
        let kernel = "read-after-write certain".to_string();
        match inside {
            [] => assert_eq!(found, [kernel], "the body's write stands for the kernel's"),
            _ => assert_eq!(found, [kernel, "read-after-write possible".to_string()], "launches: {launches}"),
        }
    }
}
