//! What an evaluation remembers of nodes and blocks, and what that rests on.
//!
//! Owns [`Scope`]. Each result carries what it rests on that is not settled yet, so that
//! [`Scope::solved`] and [`Scope::end_pred`] can forget it.

use crate::ir::BlockId;
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::condition::Cond;
use crate::ranges::domain::constraints::ConstraintSet;
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
struct NodeTable<T> {
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
    #[inline]
    fn get(&self, n: u32) -> Option<&(T, Unsettled)> {
        let k = self.at.get(n as usize).copied()?;
        self.kept.get((k as usize).wrapping_sub(1))
    }

    fn insert(&mut self, n: u32, v: T, t: Unsettled) {
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

    fn remove(&mut self, n: u32) {
        if let Some(k) = self.at.get_mut(n as usize) {
            *k = 0;
        }
    }
}

/// Everything that an evaluation remembers.
#[derive(Default)]
pub(crate) struct EvalMemo {
    values: NodeTable<AffineForm>,
    preds: NodeTable<Cond>,
    guards: NodeTable<Rc<ConstraintSet>>,
    reach: NodeTable<bool>,
    /// Conditions of bits of words; only those that rest on nothing unsettled.
    pub(crate) bits: FxHashMap<(NodeId, u32), Cond>,
}

/// Something remembered that rests on what is not settled yet, and is to be forgotten.
#[derive(Clone, Copy)]
enum MemoSlot {
    Value(NodeId),
    Pred(NodeId),
    Guards(BlockId),
    Reach(BlockId),
}

/// Results, and what is being computed meanwhile.
///
/// A trip count is solved in a scope entered for it ([`Scope::enter`]): what is found there rests
/// on numbers that are not proved yet, and ends with it.
pub(crate) struct Scope {
    pub(crate) memo: EvalMemo,
    /// What was remembered while it rested on something unsettled, oldest first.
    unsettled: Vec<MemoSlot>,
    /// Phis that are being solved: the symbol in their place, and their depth.
    pub(crate) solving: FxHashMap<NodeId, (AtomId, u32)>,
    /// Number of unsolved phis.
    pub(crate) depth: u32,
    /// What the current result rests on that is not settled.
    touched: Unsettled,
    /// The predicates under evaluation, outermost first: was one asked for meanwhile?
    busy_preds: Vec<bool>,
    /// Blocks whose guards are being computed, outermost first.
    busy_guards: Vec<BlockId>,
    /// Index of the outermost of them that was asked for meanwhile.
    guards_cut: usize,
}

impl Default for Scope {
    fn default() -> Self {
        Scope {
            memo: EvalMemo::default(),
            unsettled: Vec::new(),
            solving: FxHashMap::default(),
            depth: 0,
            touched: Unsettled::NOTHING,
            busy_preds: Vec::new(),
            busy_guards: Vec::new(),
            guards_cut: usize::MAX,
        }
    }
}

impl Scope {
    /// Begins a scope in which nothing is remembered yet; returns the one around it.
    pub(crate) fn enter(&mut self) -> Scope {
        let inner = Scope {
            depth: self.depth,
            touched: self.touched,
            busy_preds: std::mem::take(&mut self.busy_preds),
            guards_cut: self.guards_cut,
            ..Scope::default()
        };
        std::mem::replace(self, inner)
    }

    /// Goes back to the scope around this one. What was found in this one is forgotten.
    pub(crate) fn leave(&mut self, outer: Scope) {
        let inner = std::mem::replace(self, outer);
        self.busy_preds = inner.busy_preds;
    }

    /// Forgets all results.
    pub(crate) fn forget_all(&mut self) {
        self.memo = EvalMemo::default();
        self.unsettled = Vec::new();
    }

    /// Forgets the values of nodes.
    pub(crate) fn forget_values(&mut self) {
        self.memo.values = NodeTable::default();
    }

    // ---- what results rest on

    /// Begins a result; returns what the one around it rests on so far.
    #[inline]
    pub(crate) fn begin_result(&mut self) -> Unsettled {
        std::mem::replace(&mut self.touched, Unsettled::NOTHING)
    }

    /// Ends a result, on which the one around it rests; returns what it rests on.
    #[inline]
    pub(crate) fn end_result(&mut self, around: Unsettled) -> Unsettled {
        let t = self.touched;
        self.touched = around.and(t);
        t
    }

    /// The current result rests on what a remembered one rests on.
    #[inline]
    fn rest_on(&mut self, t: Unsettled) {
        self.touched = self.touched.and(t);
        if let Some(asked) = self.busy_preds.get_mut(t.pred as usize) {
            *asked = true;
        }
    }

    #[inline]
    fn note(&mut self, t: Unsettled, slot: MemoSlot) {
        if t != Unsettled::NOTHING {
            self.unsettled.push(slot);
        }
    }

    /// Forgets what was remembered since then and rests on something unsettled.
    fn forget(&mut self, mark: usize) {
        while self.unsettled.len() > mark {
            match self.unsettled.pop() {
                Some(MemoSlot::Value(n)) => self.memo.values.remove(n.0),
                Some(MemoSlot::Pred(n)) => self.memo.preds.remove(n.0),
                Some(MemoSlot::Guards(b)) => self.memo.guards.remove(b.0),
                Some(MemoSlot::Reach(b)) => self.memo.reach.remove(b.0),
                None => break,
            }
        }
    }

    // ---- unsolved phis

    /// The symbol of a phi that is being solved, on which the current result rests from now on.
    pub(crate) fn symbol(&mut self, phi: NodeId) -> Option<AtomId> {
        let (s, depth) = self.solving.get(&phi).copied()?;
        self.touched.phi = self.touched.phi.min(depth);
        Some(s)
    }

    /// Starts to treat a phi as unsolved, with a symbol in its place; returns what
    /// [`Scope::solved`] needs.
    pub(crate) fn unsolved(&mut self, phi: NodeId, symbol: AtomId) -> usize {
        self.depth += 1;
        self.solving.insert(phi, (symbol, self.depth));
        self.unsettled.len()
    }

    /// Forgets everything that was computed with the innermost unsolved symbol.
    pub(crate) fn solved(&mut self, phi: NodeId, mark: usize) {
        self.solving.remove(&phi);
        self.forget(mark);
        self.depth -= 1;
        if self.touched.phi > self.depth {
            self.touched.phi = CLEAN;
        }
    }

    // ---- results of nodes and blocks

    /// The value of a node, if it is remembered.
    #[inline]
    pub(crate) fn value(&mut self, n: NodeId) -> Option<AffineForm> {
        let (v, t) = self.memo.values.get(n.0)?;
        let (v, t) = (v.clone(), *t);
        self.rest_on(t);
        Some(v)
    }

    pub(crate) fn remember_value(&mut self, n: NodeId, v: &AffineForm, t: Unsettled) {
        self.note(t, MemoSlot::Value(n));
        self.memo.values.insert(n.0, v.clone(), t);
    }

    /// The truth of a predicate, if it is remembered.
    #[inline]
    pub(crate) fn pred(&mut self, n: NodeId) -> Option<Cond> {
        let (v, t) = self.memo.preds.get(n.0)?;
        let (v, t) = (v.clone(), *t);
        self.rest_on(t);
        Some(v)
    }

    /// Begins the evaluation of a predicate. A predicate that depends on itself is unknown
    /// meanwhile: the test at the top of a loop compares a counter whose step is made under that
    /// test. Returns what [`Scope::end_pred`] needs.
    pub(crate) fn begin_pred(&mut self, n: NodeId) -> BusyPred {
        let (level, mark) = (self.busy_preds.len() as u32, self.unsettled.len());
        self.busy_preds.push(false);
        self.memo.preds.insert(n.0, Cond::Unknown, Unsettled::pred(level));
        BusyPred { level, mark }
    }

    /// A predicate is known. What was found while it was asked for lacks it, and is forgotten.
    pub(crate) fn end_pred(&mut self, n: NodeId, busy: BusyPred, v: &Cond, mut t: Unsettled) {
        if self.busy_preds.pop() == Some(true) {
            self.forget(busy.mark);
        }
        // (Nothing rests on a predicate further in: those are known.)
        for rests in [&mut t, &mut self.touched] {
            if rests.pred == busy.level {
                rests.pred = CLEAN;
            }
        }
        self.note(t, MemoSlot::Pred(n));
        self.memo.preds.insert(n.0, v.clone(), t);
    }

    /// The guards of a block, if they are remembered.
    #[inline]
    pub(crate) fn guards(&mut self, b: BlockId) -> Option<Rc<ConstraintSet>> {
        let (v, t) = self.memo.guards.get(b.0)?;
        let (v, t) = (v.clone(), *t);
        self.rest_on(t);
        Some(v)
    }

    /// Begins to compute the guards of a block; `None` while that goes on already.
    pub(crate) fn begin_guards(&mut self, b: BlockId) -> Option<BusyGuards> {
        if let Some(k) = self.busy_guards.iter().position(|x| *x == b) {
            self.guards_cut = self.guards_cut.min(k);
            return None;
        }
        let level = self.busy_guards.len();
        self.busy_guards.push(b);
        Some(BusyGuards { level, cut_before: std::mem::replace(&mut self.guards_cut, usize::MAX) })
    }

    /// The guards of a block are known. Those that lack what an outer block is still computing are
    /// not kept.
    pub(crate) fn end_guards(&mut self, b: BlockId, busy: BusyGuards, v: &Rc<ConstraintSet>, t: Unsettled) {
        self.busy_guards.pop();
        let cut = self.guards_cut;
        if cut >= busy.level {
            self.note(t, MemoSlot::Guards(b));
            self.memo.guards.insert(b.0, v.clone(), t);
            self.guards_cut = busy.cut_before;
        } else {
            self.guards_cut = busy.cut_before.min(cut);
        }
    }

    /// Whether a block may execute, if it is remembered.
    #[inline]
    pub(crate) fn reach(&mut self, b: BlockId) -> Option<bool> {
        let (v, t) = *self.memo.reach.get(b.0)?;
        self.rest_on(t);
        Some(v)
    }

    pub(crate) fn remember_reach(&mut self, b: BlockId, v: bool, t: Unsettled) {
        self.note(t, MemoSlot::Reach(b));
        self.memo.reach.insert(b.0, v, t);
    }
}

/// A predicate under evaluation.
pub(crate) struct BusyPred {
    level: u32,
    mark: usize,
}

/// A block whose guards are being computed.
pub(crate) struct BusyGuards {
    level: usize,
    cut_before: usize,
}
