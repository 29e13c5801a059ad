//! Graphs: tasks with edges between them. Executable graphs are in `graph_exec`.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use cuda_sys::*;

use crate::handles::{Handles, handle_of};
use crate::memory::graph_memory::{self, GraphMemory, Use};
use crate::objects::context::Context;
use crate::objects::task::{HostFn, Plan, Task};
use crate::sched::Work;

/// All live graphs.
pub(crate) static GRAPHS: Handles<Graph> = Handles::new();
/// All live nodes.
pub(crate) static NODES: Handles<Node> = Handles::new();

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// One node.
pub(crate) struct Node {
    /// What it does.
    pub(crate) task: Mutex<Task>,
    /// Where it belongs.
    pub(crate) graph: Weak<Graph>,
    /// Attributes that were set (id and bytes): remembered, without effect.
    pub(crate) attributes: Mutex<Vec<(u32, [u8; 64])>>,
    /// The node of the original, in a clone.
    pub(crate) origin: Option<usize>,
}

/// One graph.
#[derive(Default)]
pub(crate) struct Graph {
    state: Mutex<State>,
    /// Conditions that were made for this graph.
    pub(crate) conditions: Mutex<Vec<Arc<crate::objects::conditional::Condition>>>,
    /// Destructors that hang on the graph's life, with counts.
    pub(crate) objects: Mutex<Vec<Arc<UserObject>>>,
    /// What its allocation nodes give.
    memory: Mutex<Option<Arc<GraphMemory>>>,
    /// Whether a child node owns it (`CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE`).
    moved: AtomicBool,
}

#[derive(Default, Clone)]
struct State {
    nodes: Vec<Arc<Node>>,
    /// From, to: handles.
    edges: Vec<Edge>,
    /// Ports and types of edges that have any.
    data: HashMap<Edge, CUgraphEdgeData>,
}

/// An edge: the handles of the node that comes first and of the other.
pub(crate) type Edge = (usize, usize);

/// An edge's data where only ports of kernels have a meaning: `from_port` of the first kernel.
pub(crate) fn programmatic(from_port: u8) -> CUgraphEdgeData {
    CUgraphEdgeData { from_port, type_: CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC as u8, ..CUgraphEdgeData::zeroed() }
}

/// A count with a destructor.
pub(crate) struct UserObject {
    /// Holds that the program has.
    pub(crate) count: AtomicU64,
    /// What to call when its last holder lets go.
    pub(crate) destroy: HostFn,
}

impl Drop for UserObject {
    fn drop(&mut self) {
        crate::objects::task::call_host(self.destroy);
    }
}

/// Whether an edge with this data is one without.
pub(crate) fn is_plain(data: &CUgraphEdgeData) -> bool {
    (data.from_port, data.to_port, data.type_) == (0, 0, 0)
}

/// The kind of a task, as graphs name it.
pub(crate) fn node_type(task: &Task) -> CUgraphNodeType {
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
    pub(crate) fn inner(&self) -> Vec<Arc<Graph>> {
        match self.task() {
            Task::Child(child) => vec![child],
            Task::Conditional(node) => node.bodies.clone(),
            _ => Vec::new(),
        }
    }

    /// A copy of what it does.
    pub(crate) fn task(&self) -> Task {
        lock(&self.task).clone()
    }
}

impl Graph {
    /// An empty graph.
    pub(crate) fn create() -> Arc<Graph> {
        let graph = Arc::new(Graph::default());
        GRAPHS.insert(graph.clone());
        graph
    }

    /// Adds a node behind others of the same graph.
    pub(crate) fn add(self: &Arc<Graph>, task: Task, deps: &[Arc<Node>]) -> Result<Arc<Node>, CUresult> {
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
    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        lock(&self.state).nodes.clone()
    }

    /// All edges, as handles.
    pub(crate) fn edges(&self) -> Vec<(usize, usize)> {
        lock(&self.state).edges.clone()
    }

    /// The ports and the type of an edge.
    pub(crate) fn data_of(&self, edge: Edge) -> CUgraphEdgeData {
        lock(&self.state).data.get(&edge).copied().unwrap_or_default()
    }

    /// Whether a kernel may begin before the one in front of it has ended, which is all it waits
    /// for: the edge comes from that kernel's trigger. (From the start of its blocks it may begin
    /// even earlier; here it does so at the trigger, too.)
    pub(crate) fn overlaps(&self, node: &Arc<Node>, deps: &[&Arc<Node>]) -> bool {
        let &[before] = deps else { return false };
        let data = self.data_of((handle_of(before), handle_of(node)));
        data.type_ == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC as u8
    }

    /// Whether an edge has ports or a type that a list of nodes cannot say.
    pub(crate) fn has_data(&self) -> bool {
        !lock(&self.state).data.is_empty()
    }

    /// Sets the ports and the type of an edge.
    pub(crate) fn set_data(&self, edge: Edge, data: CUgraphEdgeData) {
        if is_plain(&data) {
            lock(&self.state).data.remove(&edge);
        } else {
            lock(&self.state).data.insert(edge, data);
        }
    }

    /// Adds or removes edges.
    pub(crate) fn change_edges(&self, edges: &[(usize, usize)], add: bool) -> Result<(), CUresult> {
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
            state.data.retain(|edge, _| !edges.contains(edge));
        }
        Ok(())
    }

    /// Takes a node and its edges out.
    pub(crate) fn remove(&self, node: &Arc<Node>) {
        let handle = handle_of(node);
        let mut state = lock(&self.state);
        state.nodes.retain(|other| !Arc::ptr_eq(other, node));
        state.edges.retain(|edge| edge.0 != handle && edge.1 != handle);
        state.data.retain(|edge, _| edge.0 != handle && edge.1 != handle);
        let _ = NODES.remove(handle);
    }

    /// Whether `node` comes before one of `ends` or is one of them.
    pub(crate) fn reaches(&self, node: &Arc<Node>, ends: &[Arc<Node>]) -> bool {
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

    /// A copy; child graphs are copied too. There is none of a graph with memory.
    pub(crate) fn duplicate(&self) -> Result<Arc<Graph>, CUresult> {
        if self.has_memory_nodes() {
            // A driver refuses it as well (cuda.h, `cuGraphAddChildGraphNode`, `cuGraphClone`).
            crate::status::excuse();
            return Err(CUresult::ERROR_NOT_SUPPORTED);
        }
        self.copy(Graph::duplicate)
    }

    /// A copy for the only executable of the graph that owns this one: with its memory.
    pub(super) fn copy_owned(&self) -> Result<Arc<Graph>, CUresult> {
        if self.is_moved() { self.copy(Graph::copy_owned) } else { self.duplicate() }
    }

    fn copy(&self, inner: fn(&Graph) -> Result<Arc<Graph>, CUresult>) -> Result<Arc<Graph>, CUresult> {
        let clone = Graph::create();
        let state = lock(&self.state).clone();
        let mut new = HashMap::new();
        for node in &state.nodes {
            let task = match node.task() {
                Task::Child(child) => Task::Child(inner(&child)?),
                Task::Conditional(node) => Task::Conditional(node.with_bodies(|body| body.duplicate())?),
                task => task,
            };
            let copy = clone.add_copy(task, &[], Some(handle_of(node)))?;
            *lock(&copy.attributes) = lock(&node.attributes).clone();
            new.insert(handle_of(node), handle_of(&copy));
        }
        let edges: Vec<_> = state.edges.iter().map(|edge| (new[&edge.0], new[&edge.1])).collect();
        clone.change_edges(&edges, true)?;
        for ((from, to), data) in &state.data {
            clone.set_data((new[from], new[to]), *data);
        }
        *lock(&clone.objects) = lock(&self.objects).clone();
        Ok(clone)
    }

    /// Whether a child node owns it. Then it is not executable, destroyed or another's child by
    /// itself, and gets no nodes with memory (cuda.h, `CUgraphChildGraphNodeOwnership`).
    pub(crate) fn is_moved(&self) -> bool {
        self.moved.load(Ordering::Relaxed)
    }

    /// Gives the graph to a child node of `parent`.
    pub(crate) fn move_into(self: &Arc<Graph>, parent: &Arc<Graph>) -> Result<Task, CUresult> {
        if self.contains(parent) || self.moved.swap(true, Ordering::Relaxed) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        Ok(Task::Child(self.clone()))
    }

    fn contains(self: &Arc<Graph>, other: &Arc<Graph>) -> bool {
        Arc::ptr_eq(self, other) || self.nodes().iter().flat_map(|node| node.inner()).any(|graph| graph.contains(other))
    }

    /// The graph's nodes are no longer known by handle.
    pub(crate) fn forget_nodes(&self) {
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
    pub(super) fn sorted(&self) -> Option<Vec<(Arc<Node>, Vec<usize>)>> {
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
    pub(crate) fn plan(&self, plan: &mut Plan, ctx: &Arc<Context>, before: &[usize]) -> usize {
        let mut steps: Vec<usize> = Vec::new();
        let sorted = self.sorted().unwrap_or_default();
        for (node, deps) in &sorted {
            let before_it: Vec<&Arc<Node>> = deps.iter().map(|&dep| &sorted[dep].0).collect();
            let deps: Vec<usize> = deps.iter().map(|&dep| steps[dep]).collect();
            // The handle that the program knows: this graph may be a copy inside an executable.
            let handle = node.origin.unwrap_or_else(|| handle_of(node));
            let step = plan.add_node(ctx, &node.task(), handle, if deps.is_empty() { before } else { &deps });
            if self.overlaps(node, &before_it) {
                plan.overlap(deps[0], step);
            }
            steps.push(step);
        }
        plan.steps.push((Work::Point(None), if steps.is_empty() { before.to_vec() } else { steps }, Vec::new()));
        plan.steps.len() - 1
    }
}

impl Graph {
    /// The graph lives on inside an executable one, where no handle reaches it.
    pub(crate) fn forget_handles(self: &Arc<Graph>) {
        self.forget_nodes();
        let _ = GRAPHS.remove(handle_of(self));
    }
}

/// Memory that nodes allocate and free.
impl Graph {
    /// Memory for an allocation node.
    pub(crate) fn allocate(&self, ctx: &Context, device: u32, size: u64) -> Result<u64, CUresult> {
        if self.is_moved() {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let mut memory = lock(&self.memory);
        let memory = memory.get_or_insert_with(|| GraphMemory::create(ctx.owner().id, device));
        memory.take(crate::memory::get(), size)
    }

    /// What a free node behind `deps` does: memory that this graph allocates before it, or another
    /// has allocated, and that no other node frees.
    pub(crate) fn freeing(&self, at: u64, deps: &[Arc<Node>]) -> Result<Task, CUresult> {
        const INVALID: CUresult = CUresult::ERROR_INVALID_VALUE;
        let memory = graph_memory::find(at).ok_or(INVALID)?;
        let nodes = self.nodes();
        if self.is_moved() {
            return Err(INVALID);
        }
        if nodes.iter().any(|node| matches!(node.task(), Task::Free(freed) if freed == at)) {
            return Err(INVALID);
        }
        if lock(&self.memory).as_ref().is_some_and(|own| Arc::ptr_eq(own, &memory)) {
            let gives = |node: &&Arc<Node>| matches!(node.task(), Task::Alloc(given, _) if given == at);
            let node = nodes.iter().find(gives).ok_or(INVALID)?;
            // While an executable lives, an H200 refuses it as well.
            if memory.has_executable() || !self.reaches(node, deps) {
                return Err(INVALID);
            }
        }
        Ok(Task::Free(at))
    }

    /// Whether it has nodes that allocate or free: CUDA does not let such a graph be copied or cut.
    pub(crate) fn has_memory_nodes(&self) -> bool {
        self.nodes().iter().any(|node| matches!(node.task(), Task::Alloc(..) | Task::Free(_)))
    }

    /// What an executable of it does with memory: `sorted` are its nodes.
    pub(super) fn memory_use(&self, sorted: &[(Arc<Node>, Vec<usize>)]) -> Use {
        let mut found = Use::default();
        let (mut now, mut sizes) = (0u64, HashMap::new());
        self.add_memory_use(sorted, &mut found, &mut now, &mut sizes);
        found.kept = sizes.into_keys().collect();
        found
    }

    fn add_memory_use(
        &self,
        sorted: &[(Arc<Node>, Vec<usize>)],
        found: &mut Use,
        now: &mut u64,
        sizes: &mut HashMap<u64, u64>,
    ) {
        found.own.extend(lock(&self.memory).clone());
        for (node, _) in sorted {
            match node.task() {
                Task::Alloc(at, size) => {
                    *now += size;
                    found.most = found.most.max(*now);
                    sizes.insert(at, size);
                }
                Task::Free(at) => match sizes.remove(&at) {
                    Some(size) => *now -= size,
                    None => found.ended.push(at),
                },
                Task::Child(child) => {
                    child.add_memory_use(&child.sorted().unwrap_or_default(), found, now, sizes);
                }
                _ => {}
            }
        }
    }
}
