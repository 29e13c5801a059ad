//! Executable graphs that name memory which has ended: a node keeps the addresses that it was made
//! with, whatever becomes of the memory behind them.
//!
//! Owns which lifetimes the nodes of executable graphs name, which of these have ended since, and
//! the findings. What a node does with such an address, and so how sure a finding is, is judged in
//! `analysis/ops/stale_graphs.rs`, at the launch.
//!
//! # Which memory an address names
//!
//! That which lives there when the node is told: the root, and the block in it. Of an address in no
//! memory at all, that which was freed there last. A captured node was made earlier. What is freed
//! and allocated again between the capture and the instantiation is taken for what the node names,
//! since a program may give the node of a graph other parameters in between.
//!
//! Blocks that were handed out while anything was captured are left out. They come from a pool of
//! the graph itself, which hands their bytes out again inside the graph: of them the root counts,
//! which lives as long as the pool.

pub mod judge;

use crate::confidence::{Confidence, Weakness};
use crate::memory::allocations::Home;
use crate::memory::{Access, Allocation, AllocationId, Allocations, Site};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use trace::{ArrayId, Epoch, GraphExecId, KernelId, MemoryKind, Op, StackId, StreamId};

/// Findings kept for one process. More are only counted.
const MOST: usize = 1 << 12;
/// Freed roots that are remembered for nodes which are told later.
const MOST_ENDED: usize = 1 << 12;
/// Remembered roots below an address that may still reach it.
const LOOK_BACK: usize = 4;

/// Which address of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NodePlace {
    /// An 8-byte word of a kernel's parameters, by its byte offset.
    Param(u32),
    /// What a copy or a fill writes.
    Target,
    /// What a copy reads.
    Source,
    /// The word that a stream writes or waits for.
    Value,
}

/// Memory that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// What it was.
    pub memory: Allocation,
    /// Where it was freed.
    pub site: Site,
    /// When.
    pub epoch: Epoch,
}

/// A lifetime that a node names.
#[derive(Clone, Copy, Debug)]
struct Named {
    place: NodePlace,
    address: u64,
    /// Of an address under an alias: how far the memory itself is from it.
    shift: u64,
    allocation: AllocationId,
}

/// A node that names memory which has ended.
#[derive(Clone, Debug)]
pub struct Suspect {
    /// Its index in the graph.
    pub node: u32,
    /// Which of its addresses.
    pub place: NodePlace,
    /// The address.
    pub address: u64,
    /// How far the memory itself was from the address.
    pub shift: u64,
    /// The memory.
    pub ended: Rc<Ended>,
    /// What was there when it was judged last, and the finding that came of it.
    judged: Option<(AllocationId, Option<usize>)>,
}

/// A launch that was judged: an access of a node to memory that had ended.
#[derive(Clone, Debug)]
pub struct RawStale {
    /// The access. Its bytes are those of the memory that has ended.
    pub access: Access,
    /// The address in the node that leads there.
    pub place: NodePlace,
    /// The memory, and where it was freed.
    pub ended: Ended,
    /// What lies there now.
    pub now: Option<Allocation>,
    /// How sure it is.
    pub confidence: Confidence,
    /// Why it is no more than possible.
    pub weakness: Option<Weakness>,
    /// Where the graph was instantiated.
    pub instantiated: StackId,
    /// Launches.
    pub count: u64,
}

/// The key of a finding: the node's call site, kernel and address, and where the memory was
/// allocated and freed.
type Key = (StackId, KernelId, NodePlace, StackId, StackId);

/// What the executable graphs of a process name.
#[derive(Default)]
pub struct StaleGraphs {
    nodes: FxHashMap<GraphExecId, FxHashMap<u32, SmallVec<[Named; 4]>>>,
    instantiated: FxHashMap<GraphExecId, StackId>,
    /// By lifetime, the graphs that name it.
    uses: FxHashMap<AllocationId, SmallVec<[GraphExecId; 1]>>,
    suspects: FxHashMap<GraphExecId, Vec<Suspect>>,
    /// Freed roots by their first address, and in the order of their ends.
    ended: BTreeMap<u64, Rc<Ended>>,
    order: VecDeque<(u64, AllocationId)>,
    /// The streams whose captures have not ended.
    open: Vec<StreamId>,
    /// Lifetimes that began during captures: the first, and one past the last.
    captured: Vec<(u32, u32)>,
    index: FxHashMap<Key, usize>,
    list: Vec<RawStale>,
    dropped: u64,
}

impl StaleGraphs {
    /// An op of a capture.
    pub fn capture(&mut self, op: &Op<'_>, memory: &Allocations) {
        let next = memory.youngest().0 + 1;
        match *op {
            Op::CaptureStart { stream, .. } => {
                // One that ended in an error has left its stream.
                self.open.retain(|open| *open != stream);
                if self.open.is_empty() {
                    self.captured.push((next, u32::MAX));
                }
                self.open.push(stream);
            }
            Op::CaptureDone { stream } => {
                self.open.retain(|open| *open != stream);
                if self.open.is_empty()
                    && let Some((_, end)) = self.captured.last_mut().filter(|(_, end)| *end == u32::MAX)
                {
                    *end = next;
                }
                self.captured.pop_if(|(first, end)| first == end);
            }
            _ => {}
        }
    }

    /// A graph is instantiated, or all of its nodes are told again.
    pub fn define(&mut self, exec: GraphExecId, stack: StackId) {
        self.forget(exec);
        self.instantiated.insert(exec, stack);
    }

    /// A graph goes away.
    pub fn destroy(&mut self, exec: GraphExecId) {
        self.forget(exec);
        self.instantiated.remove(&exec);
    }

    fn forget(&mut self, exec: GraphExecId) {
        self.suspects.remove(&exec);
        let nodes = self.nodes.remove(&exec).unwrap_or_default();
        for named in nodes.values().flatten() {
            self.unuse(exec, named.allocation);
        }
    }

    fn unuse(&mut self, exec: GraphExecId, allocation: AllocationId) {
        if let Some(by) = self.uses.get_mut(&allocation) {
            by.retain(|of| *of != exec);
            if by.is_empty() {
                self.uses.remove(&allocation);
            }
        }
    }

    /// A node is told, with the addresses in it. `is_same`: it does what it did before, and only
    /// whether it runs has changed, so it names the same memory as before.
    pub fn node(
        &mut self,
        (exec, node): (GraphExecId, u32),
        is_same: bool,
        addresses: impl Iterator<Item = (NodePlace, u64, ArrayId)>,
        memory: &Allocations,
    ) {
        if is_same {
            return;
        }
        if let Some(of_graph) = self.suspects.get_mut(&exec) {
            of_graph.retain(|suspect| suspect.node != node);
        }
        let mut named: SmallVec<[Named; 4]> = SmallVec::new();
        for (place, address, array) in addresses {
            let at = if array.is_none() { memory.locate(address) } else { memory.locate_array(array, address) };
            let living = at.and_then(|at| match at.home {
                Home::Root(root) => Some((memory.root(root)?.id, at)),
                Home::Array(_) => Some((at.allocation, at)),
                Home::Pageable => None,
            });
            match living {
                Some((root, at)) => {
                    let shift = at.address.wrapping_sub(address);
                    named.push(Named { place, address, shift, allocation: root });
                    let is_block = at.allocation != root && !self.was_captured(at.allocation);
                    named.extend(is_block.then_some(Named { place, address, shift, allocation: at.allocation }));
                }
                // An array that has ended is another one's by no handle.
                None if !array.is_none() => {}
                None => {
                    let suspect = self.ended_at(address).map(|ended| Suspect::of(node, place, address, ended));
                    self.suspects.entry(exec).or_default().extend(suspect);
                }
            }
        }
        for named in &named {
            let by = self.uses.entry(named.allocation).or_default();
            if !by.contains(&exec) {
                by.push(exec);
            }
        }
        let of_graph = self.nodes.entry(exec).or_default();
        if named.is_empty() {
            of_graph.remove(&node);
        } else {
            of_graph.insert(node, named);
        }
    }

    /// The freed root that an address was in.
    fn ended_at(&self, address: u64) -> Option<Rc<Ended>> {
        let below = self.ended.range(..=address).rev().take(LOOK_BACK);
        below.map(|(_, ended)| ended).find(|ended| address < ended.memory.end()).cloned()
    }

    fn was_captured(&self, id: AllocationId) -> bool {
        let before = self.captured.partition_point(|(first, _)| *first <= id.0);
        before.checked_sub(1).is_some_and(|at| id.0 < self.captured[at].1)
    }

    /// Whether any graph names memory that lives.
    #[inline]
    pub fn names_anything(&self) -> bool {
        !self.uses.is_empty()
    }

    /// Memory is freed. `is_root`: it comes from CUDA.
    pub fn freed(&mut self, ended: Ended, is_root: bool) {
        let (id, start) = (ended.memory.id, ended.memory.ptr);
        let uses = self.uses.remove(&id);
        if !is_root && uses.is_none() {
            return;
        }
        let ended = Rc::new(ended);
        if is_root {
            self.ended.insert(start, Rc::clone(&ended));
            self.order.push_back((start, id));
            if self.order.len() > MOST_ENDED
                && let Some((start, id)) = self.order.pop_front()
                && self.ended.get(&start).is_some_and(|ended| ended.memory.id == id)
            {
                self.ended.remove(&start);
            }
        }
        for exec in uses.into_iter().flatten() {
            let Some(nodes) = self.nodes.get(&exec) else { continue };
            let of_graph = self.suspects.entry(exec).or_default();
            for (node, named) in nodes {
                for named in named.iter().filter(|named| named.allocation == id) {
                    // The block in a root that ends is the root's finding.
                    of_graph.retain(|s| s.node != *node || s.place != named.place || !is_root);
                    of_graph.push(Suspect {
                        shift: named.shift,
                        ..Suspect::of(*node, named.place, named.address, Rc::clone(&ended))
                    });
                }
            }
            of_graph.sort_by_key(|suspect| suspect.node);
        }
    }

    /// Whether a node names memory that is gone, and not only unregistered: then the finding says
    /// so.
    pub fn names_ended(&self, exec: GraphExecId, node: u32) -> bool {
        let is_gone = |s: &Suspect| s.ended.memory.kind != Some(MemoryKind::RegisteredHost);
        self.suspects.get(&exec).is_some_and(|of| of.iter().any(|s| s.node == node && is_gone(s)))
    }

    /// Takes out the nodes of a graph that name memory which has ended; [`StaleGraphs::put`]
    /// returns them.
    #[inline]
    pub fn take(&mut self, exec: GraphExecId) -> Vec<Suspect> {
        if self.suspects.is_empty() { Vec::new() } else { self.suspects.remove(&exec).unwrap_or_default() }
    }

    /// See [`StaleGraphs::take`].
    pub fn put(&mut self, exec: GraphExecId, suspects: Vec<Suspect>) {
        self.suspects.insert(exec, suspects);
    }

    /// Whether a suspect was judged with the same memory in its place: then its finding, if it is
    /// one, has come again.
    pub fn came_again(&mut self, suspect: &Suspect, now: AllocationId) -> bool {
        let Some((_, finding)) = suspect.judged.filter(|(then, _)| *then == now) else { return false };
        if let Some(raw) = finding.and_then(|at| self.list.get_mut(at)) {
            raw.count += 1;
        }
        true
    }

    /// A suspect was judged: it is none, or a finding.
    pub fn judged(&mut self, suspect: &mut Suspect, now: AllocationId, raw: Option<RawStale>) {
        suspect.judged = Some((now, raw.and_then(|raw| self.add(raw))));
    }

    fn add(&mut self, raw: RawStale) -> Option<usize> {
        let site = &raw.access.site;
        let key = (site.stack, site.kernel, raw.place, raw.ended.memory.stack, raw.ended.site.stack);
        if let Some(&at) = self.index.get(&key) {
            let known = &mut self.list[at];
            let count = known.count + raw.count;
            if raw.confidence > known.confidence {
                *known = raw;
            }
            known.count = count;
            return Some(at);
        }
        if self.list.len() >= MOST {
            self.dropped += raw.count;
            return None;
        }
        self.index.insert(key, self.list.len());
        self.list.push(raw);
        Some(self.list.len() - 1)
    }

    /// Where a graph was instantiated.
    pub fn instantiated(&self, exec: GraphExecId) -> StackId {
        self.instantiated.get(&exec).copied().unwrap_or(StackId::NONE)
    }

    /// The findings.
    pub fn all(&self) -> &[RawStale] {
        &self.list
    }

    /// Occurrences of findings that were not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Records are missing: what lives, and what graphs name, is told again.
    pub fn forget_all(&mut self) {
        let Self { index, list, dropped, .. } = std::mem::take(self);
        *self = Self { index, list, dropped, ..Self::default() };
    }
}

impl Suspect {
    fn of(node: u32, place: NodePlace, address: u64, ended: Rc<Ended>) -> Self {
        Self { node, place, address, shift: 0, ended, judged: None }
    }
}
