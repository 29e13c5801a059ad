//! Memory of graphs: what their allocation nodes give, whether it may be launched (again), and what
//! `cuDeviceGetGraphMemAttribute` says of it. When nodes run is not known here.
//!
//! A graph's memory has its addresses from the creation of the node on, for as long as the graph,
//! an executable of it or an allocation in it lives: other nodes are made for it before anything is
//! launched. A device maps it when an executable is uploaded or
//! launched, and stays mapped until it is trimmed while nothing in it is allocated: a free alone
//! gives nothing back. So an H200 answered, in steps of 32 MiB.

use std::sync::{Arc, Mutex, Weak};

use cuda_sys::*;

use super::arena::round_up;
use super::{ALIGN, AllocationKind, Memory, lock};
use crate::sched::{self, ContextId, OpId};

/// What a device maps for graphs at a time.
const STEP: u64 = 32 << 20;

/// Memory that is mapped, kept by no graph if by nothing else.
static MAPPED: Mutex<Vec<Arc<GraphMemory>>> = Mutex::new(Vec::new());
/// All memory of graphs.
static KNOWN: Mutex<Vec<Weak<GraphMemory>>> = Mutex::new(Vec::new());
/// The most bytes that each device had mapped since that was reset.
static HIGH: Mutex<[[u64; 2]; 8]> = Mutex::new([[0; 2]; 8]);

/// The memory of one graph.
pub(crate) struct GraphMemory {
    device: u32,
    ctx: ContextId,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    blocks: Vec<Block>,
    /// Bytes that are mapped for it.
    mapped: u64,
    /// Whether a graph's executable uses it now: there may be one only.
    executable: bool,
    last: OpId,
}

struct Block {
    at: u64,
    size: u64,
    /// Allocated by a launch and not freed since.
    live: bool,
}

/// What an executable does with the memory of graphs.
#[derive(Default)]
pub(crate) struct Use {
    /// What its graph, and child graphs that this owns, allocate.
    pub(crate) own: Vec<Arc<GraphMemory>>,
    /// What it allocates and does not free itself.
    pub(crate) kept: Vec<u64>,
    /// What it frees that another launch has allocated.
    pub(crate) ended: Vec<u64>,
    /// Most bytes that it has allocated at a time.
    pub(crate) most: u64,
    /// How many of `own` know it as their graph's executable.
    claimed: usize,
}

impl State {
    /// Allocated, or in use by a launch.
    fn is_busy(&self) -> bool {
        self.blocks.iter().any(|block| block.live) || !sched::get().is_done(self.last)
    }
}

impl GraphMemory {
    /// No memory yet.
    pub(crate) fn create(ctx: ContextId, device: u32) -> Arc<GraphMemory> {
        let made = Arc::new(GraphMemory { device, ctx, state: Mutex::default() });
        let mut known = lock(&KNOWN);
        known.retain(|other| other.strong_count() > 0);
        known.push(Arc::downgrade(&made));
        made
    }

    /// Addresses for an allocation node.
    pub(crate) fn take(&self, memory: &Memory, size: u64) -> Result<u64, CUresult> {
        let rounded = round_up(size, ALIGN).filter(|&n| n > 0).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        reuse();
        let at = memory.take_device(self.device, rounded, ALIGN)?;
        memory.insert(at, size, AllocationKind::Graph, self.ctx, self.device);
        lock(&self.state).blocks.push(Block { at, size, live: false });
        Ok(at)
    }

    /// Whether an allocation node of the graph gave this address.
    pub(crate) fn owns(&self, at: u64) -> bool {
        lock(&self.state).blocks.iter().any(|block| block.at == at)
    }

    /// Whether an executable of the graph lives.
    pub(crate) fn has_executable(&self) -> bool {
        lock(&self.state).executable
    }

    /// Takes note of the graph's only executable.
    fn claim(&self) -> Result<(), CUresult> {
        let mut state = lock(&self.state);
        if std::mem::replace(&mut state.executable, true) {
            return Err(CUresult::ERROR_NOT_SUPPORTED);
        }
        Ok(())
    }

    fn map(self: &Arc<GraphMemory>, bytes: u64) {
        reuse();
        let mut state = lock(&self.state);
        let fresh = state.mapped == 0;
        state.mapped = state.mapped.max(bytes.next_multiple_of(STEP));
        drop(state);
        if fresh {
            lock(&MAPPED).push(self.clone());
        }
        let now = mapped(self.device);
        for high in &mut lock(&HIGH)[self.device as usize] {
            *high = now.max(*high);
        }
    }

    fn set(&self, at: u64, live: bool) -> Result<(), CUresult> {
        let mut state = lock(&self.state);
        let block = state.blocks.iter_mut().find(|block| block.at == at && block.live != live);
        block.ok_or(CUresult::ERROR_INVALID_VALUE)?.live = live;
        Ok(())
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(memory) = super::try_get() else { return };
        for block in &state.blocks {
            memory.remove(block.at, |kind| kind == AllocationKind::Graph);
            memory.give_device(self.device, block.at, block.size);
        }
    }
}

impl Use {
    /// Takes note of the executable; [`Use::launch`] and [`Use::upload`] are its own.
    pub(crate) fn begin(mut self) -> Result<Use, CUresult> {
        for at in 0..self.own.len() {
            self.own[at].claim()?;
            self.claimed = at + 1;
        }
        Ok(self)
    }

    /// Maps the memory.
    pub(crate) fn upload(&self) {
        self.own.iter().for_each(|own| own.map(self.most));
    }

    /// A launch allocates. What the last one left allocated must have been freed, or is freed now.
    pub(crate) fn launch(&self, frees_itself: bool) -> Result<(), CUresult> {
        for own in &self.own {
            let mut state = lock(&own.state);
            if frees_itself {
                state.blocks.iter_mut().for_each(|block| block.live = false);
            } else if state.blocks.iter().any(|block| block.live) {
                return Err(CUresult::ERROR_INVALID_VALUE);
            }
        }
        for &at in &self.ended {
            find(at).ok_or(CUresult::ERROR_INVALID_VALUE)?.set(at, false)?;
        }
        self.upload();
        for &at in &self.kept {
            find(at).ok_or(CUresult::ERROR_INVALID_VALUE)?.set(at, true)?;
        }
        Ok(())
    }

    /// The launch's operation: until it is done, the memory is not trimmed.
    pub(crate) fn launched(&self, op: OpId) {
        self.own.iter().for_each(|own| lock(&own.state).last = op);
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.own[..self.claimed].iter().for_each(|own| lock(&own.state).executable = false);
    }
}

/// The memory that an allocation node gave this address of.
pub(crate) fn find(at: u64) -> Option<Arc<GraphMemory>> {
    let known: Vec<_> = lock(&KNOWN).iter().filter_map(Weak::upgrade).collect();
    known.into_iter().find(|memory| memory.owns(at))
}

/// `cuMemFree` and `cuMemFreeAsync` of what a launch has allocated.
pub(crate) fn free(at: u64) -> Result<(), CUresult> {
    find(at).ok_or(CUresult::ERROR_INVALID_VALUE)?.set(at, false)
}

fn mapped(device: u32) -> u64 {
    lock(&MAPPED).iter().filter(|memory| memory.device == device).map(|memory| lock(&memory.state).mapped).sum()
}

/// What was mapped for graphs that are gone is there for others.
fn reuse() {
    lock(&MAPPED).retain(|graph| Arc::strong_count(graph) > 1 || lock(&graph.state).is_busy());
}

/// `cuDeviceGraphMemTrim`: unmaps what nothing is allocated in.
pub(crate) fn trim(device: u32) {
    let mut idle = Vec::new();
    lock(&MAPPED).retain(|graph| {
        let mut state = lock(&graph.state);
        if graph.device != device || state.is_busy() {
            return true;
        }
        state.mapped = 0;
        idle.push(graph.clone());
        false
    });
}

/// `cuDeviceGetGraphMemAttribute`. What is mapped is what is used: physical memory is kept for
/// nothing else.
pub(crate) fn attribute(device: u32, attr: CUgraphMem_attribute) -> Result<u64, CUresult> {
    match attr {
        CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT | CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT => Ok(mapped(device)),
        CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => Ok(lock(&HIGH)[device as usize][0]),
        CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => Ok(lock(&HIGH)[device as usize][1]),
        _ => Err(CUresult::ERROR_INVALID_VALUE),
    }
}

/// `cuDeviceSetGraphMemAttribute`: the marks of the highest can be set to zero, which sets them to
/// what is mapped now.
pub(crate) fn reset(device: u32, attr: CUgraphMem_attribute, value: u64) -> Result<(), CUresult> {
    let which = match attr {
        CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => 0,
        CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => 1,
        _ => return Err(CUresult::ERROR_INVALID_VALUE),
    };
    if value != 0 {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    let now = mapped(device);
    lock(&HIGH)[device as usize][which] = now;
    Ok(())
}
