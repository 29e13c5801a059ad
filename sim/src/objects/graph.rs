//! Graphs: tasks with an order, and their executable copies.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use cuda_sys::*;

use crate::handles::{Handles, handle_of};
use crate::objects::capture;
use crate::objects::context::Context;
use crate::objects::stream::Stream;
use crate::objects::task::{HostFn, Plan, Task};
use crate::sched::{OpId, Work};

/// All live graphs.
pub static GRAPHS: Handles<Graph> = Handles::new();
/// All live nodes.
pub static NODES: Handles<Node> = Handles::new();
/// All live executable graphs.
pub static EXECS: Handles<Exec> = Handles::new();

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// One node.
pub struct Node {
    /// What it does.
    pub task: Mutex<Task>,
    /// Where it belongs.
    pub graph: Weak<Graph>,
    /// Attributes that were set (id and bytes): remembered, without effect.
    pub attributes: Mutex<Vec<(u32, [u8; 64])>>,
    /// The node of the original, in a clone.
    pub origin: Option<usize>,
}

/// One graph.
#[derive(Default)]
pub struct Graph {
    state: Mutex<State>,
    /// Conditions that were made for this graph.
    pub conditions: Mutex<Vec<Arc<crate::objects::conditional::Condition>>>,
    /// Destructors that hang on the graph's life, with counts.
    pub objects: Mutex<Vec<Arc<UserObject>>>,
}

#[derive(Default, Clone)]
struct State {
    nodes: Vec<Arc<Node>>,
    /// From, to: handles.
    edges: Vec<(usize, usize)>,
}

/// A count with a destructor.
pub struct UserObject {
    /// Holds that the program has.
    pub count: AtomicU64,
    /// What to call when nobody holds it any more.
    pub destroy: HostFn,
}

impl Drop for UserObject {
    fn drop(&mut self) {
        crate::objects::task::call_host(self.destroy);
    }
}

/// The kind of a task, as graphs name it.
pub fn node_type(task: &Task) -> CUgraphNodeType {
    match task {
        Task::Empty | Task::End(_) => CU_GRAPH_NODE_TYPE_EMPTY,
        Task::Kernel(_) => CU_GRAPH_NODE_TYPE_KERNEL,
        Task::Copy(_) | Task::Staged(..) => CU_GRAPH_NODE_TYPE_MEMCPY,
        Task::Batch(_) => CU_GRAPH_NODE_TYPE_MEMCPY_BATCH,
        Task::Set(_) => CU_GRAPH_NODE_TYPE_MEMSET,
        Task::Host(_) => CU_GRAPH_NODE_TYPE_HOST,
        Task::Memory(_) => CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        Task::Alloc(..) => CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        Task::Free(_) => CU_GRAPH_NODE_TYPE_MEM_FREE,
        Task::Record(_) => CU_GRAPH_NODE_TYPE_EVENT_RECORD,
        Task::Wait(_) => CU_GRAPH_NODE_TYPE_WAIT_EVENT,
        Task::Child(_) => CU_GRAPH_NODE_TYPE_GRAPH,
        Task::Conditional(_) => CU_GRAPH_NODE_TYPE_CONDITIONAL,
    }
}

impl Node {
    /// The graphs inside: a child graph, or the bodies of a conditional node.
    pub fn inner(&self) -> Vec<Arc<Graph>> {
        match self.task() {
            Task::Child(child) => vec![child],
            Task::Conditional(node) => node.bodies.clone(),
            _ => Vec::new(),
        }
    }

    /// A copy of what it does.
    pub fn task(&self) -> Task {
        lock(&self.task).clone()
    }
}

impl Graph {
    /// An empty graph.
    pub fn create() -> Arc<Graph> {
        let graph = Arc::new(Graph::default());
        GRAPHS.insert(graph.clone());
        graph
    }

    /// Adds a node behind others of the same graph.
    pub fn add(self: &Arc<Graph>, task: Task, deps: &[Arc<Node>]) -> Result<Arc<Node>, CUresult> {
        self.add_copy(task, deps, None)
    }

    fn add_copy(
        self: &Arc<Graph>,
        task: Task,
        deps: &[Arc<Node>],
        origin: Option<usize>,
    ) -> Result<Arc<Node>, CUresult> {
        let mut state = lock(&self.state);
        if deps.iter().enumerate().any(|(n, dep)| deps[..n].iter().any(|other| Arc::ptr_eq(other, dep))) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        if !deps.iter().all(|dep| state.nodes.iter().any(|node| Arc::ptr_eq(node, dep))) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let node = Arc::new(Node {
            task: Mutex::new(task),
            graph: Arc::downgrade(self),
            attributes: Mutex::default(),
            origin,
        });
        let handle = NODES.insert(node.clone());
        for dep in deps {
            let edge = (handle_of(dep), handle);
            if !state.edges.contains(&edge) {
                state.edges.push(edge);
            }
        }
        state.nodes.push(node.clone());
        Ok(node)
    }

    /// All nodes, in order of creation.
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        lock(&self.state).nodes.clone()
    }

    /// All edges, as handles.
    pub fn edges(&self) -> Vec<(usize, usize)> {
        lock(&self.state).edges.clone()
    }

    /// Adds or removes edges.
    pub fn change_edges(&self, edges: &[(usize, usize)], add: bool) -> Result<(), CUresult> {
        let mut state = lock(&self.state);
        let known: HashSet<usize> = state.nodes.iter().map(handle_of).collect();
        let exists = |edge: &(usize, usize)| state.edges.contains(edge);
        let wrong = |edge: &(usize, usize)| {
            !known.contains(&edge.0) || !known.contains(&edge.1) || edge.0 == edge.1 || exists(edge) == add
        };
        if edges.iter().any(wrong) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        if add {
            state.edges.extend_from_slice(edges);
        } else {
            state.edges.retain(|edge| !edges.contains(edge));
        }
        Ok(())
    }

    /// Takes a node and its edges out.
    pub fn remove(&self, node: &Arc<Node>) {
        let handle = handle_of(node);
        let mut state = lock(&self.state);
        state.nodes.retain(|other| !Arc::ptr_eq(other, node));
        state.edges.retain(|edge| edge.0 != handle && edge.1 != handle);
        let _ = NODES.remove(handle);
    }

    /// Whether `node` comes before one of `ends` or is one of them.
    pub fn reaches(&self, node: &Arc<Node>, ends: &[Arc<Node>]) -> bool {
        let state = lock(&self.state);
        let mut seen = HashSet::new();
        let mut todo: Vec<usize> = ends.iter().map(handle_of).collect();
        while let Some(at) = todo.pop() {
            if at == handle_of(node) {
                return true;
            }
            if seen.insert(at) {
                todo.extend(state.edges.iter().filter(|edge| edge.1 == at).map(|edge| edge.0));
            }
        }
        false
    }

    /// A copy; child graphs are copied too.
    pub fn duplicate(&self) -> Result<Arc<Graph>, CUresult> {
        let clone = Graph::create();
        let state = lock(&self.state).clone();
        let mut new = HashMap::new();
        for node in &state.nodes {
            let task = match node.task() {
                Task::Child(child) => Task::Child(child.duplicate()?),
                Task::Conditional(node) => Task::Conditional(node.with_bodies(|body| body.duplicate())?),
                task => task,
            };
            let copy = clone.add_copy(task, &[], Some(handle_of(node)))?;
            *lock(&copy.attributes) = lock(&node.attributes).clone();
            new.insert(handle_of(node), handle_of(&copy));
        }
        let edges: Vec<_> = state.edges.iter().map(|edge| (new[&edge.0], new[&edge.1])).collect();
        clone.change_edges(&edges, true)?;
        *lock(&clone.objects) = lock(&self.objects).clone();
        Ok(clone)
    }

    /// The graph's nodes are no longer known by handle.
    pub fn forget_nodes(&self) {
        for node in self.nodes() {
            for graph in node.inner() {
                graph.forget_nodes();
                let _ = GRAPHS.remove(handle_of(&graph));
            }
            let _ = NODES.remove(handle_of(&node));
        }
    }

    /// Nodes so that every node comes after those it depends on, with the places of those; none if
    /// there is a cycle.
    fn sorted(&self) -> Option<Vec<(Arc<Node>, Vec<usize>)>> {
        let state = lock(&self.state);
        let mut place: HashMap<usize, usize> = HashMap::new();
        let mut sorted: Vec<(Arc<Node>, Vec<usize>)> = Vec::new();
        while sorted.len() < state.nodes.len() {
            let before = sorted.len();
            for node in &state.nodes {
                let handle = handle_of(node);
                if place.contains_key(&handle) {
                    continue;
                }
                let deps: Option<Vec<usize>> = state
                    .edges
                    .iter()
                    .filter(|edge| edge.1 == handle)
                    .map(|edge| place.get(&edge.0).copied())
                    .collect();
                if let Some(deps) = deps {
                    place.insert(handle, sorted.len());
                    sorted.push((node.clone(), deps));
                }
            }
            if sorted.len() == before {
                return None;
            }
        }
        Some(sorted)
    }

    /// Adds all nodes to a plan behind the given steps and answers the step behind which all are
    /// done.
    pub fn plan(&self, plan: &mut Plan, ctx: &Arc<Context>, before: &[usize]) -> usize {
        let mut steps: Vec<usize> = Vec::new();
        for (node, deps) in self.sorted().unwrap_or_default() {
            let deps: Vec<usize> = deps.iter().map(|&dep| steps[dep]).collect();
            let step = plan.add(ctx, &node.task(), if deps.is_empty() { before } else { &deps });
            steps.push(step);
        }
        plan.steps.push((Work::Point(None), if steps.is_empty() { before.to_vec() } else { steps }, Vec::new()));
        plan.steps.len() - 1
    }
}

/// One node of an executable graph.
pub struct ExecNode {
    /// The handle of the node that it was made from.
    pub source: usize,
    /// What it does.
    pub task: Task,
    /// Whether it does it (`cuGraphNodeSetEnabled`).
    pub enabled: bool,
    deps: Vec<usize>,
}

/// An executable graph: a snapshot of a graph.
pub struct Exec {
    /// The context that it was made in.
    pub ctx: Arc<Context>,
    /// `CUDA_GRAPH_INSTANTIATE_FLAG_*`.
    pub flags: u64,
    /// Its nodes, each behind those it depends on.
    pub nodes: Mutex<Vec<ExecNode>>,
    last: Mutex<OpId>,
    launched: AtomicBool,
    objects: Vec<Arc<UserObject>>,
    /// Conditions that begin every launch with a value.
    conditions: Vec<Arc<crate::objects::conditional::Condition>>,
}

fn snapshot(task: Task) -> Result<Task, CUresult> {
    Ok(match task {
        Task::Child(child) => {
            if child.sorted().is_none() {
                return Err(CUresult::ERROR_INVALID_VALUE);
            }
            let copy = child.duplicate()?;
            copy.forget_handles();
            Task::Child(copy)
        }
        Task::Conditional(node) => Task::Conditional(node.with_bodies(|body| {
            if body.sorted().is_none() {
                return Err(CUresult::ERROR_INVALID_VALUE);
            }
            let copy = body.duplicate()?;
            copy.forget_handles();
            Ok(copy)
        })?),
        task => task,
    })
}

impl Graph {
    /// The graph lives on inside an executable one, where no handle reaches it.
    fn forget_handles(self: &Arc<Graph>) {
        self.forget_nodes();
        let _ = GRAPHS.remove(handle_of(self));
    }
}

impl Exec {
    /// Makes a graph executable.
    pub fn create(ctx: &Arc<Context>, graph: &Graph, flags: u64) -> Result<Arc<Exec>, CUresult> {
        let sorted = graph.sorted().ok_or(CUresult::ERROR_INVALID_VALUE)?;
        let mut nodes = Vec::with_capacity(sorted.len());
        for (node, deps) in sorted {
            nodes.push(ExecNode { source: handle_of(&node), task: snapshot(node.task())?, enabled: true, deps });
        }
        let exec = Arc::new(Exec {
            ctx: ctx.clone(),
            flags,
            nodes: Mutex::new(nodes),
            last: Mutex::new(OpId(0)),
            launched: AtomicBool::new(false),
            objects: lock(&graph.objects).clone(),
            conditions: crate::objects::conditional::with_defaults(graph),
        });
        debug_assert!(exec.objects.len() <= usize::MAX / 2);
        EXECS.insert(exec.clone());
        Ok(exec)
    }

    /// Replaces what the copy of a node does; the kind must stay.
    pub fn set(&self, source: usize, task: Task) -> Result<(), CUresult> {
        let mut nodes = lock(&self.nodes);
        let node = nodes.iter_mut().find(|node| node.source == source).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        if node_type(&node.task) != node_type(&task) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        node.task = snapshot(task)?;
        Ok(())
    }

    /// Takes over what the nodes of another graph of the same shape do. On refusal: why, and the
    /// node of that graph.
    pub fn update(&self, graph: &Graph) -> Result<(), (CUgraphExecUpdateResult, usize)> {
        let sorted = graph.sorted().ok_or((CU_GRAPH_EXEC_UPDATE_ERROR, 0))?;
        let mut nodes = lock(&self.nodes);
        if sorted.len() != nodes.len() {
            return Err((CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, 0));
        }
        let mut tasks = Vec::with_capacity(sorted.len());
        for (old, (new, deps)) in nodes.iter().zip(&sorted) {
            let task = new.task();
            if node_type(&old.task) != node_type(&task) {
                return Err((CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, handle_of(new)));
            }
            let (mut before, mut after) = (old.deps.clone(), deps.clone());
            before.sort_unstable();
            after.sort_unstable();
            if before != after {
                return Err((CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, handle_of(new)));
            }
            tasks.push(snapshot(task).map_err(|_| (CU_GRAPH_EXEC_UPDATE_ERROR, handle_of(new)))?);
        }
        for (node, task) in nodes.iter_mut().zip(tasks) {
            node.task = task;
        }
        Ok(())
    }

    /// Launches into a stream: behind its earlier work and behind the last launch of this graph.
    pub fn launch(&self, stream: &Arc<Stream>) -> Result<(), CUresult> {
        if let Some(capture) = capture::of(stream) {
            // A launch inside a capture becomes a child graph.
            let graph = self.to_graph()?;
            drop(capture);
            capture::add(stream, &Task::Child(graph))?;
            return Ok(());
        }
        // Not captured here, but a launch into the legacy stream may disturb the captures of
        // others.
        capture::add(stream, &Task::Empty)?;
        let mut plan = Plan::default();
        let mut steps: Vec<usize> = Vec::new();
        let mut first = Vec::new();
        if !self.conditions.is_empty() {
            plan.steps.push((crate::objects::conditional::reset(self.conditions.clone()), Vec::new(), Vec::new()));
            first.push(0);
        }
        for node in lock(&self.nodes).iter() {
            let mut deps: Vec<usize> = node.deps.iter().map(|&dep| steps[dep]).collect();
            if deps.is_empty() {
                deps.clone_from(&first);
            }
            let task = if node.enabled { &node.task } else { &Task::Empty };
            let step = plan.add(&self.ctx, task, &deps);
            steps.push(step);
        }
        let mut last = lock(&self.last);
        *last = plan.submit(stream.id, &[*last]);
        self.launched.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn to_graph(&self) -> Result<Arc<Graph>, CUresult> {
        let graph = Graph::create();
        let mut made: Vec<Arc<Node>> = Vec::new();
        for node in lock(&self.nodes).iter() {
            let deps: Vec<Arc<Node>> = node.deps.iter().map(|&dep| made[dep].clone()).collect();
            made.push(graph.add(node.task.clone(), &deps)?);
        }
        graph.forget_handles();
        Ok(graph)
    }
}
