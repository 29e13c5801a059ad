//! Executable graphs: snapshots of graphs, which can be changed and launched.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cuda_sys::*;

use crate::handles::{Handles, handle_of};
use crate::memory::graph_memory::Use;
use crate::objects::capture;
use crate::objects::context::Context;
use crate::objects::graph::{Graph, Node, UserObject, lock, node_type};
use crate::objects::stream::Stream;
use crate::objects::task::{Plan, PlanMeasured, Task};
use crate::sched::{OpId, Work};
use crate::touched::{self, GraphTouched};

/// All live executable graphs.
pub(crate) static GRAPH_EXECS: Handles<GraphExec> = Handles::new();

/// One node of an executable graph.
pub(crate) struct ExecNode {
    /// The handle of the node that it was made from.
    pub(crate) source: usize,
    /// What it does.
    pub(crate) task: Task,
    /// Whether it does it (`cuGraphNodeSetEnabled`).
    pub(crate) enabled: bool,
    deps: Vec<usize>,
    /// It may begin before the only kernel in front of it has ended.
    overlaps: bool,
}

/// An executable graph: a snapshot of a graph.
pub(crate) struct GraphExec {
    /// The context that it was made in.
    pub(crate) ctx: Arc<Context>,
    /// `CUDA_GRAPH_INSTANTIATE_FLAG_*`.
    pub(crate) flags: u64,
    /// Its nodes, each behind those it depends on.
    pub(crate) nodes: Mutex<Vec<ExecNode>>,
    last: Mutex<OpId>,
    launched: AtomicBool,
    objects: Vec<Arc<UserObject>>,
    /// Conditions that begin every launch with a value.
    conditions: Vec<Arc<crate::objects::conditional::Condition>>,
    memory: Use,
}

fn snapshot(task: Task) -> Result<Task, CUresult> {
    Ok(match task {
        Task::Child(child) => {
            if child.sorted().is_none() {
                return Err(CUresult::ERROR_INVALID_VALUE);
            }
            let copy = child.copy_owned()?;
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

/// The copy of a node inside a child graph.
fn copy_inside(task: &Task, source: usize) -> Option<Arc<Node>> {
    let Task::Child(child) = task else { return None };
    let inside = |node: &Arc<Node>| match node.origin == Some(source) {
        true => Some(node.clone()),
        false => copy_inside(&node.task(), source),
    };
    child.nodes().iter().find_map(inside)
}

impl GraphExec {
    /// Makes a graph executable.
    pub(crate) fn create(ctx: &Arc<Context>, graph: &Graph, flags: u64) -> Result<Arc<GraphExec>, CUresult> {
        let sorted = graph.sorted().ok_or(CUresult::ERROR_INVALID_VALUE)?;
        let memory = graph.memory_use(&sorted).begin()?;
        let mut nodes = Vec::with_capacity(sorted.len());
        for (node, deps) in &sorted {
            let before: Vec<&Arc<Node>> = deps.iter().map(|&dep| &sorted[dep].0).collect();
            let (source, task, overlaps) = (handle_of(node), snapshot(node.task())?, graph.overlaps(node, &before));
            nodes.push(ExecNode { source, task, enabled: true, deps: deps.clone(), overlaps });
        }
        let exec = Arc::new(GraphExec {
            ctx: ctx.clone(),
            flags,
            nodes: Mutex::new(nodes),
            last: Mutex::new(OpId(0)),
            launched: AtomicBool::new(false),
            objects: lock(&graph.objects).clone(),
            conditions: crate::objects::conditional::with_defaults(graph),
            memory,
        });
        debug_assert!(exec.objects.len() <= usize::MAX / 2);
        GRAPH_EXECS.insert(exec.clone());
        Ok(exec)
    }

    /// Replaces what the copy of a node does; the kind must stay. Host functions may be inside
    /// child graphs, at any depth (measured: H200, driver 580,
    /// `tests/gpu/programs/child_host_nodes.cu`).
    pub(crate) fn set(&self, source: usize, task: Task) -> Result<(), CUresult> {
        let mut nodes = lock(&self.nodes);
        let Some(node) = nodes.iter_mut().find(|node| node.source == source) else {
            let inner = nodes.iter().find_map(|node| copy_inside(&node.task, source));
            let inner = inner.ok_or(CUresult::ERROR_INVALID_VALUE)?;
            let mut function = lock(&inner.task);
            if !matches!((&*function, &task), (Task::Host(_), Task::Host(_))) {
                return Err(CUresult::ERROR_INVALID_VALUE);
            }
            *function = task;
            return Ok(());
        };
        if node_type(&node.task) != node_type(&task) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        node.task = snapshot(task)?;
        Ok(())
    }

    /// Takes over what the nodes of another graph of the same shape do. On refusal: why, and the
    /// node of that graph.
    pub(crate) fn update(&self, graph: &Graph) -> Result<(), (CUgraphExecUpdateResult, usize)> {
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
            if let (Task::Alloc(old, _), Task::Alloc(at, _)) | (Task::Free(old), Task::Free(at)) = (&old.task, &task)
                && old != at
            {
                return Err((CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, handle_of(new)));
            }
            tasks.push(snapshot(task).map_err(|_| (CU_GRAPH_EXEC_UPDATE_ERROR, handle_of(new)))?);
        }
        for (node, task) in nodes.iter_mut().zip(tasks) {
            node.task = task;
        }
        Ok(())
    }

    /// Launches into a stream: behind its earlier work and behind the last launch of this graph.
    pub(crate) fn launch(&self, stream: &Arc<Stream>) -> Result<(), CUresult> {
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
        let frees_itself = self.flags & u64::from(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
        self.memory.launch(frees_itself)?;
        let mut plan = Plan::default();
        let mut steps: Vec<usize> = Vec::new();
        let mut first = Vec::new();
        if !self.conditions.is_empty() {
            plan.steps.push((crate::objects::conditional::reset(self.conditions.clone()), Vec::new(), Vec::new()));
            first.push(0);
        }
        let measured = self.measured();
        if let Some(measured) = &measured {
            plan.measured = PlanMeasured::Graph(Arc::downgrade(measured));
        }
        for node in lock(&self.nodes).iter() {
            let mut deps: Vec<usize> = node.deps.iter().map(|&dep| steps[dep]).collect();
            if deps.is_empty() {
                deps.clone_from(&first);
            }
            let task = if node.enabled { &node.task } else { &Task::Empty };
            let step = plan.add_node(&self.ctx, task, node.source, &deps);
            if node.overlaps {
                plan.overlap(deps[0], step);
            }
            steps.push(step);
        }
        let asks_later = |node: &ExecNode| matches!(&node.task, Task::Conditional(_) | Task::Child(_));
        if let Some(measured) = measured.as_ref().filter(|_| lock(&self.nodes).iter().any(asks_later)).cloned() {
            // Bodies of conditional nodes ask for their launches when their turn has come.
            plan.steps.push((Work::Run(Box::new(move || drop(measured))), steps, Vec::new()));
        }
        let mut last = lock(&self.last);
        *last = plan.submit(stream.id, &[*last]);
        self.memory.launched(*last);
        self.launched.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The launches of its kernels whose bytes somebody wants, if there are any.
    fn measured(&self) -> Option<Arc<GraphTouched>> {
        fn visit(task: &Task, node: usize, in_body: bool, found: &mut GraphTouched) {
            let inner = match task {
                Task::Kernel(kernel) => {
                    if let Some(launch) = kernel.measured(node) {
                        found.insert(node, if in_body { launch.may_be_left_out() } else { launch });
                    }
                    return;
                }
                Task::Child(child) => std::slice::from_ref(child),
                Task::Conditional(node) => &node.bodies[..],
                _ => return,
            };
            let in_body = in_body || matches!(task, Task::Conditional(_));
            for node in inner.iter().flat_map(|graph| graph.nodes()) {
                let handle = node.origin.unwrap_or_else(|| handle_of(&node));
                visit(&node.task(), handle, in_body, found);
            }
        }
        if !touched::is_observed() {
            return None;
        }
        touched::graph_begins(self as *const GraphExec as usize);
        let mut found = GraphTouched::default();
        for node in lock(&self.nodes).iter().filter(|node| node.enabled) {
            visit(&node.task, node.source, false, &mut found);
        }
        (!found.is_empty()).then(|| Arc::new(found))
    }

    /// Maps the memory that it allocates.
    pub(crate) fn upload(&self) {
        self.memory.upload();
    }

    fn to_graph(&self) -> Result<Arc<Graph>, CUresult> {
        if !self.memory.own.is_empty() || !self.memory.ended.is_empty() {
            return Err(CUresult::ERROR_NOT_SUPPORTED);
        }
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
