//! Conditional nodes: graphs that run, or not, depending on a value that kernels set
//! (`cudaGraphSetConditional`).
//!
//! The value is read when the node starts, and by a loop again after each round. A handle has one
//! value, whichever executable graph runs. A handle with a default is set back to it at the start
//! of every launch.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use cuda_sys::*;

use crate::objects::context::Context;
use crate::objects::graph::{Graph, lock};
use crate::objects::task::{Plan, PlanMeasured, Task};
use crate::sched::{Step, Work};

/// A condition: a value that kernels set and conditional nodes read.
pub(crate) struct Condition {
    value: AtomicU32,
    /// What it is at the start of a launch.
    default: Option<u32>,
}

/// A conditional node.
pub(crate) struct Conditional {
    /// What decides.
    pub(crate) condition: Arc<Condition>,
    /// How.
    pub(crate) kind: CUgraphConditionalNodeType,
    /// What runs.
    pub(crate) bodies: Vec<Arc<Graph>>,
}

static CONDITIONS: Mutex<Option<HashMap<u64, Weak<Condition>>>> = Mutex::new(None);

fn conditions() -> MutexGuard<'static, Option<HashMap<u64, Weak<Condition>>>> {
    lock(&CONDITIONS)
}

/// A new condition of a graph.
pub(crate) fn create(graph: &Graph, default: Option<u32>) -> CUgraphConditionalHandle {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    let condition = Arc::new(Condition { value: AtomicU32::new(default.unwrap_or(0)), default });
    conditions().get_or_insert_default().insert(handle, Arc::downgrade(&condition));
    lock(&graph.conditions).push(condition);
    handle
}

/// The condition of that handle, as long as its graph or something made from it lives.
pub(crate) fn find(handle: CUgraphConditionalHandle) -> Option<Arc<Condition>> {
    conditions().as_ref()?.get(&handle)?.upgrade()
}

/// What a kernel does. A handle of nothing is ignored, as on a device.
pub(crate) fn set(handle: CUgraphConditionalHandle, value: u32) {
    if let Some(condition) = find(handle) {
        condition.value.store(value, Ordering::Release);
    }
}

/// All conditions of a graph and of the graphs inside it that begin a launch with a value.
pub(crate) fn with_defaults(graph: &Graph) -> Vec<Arc<Condition>> {
    let mut found: Vec<_> = lock(&graph.conditions).iter().filter(|c| c.default.is_some()).cloned().collect();
    for node in graph.nodes() {
        if let Task::Conditional(node) = node.task()
            && node.condition.default.is_some()
        {
            found.push(node.condition.clone());
        }
        found.extend(node.inner().iter().flat_map(|inner| with_defaults(inner)));
    }
    found
}

/// The first step of a launch.
pub(crate) fn reset(conditions: Vec<Arc<Condition>>) -> Work {
    Work::Expand(Box::new(move || {
        for condition in &conditions {
            condition.value.store(condition.default.unwrap_or(0), Ordering::Release);
        }
        None
    }))
}

impl Conditional {
    /// The same decision over other bodies.
    pub(crate) fn with_bodies(
        &self,
        other: impl Fn(&Arc<Graph>) -> Result<Arc<Graph>, CUresult>,
    ) -> Result<Arc<Conditional>, CUresult> {
        let bodies = self.bodies.iter().map(other).collect::<Result<_, _>>()?;
        Ok(Arc::new(Conditional { condition: self.condition.clone(), kind: self.kind, bodies }))
    }

    /// The body that the value means now.
    fn chosen(&self) -> Option<&Arc<Graph>> {
        let value = self.condition.value.load(Ordering::Acquire);
        match self.kind {
            // The second body of an IF is its "else".
            CU_GRAPH_COND_TYPE_IF => self.bodies.get(usize::from(value == 0)),
            CU_GRAPH_COND_TYPE_WHILE => self.bodies.first().filter(|_| value != 0),
            _ => self.bodies.get(value as usize),
        }
    }

    /// What the node does when its turn has come.
    pub(crate) fn steps(
        self: Arc<Self>,
        ctx: &Arc<Context>,
        measured: PlanMeasured,
    ) -> Box<dyn FnMut() -> Option<Vec<Step>> + Send> {
        let ctx = ctx.clone();
        let mut first = true;
        Box::new(move || {
            let again = std::mem::take(&mut first) || self.kind == CU_GRAPH_COND_TYPE_WHILE;
            // A loop whose kernels failed would never end.
            if !again || ctx.check().is_err() {
                return None;
            }
            let mut plan = Plan { measured: measured.clone(), ..Plan::default() };
            self.chosen()?.plan(&mut plan, &ctx, &[]);
            Some(plan.steps)
        })
    }
}
