//! The inner order of graphs: by their edges, and by what kernels do about programmatic ones.

use super::*;
use trace::codec::List;

fn graph(edges: &[(u32, u32, u32)], n: u32) -> Graph {
    graph_of(edges, n, true)
}

/// All nodes are kernels. `waits`: whether they wait for their dependencies.
fn graph_of(edges: &[(u32, u32, u32)], n: u32, waits: bool) -> Graph {
    let mut body = [0; 128];
    let shape = trace::LaunchShape::new([1; 3], [1; 3]);
    let launch = Op::Launch { stream: trace::StreamId(0), kernel: KernelId(1), shape, params: &[] };
    let mut to = trace::Encoder::new(&mut body);
    launch.encode(&mut to);
    let len = to.finish().expect("fits");
    let mut graphs = Graphs::default();
    let exec = GraphExecId(1);
    graphs.define(exec, n);
    for index in 0..n {
        let deps: Vec<Dependency> =
            edges.iter().filter(|e| e.1 == index).map(|e| Dependency { from: e.0, port: e.2 }).collect();
        assert!(graphs.node(
            &Op::GraphNode {
                exec,
                index,
                stack: StackId(0),
                call: CallId(0),
                enabled: true,
                dependencies: List::new(&deps),
                tag: launch.tag(),
                body: &body[..len],
            },
            |_, _| Dependence { waits, ..Dependence::UNKNOWN }
        ));
    }
    graphs.take(exec).expect("defined")
}

#[test]
fn fork_and_join() {
    let g = graph(&[(0, 1, 0), (0, 2, 0), (1, 3, 0), (2, 3, 0)], 4);
    assert_eq!(g.sequence().len(), 4);
    assert!(g.before(0, 1) && g.before(0, 3) && g.before(1, 3) && g.before(2, 3));
    assert!(!g.before(1, 2) && !g.before(2, 1) && !g.before(3, 0) && !g.before(1, 0));
}

#[test]
fn order_is_transitive_whatever_the_numbering() {
    let g = graph(&[(3, 2, 0), (2, 1, 0), (1, 0, 0)], 5);
    assert!(g.before(3, 0) && !g.before(0, 3) && !g.before(4, 0) && !g.before(0, 4));
}

#[test]
fn waiting_for_the_start_of_a_node_is_no_order() {
    let edges = [(0, 1, PORT_LAUNCHED), (0, 2, PORT_TRIGGERED)];
    let g = graph_of(&edges, 3, false);
    assert!(!g.before(0, 1) && !g.before(0, 2), "reported");
    let g = graph_of(&edges, 3, true);
    assert!(g.before(0, 1) && g.before(0, 2), "silent: the kernels wait for all of it");
}

/// cuda.h, edge data: a programmatic edge lets a kernel start before its predecessor has
/// finished, and only `griddepcontrol.wait` waits for that.
#[test]
fn a_trigger_orders_kernels_that_wait_for_it() {
    let edges = [(0, 1, PORT_TRIGGERED), (1, 2, 0), (3, 1, 0)];
    let g = graph_of(&edges, 4, true);
    assert!(g.before(0, 1) && g.before(0, 2) && g.before(3, 1));
    let g = graph_of(&edges, 4, false);
    assert!(!g.before(0, 1), "reported: it may overlap");
    assert!(g.before(3, 1), "silent: a full edge beside it");
    assert!(g.before(0, 2) && g.before(1, 2) && g.before(3, 2), "silent: what comes after the kernel waits for both");
}

#[test]
fn cycles_and_wild_edges_do_no_harm() {
    let g = graph(&[(0, 1, 0), (1, 0, 0), (77, 2, 0), (2, 2, 0)], 3);
    assert_eq!(g.sequence(), [2]);
}

#[test]
fn many_nodes_agree_with_reachability() {
    let edges: Vec<(u32, u32, u32)> =
        (1..60_u32).flat_map(|i| [(i * 7 % i, i, 0), (i * 13 % i, i, 0)]).filter(|e| e.0 % 3 != 0).collect();
    let g = graph(&edges, 60);
    let mut reach = vec![vec![false; 60]; 60];
    for i in 0..60 {
        for e in edges.iter().filter(|e| e.1 as usize == i) {
            reach[i][e.0 as usize] = true;
            let from = reach[e.0 as usize].clone();
            reach[i].iter_mut().zip(from).for_each(|(to, from)| *to |= from);
        }
    }
    for i in 0..60_u32 {
        for j in 0..60_u32 {
            if i != j {
                assert_eq!(g.before(j, i), reach[i as usize][j as usize], "{j} before {i}");
            }
        }
    }
}

const MEASURED: &str = include_str!("../../../../../tests/gpu/programs/programmatic.h200.txt");

/// A chain of kernels as a row of the table names it, with edges from a port where the row has an
/// attribute.
fn chain(form: &str, port: u32) -> Graph {
    let kernels: Vec<&str> = form.split(' ').collect();
    let of = |KernelId(at): KernelId, _: &Launch<'_>| {
        let steps = kernels[at as usize];
        let wait = steps.find('w').unwrap_or(steps.len());
        let opens = match steps.find(['t', 'u']) {
            None => Opens::Never,
            Some(trigger) if trigger > wait => Opens::AfterWait,
            Some(_) => Opens::AtOnce,
        };
        Dependence { waits: steps.contains(['w', 's']), accesses_early: true, opens, opens_surely: true }
    };
    let mut graphs = Graphs::default();
    let exec = GraphExecId(1);
    graphs.define(exec, kernels.len() as u32);
    for (index, steps) in (0..).zip(&kernels) {
        let mut body = [0; 128];
        let shape = trace::LaunchShape::new([1; 3], [1; 3]);
        let launch = Op::Launch { stream: trace::StreamId(0), kernel: KernelId(index), shape, params: &[] };
        let mut to = trace::Encoder::new(&mut body);
        launch.encode(&mut to);
        let len = to.finish().expect("fits");
        let edge = [Dependency { from: index.wrapping_sub(1), port: if steps.starts_with('P') { port } else { 0 } }];
        let dependencies = List::new(if index > 0 { &edge[..] } else { &[] });
        let (stack, call, tag, body) = (StackId(0), CallId(0), launch.tag(), &body[..len]);
        graphs.node(&Op::GraphNode { exec, index, stack, call, enabled: true, dependencies, tag, body }, of);
    }
    graphs.take(exec).expect("defined")
}

/// Chains of kernels as they were measured, by edges from the trigger (they answer as launches of
/// a stream do) and from the start of the blocks. Where one is behind the other, the clock may
/// have told so, not the edge: it has to be so for the edges if the earlier one sleeps after its
/// trigger, and none in between sleeps as long.
#[test]
fn nodes_begin_when_they_were_seen_to() {
    let mut asked = 0;
    for line in MEASURED.lines() {
        let Some((way @ ("stream" | "starts"), row)) = line.split_once(' ') else { continue };
        let (form, measured) = row.trim().split_once("  ").expect("a row");
        if form.contains(['M', 'E', 'W', 'H', 'X']) {
            continue;
        }
        let port = if way == "stream" { PORT_TRIGGERED } else { PORT_LAUNCHED };
        let graph = chain(form, port);
        let kernels: Vec<&str> = form.split(' ').collect();
        let words: Vec<&str> = measured.split_whitespace().collect();
        for pair in words.chunks(3) {
            let number = |at: usize| u32::from(pair[0].as_bytes()[at] - b'A');
            let (later, earlier) = (number(0), number(1));
            let early = graph.comes_before(earlier, later, false);
            let late = graph.comes_before(earlier, later, true);
            let steps = kernels[earlier as usize];
            let sleeps = steps[steps.rfind(['t', 'u']).unwrap_or(0)..].contains('d');
            let alone = (earlier + 1..later).all(|at| !kernels[at as usize].contains('d'));
            let must = way == "stream" && sleeps && alone;
            assert!(pair[1] != "e-" || !early, "{line}: {} is not ordered", pair[0]);
            assert!(pair[1] != "e+" || !must || early, "{line}: {} is ordered", pair[0]);
            assert!(pair[2] != "l+" || late, "{line}: {} is ordered behind the wait", pair[0]);
            asked += usize::from(pair[1] == "e-" || must);
        }
    }
    assert!(asked > 300, "rows are missing: {asked}");
}
