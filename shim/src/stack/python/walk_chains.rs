//! The Python walks of one thread, as chains of the frames that they met.
//!
//! Owns the chains; why following one is as good as walking is argued in
//! [`crate::stack::walk_memo`]. Everything that a walk reads of a frame is one value here
//! ([`FrameFields`]); where it reads next is the address of the caller's frame, which is part of
//! that value.
//!
//! A node is a frame and what was read of it, with the node of the caller's frame: chains that end
//! alike share their outer part, so a training loop's frames are there once, not once for each
//! operator. Where a frame is not what the chain says, an edge leads to the chain that was like
//! this one up to there and had this frame.

use super::FrameFields;
use crate::stack::edges::Edges;
use crate::stack::walk::new_walk_id;

const NODES: usize = 8192;
/// In the place of a node: none.
const NONE: u16 = 0;
/// Edges that lead from a caller's node to that of a frame begin here: chains are found by them
/// when they are added.
const FROM_CALLER: u16 = 1 << 15;

/// A frame of a chain.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct FrameNode {
    frame: u64,
    seen: FrameFields,
    /// Number of the chain that begins here; 0: none does.
    id: u32,
    /// The caller's; [`NONE`]: the walk ended here.
    caller: u16,
}

/// The chains. All zeros: none.
pub struct WalkChains {
    /// Nodes used. The first is none.
    len: usize,
    edges: Edges,
    nodes: [FrameNode; NODES],
}

/// How far a walk is known: the chain and the node that it is at.
#[derive(Clone, Copy)]
pub struct ChainCursor {
    chain: u16,
    level: u16,
    node: u16,
}

impl WalkChains {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.len = 1;
        self.edges.clear();
    }

    /// A walk begins.
    #[inline]
    pub fn begin(&mut self) -> ChainCursor {
        if self.edges.is_new() {
            self.clear();
        }
        ChainCursor { chain: NONE, level: 0, node: NONE }
    }

    /// The walk has read this frame. False: no kept walk has it after the frames before it, and the
    /// cursor stays.
    #[inline]
    pub(super) fn meet(&self, place: &mut ChainCursor, frame: u64, seen: &FrameFields) -> bool {
        let node = &self.nodes[usize::from(place.node)];
        if node.frame != frame || node.seen != *seen {
            let Some([chain, node]) = self.edges.get(place.chain, seen.hash(frame, place.level)) else { return false };
            let other = &self.nodes[usize::from(node)];
            if other.frame != frame || other.seen != *seen {
                return false;
            }
            (place.chain, place.node) = (chain, node);
        }
        true
    }

    /// On to the caller. When the walk has ended: its number.
    #[inline]
    pub fn next(&self, place: &mut ChainCursor) -> Option<u32> {
        let node = &self.nodes[usize::from(place.node)];
        (place.node, place.level) = (node.caller, place.level + 1);
        (node.caller == NONE).then(|| self.nodes[usize::from(place.chain)].id)
    }

    /// To keep a walk that was known up to this place.
    pub fn keep(&mut self, place: ChainCursor) -> ChainBuilder<'_> {
        let next = self.len;
        ChainBuilder { chains: self, place, next }
    }

    fn find_under(&self, caller: u16, node: &FrameNode) -> Option<u16> {
        let [found, _] = self.edges.get(FROM_CALLER | caller, node.seen.hash(node.frame, 0))?;
        let other = &self.nodes[usize::from(found)];
        (other.frame == node.frame && other.seen == node.seen && other.caller == caller).then_some(found)
    }
}

/// A walk that is to be kept: its nodes are put down one after the other, innermost first.
pub struct ChainBuilder<'a> {
    chains: &'a mut WalkChains,
    place: ChainCursor,
    next: usize,
}

impl ChainBuilder<'_> {
    /// The walk has seen this frame.
    pub(super) fn note(&mut self, frame: u64, seen: FrameFields) {
        if let Some(node) = self.chains.nodes.get_mut(self.next) {
            *node = FrameNode { frame, seen, id: 0, caller: NONE };
            self.next += 1;
        }
    }

    /// The walk is over: its number, if it is kept.
    pub fn end(self) -> Option<u32> {
        let Self { chains, place, next } = self;
        let (first, level) = (chains.len, usize::from(place.level));
        if next < NODES {
            if next - first <= level {
                return None;
            }
            let id = new_walk_id()?;
            if let Some(kept) = chains.add(first..next, place, id) {
                return Some(kept);
            }
        }
        chains.clear();
        None
    }
}

impl WalkChains {
    /// Ties the nodes put down together, as far as they are new, and makes them a chain of this
    /// number, unless it has one. `None`: there is no room for that.
    fn add(&mut self, nodes: core::ops::Range<usize>, place: ChainCursor, id: u32) -> Option<u32> {
        let at_place = self.nodes[nodes.start + usize::from(place.level)];
        let (mut caller, mut end) = (NONE, nodes.end);
        while let Some(last) = self.nodes[nodes.start..end].last()
            && let Some(found) = self.find_under(caller, last)
        {
            (caller, end) = (found, end - 1);
        }
        for index in (nodes.start..end).rev() {
            let node = &mut self.nodes[index];
            node.caller = caller;
            self.edges.put(FROM_CALLER | caller, node.seen.hash(node.frame, 0), [index as u16, 0])?;
            caller = index as u16;
        }
        self.len = end;
        let chain = caller;
        let mut node = chain;
        for _ in 0..place.level {
            node = self.nodes[usize::from(node)].caller;
        }
        self.edges.put(place.chain, at_place.seen.hash(at_place.frame, place.level), [chain, node])?;
        let kept = &mut self.nodes[usize::from(chain)].id;
        if *kept == 0 {
            *kept = id;
        }
        Some(*kept)
    }
}
