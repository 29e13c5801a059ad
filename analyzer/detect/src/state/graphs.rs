//! Executable graphs: their nodes, and which node comes before which.
//!
//! Owns the definitions and the inner partial order. Does not know what a node does to memory:
//! `analysis` applies the nodes at each launch.
//!
//! The order inside a graph is kept as clocks over *chains*. Every node continues the chain of one
//! node it depends on, or begins a new chain, and its clock says how far each chain has got when
//! it starts. That answers "before" in constant time. It takes `nodes * chains` numbers, which is
//! little for the long and narrow graphs that programs record.

use crate::launches::dependence::Dependence;
use crate::launches::effects::Launch;
use crate::state::op_site::OpSite;
use order::Opens;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;
use trace::{CallId, Dependency, GraphExecId, KernelId, Op, StackId, StreamId};

/// Maximum size of a graph's order, in numbers (64 MiB). Beyond that, the remaining nodes count as
/// ordered by submission.
const MAX_CLOCKS: usize = 1 << 24;

/// Maximum number of captured streams that are kept of one site.
const CAPTURED: usize = 64;

/// A dependency on a node's programmatic trigger: it orders kernels that wait for it, and no
/// others.
const PORT_TRIGGERED: u32 = 1;

/// A dependency on the start of a node's blocks: it orders kernels that wait
/// (`griddepcontrol.wait` waits for the whole node, as behind a trigger; seen on an H100), and no
/// others.
#[cfg(test)]
const PORT_LAUNCHED: u32 = 2;

/// One node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Where it was captured or added.
    pub stack: StackId,
    /// The call that made it.
    pub call: CallId,
    /// Whether it runs.
    pub(crate) enabled: bool,
    /// Of a kernel with a dependency on the trigger or the start of a node: whether it waits for
    /// such nodes (`griddepcontrol.wait`). Others wait for all by themselves.
    dependence: Dependence,
    /// When it lets such nodes begin that depend on its trigger, and whether that is known.
    opens: Opens,
    opens_surely: bool,
    dependencies: Vec<Dependency>,
    /// Whether it is in a body of a conditional node, which may leave it out.
    pub is_conditional: bool,
    /// Nodes that it waits for because of waits that have been added.
    added: Vec<u32>,
    /// The nodes of the driver that it is, or is part of, from the inside out: the graph that each
    /// is in, and its number if it was captured.
    parts: SmallVec<[(u32, u32); 1]>,
    tag: u16,
    body: Vec<u8>,
}

impl Node {
    /// The nodes that come directly before it.
    pub(crate) fn dependencies(&self) -> &[Dependency] {
        &self.dependencies
    }

    /// The nodes of the driver that it is, or is part of, from the inside out.
    pub fn parts(&self) -> &[(u32, u32)] {
        &self.parts
    }

    /// Whether it holds its whole graph back for an event of outside.
    pub fn waits_outside(&self) -> bool {
        self.enabled && self.tag == trace::tag::StreamWait
    }

    /// Whether it runs.
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Whether this is what it does.
    pub fn does(&self, tag: u16, body: &[u8]) -> bool {
        self.tag == tag && self.body == body
    }

    /// Its op; `None` for empty nodes and for ops that this version does not know.
    pub fn op(&self) -> Option<Op<'_>> {
        if self.tag == 0 || !self.enabled { None } else { Op::decode(self.tag, &self.body).ok() }
    }

    /// Whether the accesses that the node makes last come behind the other one.
    fn is_full(&self, d: &Dependency) -> bool {
        d.port == 0 || self.dependence.waits
    }
}

/// The inner order of a graph.
#[derive(Clone, Debug, Default)]
pub struct Inner {
    /// Nodes in an order that respects all dependencies.
    sequence: Vec<u32>,
    /// Chain and place in it (from 1) of every node.
    place: Vec<(u32, u32)>,
    /// For every node, how far each chain has got; rows of `chains` numbers.
    clocks: Vec<u32>,
    chains: usize,
    /// The same clocks at which nodes begin that wait for some of their dependencies themselves.
    begins: FxHashMap<u32, Vec<u32>>,
    /// Nodes of which it is not known that those they depend on let them begin so early.
    doubtful: FxHashSet<u32>,
}

impl Inner {
    /// A clock takes in a node that has finished, and what had by then. `late`: that, if it is
    /// more than when the node began.
    fn join(&self, clock: &mut [u32], from: u32, late: Option<&Vec<u32>>) {
        let row = from as usize * self.chains;
        let finished = late.map_or(&self.clocks[row..row + self.chains], Vec::as_slice);
        clock.iter_mut().zip(finished).for_each(|(to, from)| *to = (*to).max(*from));
        let (chain, place) = self.place[from as usize];
        clock[chain as usize] = clock[chain as usize].max(place);
    }

    /// Whether `first` has finished before `second` starts.
    pub fn before(&self, first: u32, second: u32) -> bool {
        let (Some(&(chain, place)), second) = (self.place.get(first as usize), second as usize) else { return true };
        self.clocks.get(second * self.chains + chain as usize).is_none_or(|reached| *reached >= place)
    }

    /// Whether `first` has finished before `second` begins, whatever that waits for later.
    fn before_wait(&self, first: u32, second: u32) -> bool {
        let (Some(clock), Some(&(chain, place))) = (self.begins.get(&second), self.place.get(first as usize)) else {
            return self.before(first, second);
        };
        clock.get(chain as usize).is_none_or(|reached| *reached >= place)
    }
}

/// An executable graph.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    inner: Option<Arc<Inner>>,
    /// Whether waits have been added to these nodes.
    is_replanned: bool,
    /// Whether its order is that of an assumption.
    pub is_assumed: bool,
}

impl Graph {
    /// The numbers of its nodes that were captured.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.nodes.iter().flat_map(|node| node.parts.iter().map(|(_, number)| *number))
    }

    /// A node.
    pub fn node(&self, index: u32) -> Option<&Node> {
        self.nodes.get(index as usize)
    }

    /// Nodes in an order that respects all dependencies. Call [`Graph::prepare`] first.
    pub fn sequence(&self) -> &[u32] {
        self.inner.as_ref().map_or(&[], |i| &i.sequence)
    }

    /// Whether `first` has finished before `second` starts, in one launch.
    pub fn before(&self, first: u32, second: u32) -> bool {
        self.inner.as_ref().is_none_or(|inner| inner.before(first, second))
    }

    /// The same, of what `second` does behind its wait for the nodes it depends on, or before it.
    pub(crate) fn comes_before(&self, first: u32, second: u32, waited: bool) -> bool {
        self.inner.as_ref().is_none_or(|inner| match waited {
            true => inner.before(first, second),
            false => inner.before_wait(first, second),
        })
    }

    /// Whether a node may begin before what it waits for itself, and touches memory then.
    pub(crate) fn begins_early(&self, node: u32) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.begins.contains_key(&node))
            && self.node(node).is_some_and(|node| node.dependence.accesses_early)
    }

    /// Whether it is not known that a node may begin before the end of those it depends on.
    pub fn begins_in_doubt(&self, node: u32) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.doubtful.contains(&node))
    }

    /// What a node does about the nodes that it may overlap.
    pub fn dependence(&self, node: u32) -> Dependence {
        self.node(node).map_or(Dependence::ORDERED, |node| node.dependence)
    }

    /// Its order, which outlives changes of its nodes. Call [`Graph::prepare`] first.
    pub(crate) fn inner(&self) -> Option<Arc<Inner>> {
        self.inner.clone()
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The order is another one from now on, until the nodes change.
    pub fn assume(&mut self, inner: Inner) {
        self.inner = Some(Arc::new(inner));
        self.is_assumed = true;
    }

    /// The sites of its nodes, by index; `None` for nodes that no wait can be placed at.
    pub fn sites(&self) -> Vec<Option<OpSite>> {
        let site = |node: &Node| OpSite::of(&Op::decode(node.tag, &node.body).ok()?, node.stack).map(|(site, _)| site);
        self.nodes.iter().map(site).collect()
    }

    /// Whether no waits have been added since its nodes have changed. From now on they have.
    pub fn begin_replan(&mut self) -> bool {
        !std::mem::replace(&mut self.is_replanned, true)
    }

    /// Makes the nodes of later sites wait for those of earlier ones that were captured before
    /// them, as a wait between the captured streams would. Returns the number of pairs that are
    /// ordered by this.
    pub fn wait_between(&mut self, after: &[OpSite], before: &[OpSite]) -> u64 {
        let sites = self.sites();
        let all = |wanted: &[OpSite]| -> Vec<u32> {
            let is = |at: &usize| sites[*at].is_some_and(|site| wanted.contains(&site));
            (0..sites.len()).filter(is).map(|at| at as u32).collect()
        };
        let (first, then) = (all(after), all(before));
        let mut ordered = 0;
        for &then in &then {
            for &first in first.iter().filter(|first| **first < then) {
                if self.before(then, first) {
                    continue;
                }
                ordered += 1;
                if !self.before(first, then) {
                    self.nodes[then as usize].added.push(first);
                    self.inner = None;
                    self.prepare();
                }
            }
        }
        ordered
    }

    /// Computes the inner order, if the nodes have changed.
    pub(crate) fn prepare(&mut self) {
        if self.inner.is_none() {
            self.is_assumed = false;
            self.inner = Some(Arc::new(self.order()));
        }
    }

    fn order(&self) -> Inner {
        self.order_by(&self.nodes.iter().map(|node| &node.dependencies[..]).collect::<Vec<_>>())
    }

    /// The order of the nodes, if these came directly before each.
    pub(crate) fn order_by(&self, edges: &[&[Dependency]]) -> Inner {
        let added = |node: &Node| node.added.iter().map(|from| Dependency { from: *from, port: 0 }).collect::<Vec<_>>();
        let edges: Vec<Cow<'_, [Dependency]>> = (edges.iter().zip(&self.nodes))
            .map(|(edges, node)| match node.added.is_empty() {
                true => Cow::Borrowed(*edges),
                false => [*edges, &added(node)].concat().into(),
            })
            .collect();
        let n = self.nodes.len().min(edges.len());
        let mut waits: Vec<u32> = vec![0; n];
        let mut next: Vec<Vec<u32>> = vec![Vec::new(); n];
        for (i, edges) in edges.iter().enumerate() {
            for d in edges.iter().filter(|d| (d.from as usize) < n && d.from as usize != i) {
                waits[i] += 1;
                next[d.from as usize].push(i as u32);
            }
        }
        // Where the edges leave a choice, the order in which the nodes were read: reports name
        // pairs in the order of the program.
        let mut ready: std::collections::BTreeSet<u32> = (0..n as u32).filter(|i| waits[*i as usize] == 0).collect();
        let mut inner = Inner { place: vec![(0, 0); n], ..Inner::default() };
        while let Some(i) = ready.pop_first() {
            inner.sequence.push(i);
            for &j in &next[i as usize] {
                waits[j as usize] -= 1;
                if waits[j as usize] == 0 {
                    ready.insert(j);
                }
            }
        }
        let mut tails: Vec<u32> = Vec::new();
        let mut tail_of: FxHashMap<u32, u32> = FxHashMap::default();
        for &i in &inner.sequence {
            let node = &self.nodes[i as usize];
            let full = edges[i as usize].iter().filter(|d| node.is_full(d));
            let chain = full.into_iter().find_map(|d| tail_of.remove(&d.from)).unwrap_or_else(|| {
                tails.push(0);
                tails.len() as u32 - 1
            });
            tails[chain as usize] += 1;
            inner.place[i as usize] = (chain, tails[chain as usize]);
            tail_of.insert(i, chain);
        }
        inner.chains = tails.len();
        if n.saturating_mul(inner.chains) > MAX_CLOCKS {
            return inner;
        }
        inner.clocks = vec![0; n * inner.chains];
        // What has finished when a node counts as finished for those that wait for it, beyond what
        // had finished when it made its last accesses. Only kernels that never wait have an entry.
        // Kernels complete in order: one that ends first completes behind those it depends on.
        let mut late: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for at in 0..inner.sequence.len() {
            let i = inner.sequence[at];
            let node = &self.nodes[i as usize];
            let edges = edges[i as usize].iter().filter(|d| (d.from as usize) < n);
            let mut clock = vec![0; inner.chains];
            let mut begin = clock.clone();
            let in_doubt = |d: &Dependency| {
                let is_open = d.port == PORT_TRIGGERED && !self.nodes[d.from as usize].opens_surely;
                d.port != 0 && (is_open || inner.doubtful.contains(&d.from))
            };
            if edges.clone().any(in_doubt) {
                inner.doubtful.insert(i);
            }
            for d in edges.clone() {
                inner.join(&mut clock, d.from, late.get(&d.from));
                match d.port {
                    0 => inner.join(&mut begin, d.from, late.get(&d.from)),
                    port => self.opened(&inner, &mut begin, d.from, port),
                }
            }
            let row = i as usize * inner.chains..(i as usize + 1) * inner.chains;
            if begin == clock {
                inner.clocks[row].copy_from_slice(&clock);
            } else if node.dependence.waits {
                inner.clocks[row].copy_from_slice(&clock);
                inner.begins.insert(i, begin);
            } else {
                inner.clocks[row].copy_from_slice(&begin);
                late.insert(i, clock);
            }
        }
        inner
    }

    /// A clock takes in what has finished when a node lets those begin that depend on its trigger,
    /// or on the start of its blocks. The rules are those of a stream (`order`,
    /// `state::last_kernel`), and were measured with them.
    fn opened(&self, inner: &Inner, clock: &mut [u32], from: u32, port: u32) {
        let node = &self.nodes[from as usize];
        let row = &inner.clocks[from as usize * inner.chains..(from as usize + 1) * inner.chains];
        let begun = inner.begins.get(&from).map_or(row, Vec::as_slice);
        let reached = if port == PORT_TRIGGERED && node.opens != Opens::AtOnce { row } else { begun };
        clock.iter_mut().zip(reached).for_each(|(to, from)| *to = (*to).max(*from));
        if port == PORT_TRIGGERED && node.opens == Opens::Never {
            let (chain, place) = inner.place[from as usize];
            clock[chain as usize] = clock[chain as usize].max(place);
        }
    }
}

/// All executable graphs of one process.
#[derive(Default)]
pub struct Graphs {
    execs: FxHashMap<GraphExecId, Graph>,
    /// By site, the streams that nodes were captured on. It outlives the graphs: reports are made
    /// at the end.
    captured: FxHashMap<OpSite, Vec<StreamId>>,
}

impl Graphs {
    /// Defines an executable graph, or defines it again.
    pub fn define(&mut self, exec: GraphExecId, nodes: u32) {
        let mut graph = Graph::default();
        graph.nodes.reserve((nodes as usize).min(1 << 16));
        self.execs.insert(exec, graph);
    }

    /// Defines a node, or defines it again. `of`: what a kernel does about programmatic
    /// dependencies. False: its graph is unknown.
    pub fn node(&mut self, op: &Op<'_>, mut of: impl FnMut(KernelId, &Launch<'_>) -> Dependence) -> bool {
        let Op::GraphNode { exec, index, stack, call, enabled, dependencies, tag, body } = *op else { return false };
        let Some(graph) = self.execs.get_mut(&exec) else { return false };
        let index = index as usize;
        // Indices come from the shim, one after the other. A damaged one must not cause a huge
        // allocation.
        if index > graph.nodes.len() + (1 << 16) {
            return false;
        }
        if index >= graph.nodes.len() {
            graph.nodes.resize_with(index + 1, Node::default);
        }
        let dependencies: Vec<Dependency> = dependencies.iter().collect();
        let launch = match Op::decode(tag, body) {
            Ok(Op::Launch { kernel, shape, params, .. }) if dependencies.iter().any(|d| d.port != 0) => {
                Some((kernel, Launch { shape, params }))
            }
            _ => None,
        };
        for before in dependencies.iter().filter(|d| d.port == PORT_TRIGGERED && d.from as usize != index) {
            let Some(node) = graph.nodes.get_mut(before.from as usize) else { continue };
            if let Ok(Op::Launch { kernel, shape, params, .. }) = Op::decode(node.tag, &node.body) {
                let known = of(kernel, &Launch { shape, params });
                (node.opens, node.opens_surely) = (known.opens, known.opens_surely);
            }
        }
        let dependence = launch.map_or(Dependence::ORDERED, |(kernel, launch)| of(kernel, &launch));
        let known = &mut graph.nodes[index];
        let is_same = known.dependencies == dependencies && known.stack == stack;
        // Another kernel may be let in at another time.
        let is_same_kernel = known.dependence == dependence && known.body == body;
        if !is_same || !is_same_kernel {
            graph.inner = None;
        }
        graph.is_replanned &= is_same;
        let added = if is_same { std::mem::take(&mut known.added) } else { Vec::new() };
        let (parts, is_conditional, body) = (std::mem::take(&mut known.parts), known.is_conditional, body.to_vec());
        let (opens, opens_surely) = (Opens::AtOnce, false);
        *known = Node {
            stack,
            call,
            enabled,
            dependence,
            opens,
            opens_surely,
            dependencies,
            is_conditional,
            added,
            parts,
            tag,
            body,
        };
        true
    }

    /// Notes which node of the driver a node is, or is part of.
    pub fn node_of(&mut self, exec: GraphExecId, index: u32, part: u32, node: u32) {
        if let Some(known) = self.execs.get_mut(&exec).and_then(|graph| graph.nodes.get_mut(index as usize)) {
            known.parts.push((part, node));
        }
    }

    /// Notes that a node is in a body of a conditional node.
    pub fn node_conditional(&mut self, exec: GraphExecId, index: u32) {
        if let Some(known) = self.execs.get_mut(&exec).and_then(|graph| graph.nodes.get_mut(index as usize)) {
            known.is_conditional = true;
        }
    }

    /// Notes on which stream a node was captured.
    pub fn node_captured(&mut self, exec: GraphExecId, index: u32, stream: StreamId) {
        let Some(node) = self.find(exec, index) else { return };
        let site = Op::decode(node.tag, &node.body).ok().and_then(|op| OpSite::of(&op, node.stack));
        if let Some((site, _)) = site {
            let streams = self.captured.entry(site).or_default();
            if !streams.contains(&stream) && streams.len() < CAPTURED {
                streams.push(stream);
            }
        }
    }

    /// The streams on which nodes of this site were captured, as far as they are known.
    pub fn captured_on(&self, site: &OpSite) -> &[StreamId] {
        self.captured.get(site).map_or(&[], Vec::as_slice)
    }

    /// A node of an executable graph.
    pub fn find(&self, exec: GraphExecId, index: u32) -> Option<&Node> {
        self.execs.get(&exec)?.node(index)
    }

    /// Removes an executable graph.
    pub fn destroy(&mut self, exec: GraphExecId) {
        self.execs.remove(&exec);
    }

    /// Takes a graph out for a launch; [`Graphs::put`] returns it.
    pub fn take(&mut self, exec: GraphExecId) -> Option<Graph> {
        let mut graph = self.execs.remove(&exec)?;
        graph.prepare();
        Some(graph)
    }

    /// Returns a graph after a launch.
    pub fn put(&mut self, exec: GraphExecId, graph: Graph) {
        self.execs.insert(exec, graph);
    }
}

#[cfg(test)]
mod tests;
