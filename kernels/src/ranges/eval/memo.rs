//! What an evaluation remembers of nodes and blocks.
//!
//! Owns the tables. Each result carries what it rests on that is not settled yet, so that
//! [`Eval::solved`](super::Eval::solved) and [`Eval::ev_pred`](super::Eval::ev_pred) can forget it.

use super::conditions::Cond;
use crate::ir::BlockId;
use crate::ranges::domain::affine::AffineForm;
use crate::ranges::domain::constraints::ConstraintSet;
use crate::ranges::domain::int::Int;
use crate::ranges::graph::node::NodeId;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The depth of a result that depends on no unsolved phi.
pub(crate) const CLEAN: u32 = u32::MAX;

/// What a result rests on that is not settled yet: an unsolved phi, for which a symbol stands, or a
/// predicate under evaluation, which counts as unknown meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unsettled {
    /// The depth of the outermost unsolved phi, or [`CLEAN`].
    pub(crate) phi: u32,
    /// The level of the outermost predicate under evaluation, or [`CLEAN`].
    pub(crate) pred: u32,
}

impl Unsettled {
    /// The result stands.
    pub(crate) const NOTHING: Unsettled = Unsettled { phi: CLEAN, pred: CLEAN };

    pub(crate) fn pred(level: u32) -> Unsettled {
        Unsettled { phi: CLEAN, pred: level }
    }

    /// What two results rest on together.
    pub(crate) fn and(self, o: Unsettled) -> Unsettled {
        Unsettled { phi: self.phi.min(o.phi), pred: self.pred.min(o.pred) }
    }
}

/// Results by the number of a node or block, each with what it rests on.
pub(crate) struct NodeTable<T> {
    /// Index into `kept` plus one; 0: nothing is kept.
    at: Vec<u32>,
    kept: Vec<(T, Unsettled)>,
}

impl<T> Default for NodeTable<T> {
    fn default() -> Self {
        NodeTable { at: Vec::new(), kept: Vec::new() }
    }
}

impl<T> NodeTable<T> {
    pub(super) fn get(&self, n: u32) -> Option<&(T, Unsettled)> {
        let k = self.at.get(n as usize).copied()?;
        self.kept.get((k as usize).wrapping_sub(1))
    }

    pub(super) fn insert(&mut self, n: u32, v: T, t: Unsettled) {
        let n = n as usize;
        if self.at.len() <= n {
            self.at.resize(n + 1, 0);
        }
        match self.at[n] {
            0 => {
                self.kept.push((v, t));
                self.at[n] = self.kept.len() as u32;
            }
            k => self.kept[k as usize - 1] = (v, t),
        }
    }

    pub(super) fn remove(&mut self, n: u32) {
        if let Some(k) = self.at.get_mut(n as usize) {
            *k = 0;
        }
    }
}

/// Everything that an evaluation remembers.
#[derive(Default)]
pub(crate) struct EvalMemo {
    pub(super) values: NodeTable<AffineForm>,
    pub(super) preds: NodeTable<Cond>,
    pub(super) ctx: NodeTable<Rc<ConstraintSet>>,
    pub(super) reach: NodeTable<bool>,
    /// Conditions of bits of words; only those that rest on nothing unsettled.
    pub(super) bits: FxHashMap<(NodeId, u32), Cond>,
}

/// What is known of a value that a loop carries round.
#[derive(Clone, Copy)]
pub(crate) enum Carried {
    /// It is what it was before the loop.
    Same,
    /// It is a number within these bounds.
    Within(Int, Int),
    Nothing,
}

/// What was found out about values that loops carry round.
#[derive(Default)]
pub(crate) struct CarriedRanges {
    pub(crate) known: FxHashMap<NodeId, Carried>,
    pub(crate) failures: FxHashMap<NodeId, u8>,
    /// How often a 64-bit value was not known when its half was asked for.
    pub(crate) unknown_wholes: FxHashMap<NodeId, u8>,
    /// Phis that are being tried.
    pub(crate) busy: Vec<NodeId>,
    pub(crate) turns: u32,
}

/// Something remembered that rests on what is not settled yet, and is to be forgotten.
#[derive(Clone, Copy)]
pub(crate) enum MemoSlot {
    Value(NodeId),
    Pred(NodeId),
    Ctx(BlockId),
    Reach(BlockId),
}
