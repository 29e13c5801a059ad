//! Evaluation of a prepared kernel for one launch: every node becomes an affine form with concrete
//! coefficients.
//!
//! Owns [`Eval`], its budget, and the memos of values, predicates, guards and reachability. The
//! other files of this folder are parts of it, one for each kind of question: `value` dispatches by
//! node kind; `no_wrap`, `arithmetic`, `bitwise`, `indexed_loads` and `other_threads` own
//! operations; `joins` and `loops` own control flow; `conditions` and
//! `predicate_masks` own predicates; `bounds` and `relevance` own the search for bounds; `memo`
//! holds what is remembered. They call each other, for the value of a node may need the guard of
//! its block, which needs values in turn. `extent` adds the step from a value to bytes, and is
//! called by none of them.
//!
//! # The domain, and why the result is an upper bound
//!
//! A form `sum(c_i * x_i) + c` over *atoms* is congruent to the register, modulo 2^32 or 2^64.
//! Atoms are thread and block indices, completed iterations of loops, floor quotients, joins, and
//! opaque values. Each atom has a box (an interval that holds in every execution of the block in
//! which it is made) and constraints (forms that are never positive). Guards on the dominator path
//! of a block are further constraints, true whenever the block executes. Additions need no
//! assumption about overflow, for a form is only a congruence. Some operations need the *number*:
//! widening, comparing, shifting right, dividing. For these the form is bounded under the guards of
//! the block that does the operation. Only when the bounds fit the type is the form taken for the
//! number. Otherwise the result is a fresh opaque atom.
//!
//! Upper bounds of a form come from the boxes, or from adding a multiple of a constraint that
//! cancels an atom (`f <= f - r*F` for `F <= 0`, `r >= 0`), to a depth of three. Each step keeps an
//! upper bound, so their minimum is one. Opaque atoms count as unbounded in the final bound of an
//! address, unless a guard clamps them.
//!
//! Pointer words stay symbolic atoms with a box of one point, so that the base survives in the
//! result. What is done with their value (masks, products, comparisons), and with every other
//! number of the launch, is recorded on the tape (`domain/tape.rs`).
//!
//! # Assumptions
//!
//! R2UR operands are uniform. Loops whose only exit is `i != n`, with a step that divides the
//! distance, end. Local memory is not reached through generic stores. Grid, block and parameters
//! are as recorded.
//!
//! # Traps
//!
//! Each of these once made a wrong result possible.
//!
//! * A box computed under the guards of one block must not be shared with another block. Atoms with
//!   keys by content carry their block, or use no guards.
//! * Values computed while a symbol stands for the unsolved phi of a loop must not survive in memos
//!   (see [`Eval::solved`]).
//! * A fact from a guard must not be applied to a value of an earlier iteration
//!   (`across_iterations` in `graph/build.rs`).
//! * An undefined arm of a join may be dropped only because it was never written.
//! * What is found while a predicate is under evaluation lacks that predicate (see
//!   [`Eval::ev_pred`]).

mod arithmetic;
mod bitwise;
mod bounds;
pub(super) mod conditions;
mod indexed_loads;
mod irreducible;
mod joins;
mod loops;
mod memo;
mod no_wrap;
mod other_threads;
mod predicate_masks;
mod relevance;
mod value;

use crate::effects::LaunchArgs;
use crate::ir::cfg::Cfg;
use crate::ir::{BlockId, Reason};
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::{Atom, AtomKey, AtomKind};
use crate::ranges::domain::constraints::{ConstraintByForm, ConstraintSet, VisitMarks};
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::conditions::{Branch, Cond};
use crate::ranges::graph::node::{Graph, NodeId};
use memo::{CLEAN, CarriedRanges, EvalMemo, MemoSlot, NodeTable, Unsettled};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Nesting of value evaluation before giving up.
const MAX_NESTING: u32 = 180;

/// How far a loop's trip count is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LoopState {
    New,
    Solving,
    Done,
}

/// One evaluation.
pub(super) struct Eval<'g> {
    pub(crate) g: &'g Graph,
    pub(crate) cfg: &'g Cfg,
    /// The conditional branch at the end of each block.
    pub(crate) branches: &'g [Option<Branch>],
    pub(crate) launch: LaunchArgs<'g>,
    /// An axis and the block index along it, when it is fixed (`per_block`).
    pub(crate) block: Option<(u8, u32)>,
    pub(crate) atoms: Vec<Atom>,
    /// Atoms by key. (Boxed, because most keys are larger than what they lead to.)
    pub(crate) keys: FxHashMap<Box<AtomKey>, AtomId>,
    /// All constraints, by form.
    pub(crate) cons: FxHashSet<ConstraintByForm>,
    pub(crate) con_count: u32,
    /// How often boxes or constraints of atoms were changed after others may have used them.
    pub(crate) epoch: u32,
    pub(crate) seen: RefCell<VisitMarks>,
    /// No constraints.
    pub(crate) none: Rc<ConstraintSet>,
    /// Keys made while a trip count is being solved (they may be too wide, or assume too much).
    pub(crate) key_log: Option<Vec<AtomKey>>,
    /// What `carried_ranges` found out.
    pub(crate) carried: CarriedRanges,
    pub(crate) memo: EvalMemo,
    /// What was remembered while it rested on something unsettled, oldest first.
    pub(crate) temp: Vec<MemoSlot>,
    /// Phis that are being solved: the symbol in their place, and their depth.
    pub(crate) solving: FxHashMap<NodeId, (AtomId, u32)>,
    /// Number of unsolved phis.
    pub(crate) depth: u32,
    /// What the current result rests on that is not settled.
    pub(crate) touched: Unsettled,
    /// The predicates under evaluation, outermost first: was one asked for meanwhile?
    pub(crate) busy_preds: Vec<bool>,
    nesting: u32,
    /// While a trip count is solved: forms that were taken for numbers without proof, with the
    /// ranges of their types.
    pub(crate) assumed: Option<Vec<(AffineForm, Int, Int)>>,
    pub(crate) loops: Vec<LoopState>,
    /// The iteration counter of each loop.
    pub(crate) counters: Vec<Option<AtomId>>,
    /// Loops whose conditions are captured in full by the bounds of their counter.
    pub(crate) exact_trip: Vec<bool>,
    /// Blocks whose guards are being computed, outermost first.
    pub(crate) ctx_busy: Vec<BlockId>,
    /// Index of the outermost of them that was asked for meanwhile.
    pub(crate) ctx_cut: usize,
    /// Loads from local memory that are being evaluated.
    pub(crate) local_busy: Vec<NodeId>,
    /// Bits that are passed round loops whose bodies are being evaluated.
    pub(crate) busy_bits: Vec<(NodeId, u32)>,
    /// Elimination steps of the current bound.
    pub(crate) steps: Cell<u32>,
    /// What the evaluation has spent of its budget.
    pub(crate) total: Cell<u32>,
    /// What delinearization has spent of its own budget.
    pub(crate) delinearization_spent: u32,
    /// `total` beyond which everything is unknown.
    limit: u32,
    /// Blocks for which all decisions on the way are captured by constraints.
    pub(crate) paths: FxHashSet<BlockId>,
}

/// The budget of one evaluation, in bounds and steps. Beyond it everything that is left is unknown.
const MAX_TOTAL: u32 = 150_000;
/// What each access may still spend after that, so that complicated conditions do not cost the
/// range of a simple address.
const RESERVE: u32 = 4_000;
/// All reserves of one evaluation.
const MAX_RESERVE: u32 = 80_000;

impl<'g> Eval<'g> {
    pub(crate) fn new(g: &'g Graph, cfg: &'g Cfg, branches: &'g [Option<Branch>], launch: LaunchArgs<'g>) -> Self {
        Eval {
            g,
            cfg,
            branches,
            launch,
            block: None,
            atoms: Vec::new(),
            keys: FxHashMap::default(),
            cons: FxHashSet::default(),
            con_count: 0,
            epoch: 0,
            seen: RefCell::default(),
            none: Rc::default(),
            key_log: None,
            carried: CarriedRanges::default(),
            memo: EvalMemo::default(),
            temp: Vec::new(),
            solving: FxHashMap::default(),
            depth: 0,
            touched: Unsettled::NOTHING,
            busy_preds: Vec::new(),
            nesting: 0,
            assumed: None,
            loops: vec![LoopState::New; cfg.loops.len()],
            counters: vec![None; cfg.loops.len()],
            exact_trip: vec![false; cfg.loops.len()],
            ctx_busy: Vec::new(),
            ctx_cut: usize::MAX,
            local_busy: Vec::new(),
            busy_bits: Vec::new(),
            steps: Cell::new(0),
            total: Cell::new(0),
            delinearization_spent: 0,
            limit: MAX_TOTAL,
            paths: FxHashSet::default(),
        }
    }

    /// Has the whole evaluation used up its budget?
    pub(crate) fn exhausted(&self) -> bool {
        self.total.get() > self.limit
    }

    /// Is half of the budget used up?
    pub(crate) fn half_spent(&self) -> bool {
        self.total.get() > MAX_TOTAL / 2
    }

    /// Grants an access its reserve when the budget is used up. Values made since then are
    /// forgotten; what was found out about conditions stays, so that they do not use up the reserve
    /// too.
    pub(crate) fn reserve(&mut self) {
        if self.exhausted() && self.total.get() < MAX_TOTAL + MAX_RESERVE {
            self.memo.values = NodeTable::default();
            self.limit = self.total.get() + RESERVE;
        }
    }

    /// Ends the reserve of the access before.
    pub(crate) fn end_reserve(&mut self) {
        self.limit = MAX_TOTAL;
    }

    // ---- atoms

    pub(crate) fn a(&self, a: AtomId) -> &Atom {
        &self.atoms[a.0 as usize]
    }

    pub(crate) fn new_atom(
        &mut self,
        lo: impl Into<Int>,
        hi: impl Into<Int>,
        opaque: Option<Reason>,
        home: BlockId,
    ) -> AtomId {
        let (lo, hi) = (lo.into(), hi.into());
        self.atoms.push(Atom {
            lo,
            hi,
            kind: AtomKind::Plain,
            opaque,
            home,
            deps: SmallVec::new(),
            cons: Vec::new(),
            alts: None,
            loaded: None,
            floor: None,
            choice: false,
        });
        AtomId(self.atoms.len() as u32 - 1)
    }

    pub(crate) fn keyed(&mut self, key: AtomKey, make: impl FnOnce(&mut Self) -> AtomId) -> AtomId {
        if let Some(a) = self.keys.get(&key) {
            return *a;
        }
        let a = make(self);
        if let Some(log) = &mut self.key_log
            && !matches!(key, AtomKey::Special(_) | AtomKey::Param(_) | AtomKey::Symbol(_) | AtomKey::ParamAddress(_))
        {
            log.push(key.clone());
        }
        self.keys.insert(Box::new(key), a);
        a
    }

    pub(crate) fn opaque(&mut self, key: AtomKey, why: Reason, bits: u32, home: BlockId) -> AffineForm {
        let hi = Int::new((1 << bits.min(64)) - 1);
        AffineForm::atom(self.keyed(key, |e| e.new_atom(0, hi, Some(why), home)))
    }

    pub(crate) fn depends(&self, fs: &[&AffineForm]) -> SmallVec<[AtomId; 3]> {
        fs.iter().flat_map(|f| f.terms.iter().map(|t| t.0)).collect()
    }

    /// Why a form is unknown, if it is.
    pub(crate) fn why(&self, f: &AffineForm) -> Option<Reason> {
        f.terms
            .iter()
            .find_map(|t| self.a(t.0).opaque)
            .or_else(|| f.terms.iter().any(|t| self.a(t.0).hi >= INF || self.a(t.0).lo <= -INF).then_some(Reason::Loop))
    }

    // ---- memo

    fn remember(&mut self, t: Unsettled, slot: MemoSlot, put: impl FnOnce(&mut EvalMemo)) {
        if t != Unsettled::NOTHING {
            self.temp.push(slot);
        }
        put(&mut self.memo);
    }

    /// Starts to treat something as unsolved; returns what [`Eval::solved`] needs.
    pub(crate) fn unsolved(&mut self) -> usize {
        self.depth += 1;
        self.temp.len()
    }

    /// Forgets everything that was computed with the innermost unsolved symbol.
    pub(crate) fn solved(&mut self, mark: usize) {
        self.forget(mark);
        self.depth -= 1;
        if self.touched.phi > self.depth {
            self.touched.phi = CLEAN;
        }
    }

    /// Forgets what was remembered since then and rests on something unsettled.
    fn forget(&mut self, mark: usize) {
        while self.temp.len() > mark {
            match self.temp.pop() {
                Some(MemoSlot::Value(n)) => self.memo.values.remove(n.0),
                Some(MemoSlot::Pred(n)) => self.memo.preds.remove(n.0),
                Some(MemoSlot::Ctx(b)) => self.memo.ctx.remove(b.0),
                Some(MemoSlot::Reach(b)) => self.memo.reach.remove(b.0),
                None => break,
            }
        }
    }

    /// Runs `f`, and says on what unsettled its result rests.
    pub(crate) fn tracked<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> (T, Unsettled) {
        let before = std::mem::replace(&mut self.touched, Unsettled::NOTHING);
        let v = f(self);
        let t = self.touched;
        self.touched = before.and(t);
        (v, t)
    }

    /// Runs `f`, and says whether its result rests on nothing unsettled.
    pub(crate) fn is_clean<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let (v, t) = self.tracked(f);
        (v, t == Unsettled::NOTHING)
    }

    /// The current result rests on what a remembered one rests on.
    fn rest_on(&mut self, t: Unsettled) {
        self.touched = self.touched.and(t);
        if let Some(asked) = self.busy_preds.get_mut(t.pred as usize) {
            *asked = true;
        }
    }

    /// Value of an integer node.
    pub(crate) fn ev(&mut self, n: NodeId) -> AffineForm {
        if let Some((v, t)) = self.memo.values.get(n.0) {
            let (v, t) = (v.clone(), *t);
            self.rest_on(t);
            return v;
        }
        let node = self.g.node(n);
        let (bits, home) = (node.width.bits(), node.home);
        if self.nesting > MAX_NESTING || self.exhausted() {
            return self.opaque(AtomKey::Node(n, 9), Reason::Budget, bits, home);
        }
        self.nesting += 1;
        let (v, t) = self.tracked(|e| e.value(n).norm(bits));
        self.nesting -= 1;
        self.remember(t, MemoSlot::Value(n), |m| m.values.insert(n.0, v.clone(), t));
        v
    }

    /// Truth of a predicate node.
    pub(crate) fn ev_pred(&mut self, n: NodeId) -> Cond {
        if let Some((v, t)) = self.memo.preds.get(n.0) {
            let (v, t) = (v.clone(), *t);
            self.rest_on(t);
            return v;
        }
        if self.nesting > MAX_NESTING || self.exhausted() {
            return Cond::Unknown;
        }
        // A predicate that depends on itself is unknown meanwhile: the test at the top of a loop
        // compares a counter whose step is made under that test. What was found so lacks the test,
        // and is forgotten when the predicate is known.
        let (level, mark) = (self.busy_preds.len() as u32, self.temp.len());
        self.busy_preds.push(false);
        self.memo.preds.insert(n.0, Cond::Unknown, Unsettled::pred(level));
        self.nesting += 1;
        let (v, mut t) = self.tracked(|e| e.truth(n));
        self.nesting -= 1;
        if self.busy_preds.pop() == Some(true) {
            self.forget(mark);
        }
        // (Nothing rests on a predicate further in: those are known.)
        for rests in [&mut t, &mut self.touched] {
            if rests.pred == level {
                rests.pred = CLEAN;
            }
        }
        self.remember(t, MemoSlot::Pred(n), |m| m.preds.insert(n.0, v.clone(), t));
        v
    }

    /// Constraints that hold whenever block `b` executes.
    pub(crate) fn ctx(&mut self, b: BlockId) -> Rc<ConstraintSet> {
        if let Some((v, t)) = self.memo.ctx.get(b.0) {
            let (v, t) = (v.clone(), *t);
            self.rest_on(t);
            return v;
        }
        if b.0 == 0 {
            return self.none.clone();
        }
        if let Some(k) = self.ctx_busy.iter().position(|x| *x == b) {
            self.ctx_cut = self.ctx_cut.min(k);
            return self.none.clone();
        }
        let level = self.ctx_busy.len();
        self.ctx_busy.push(b);
        let before = std::mem::replace(&mut self.ctx_cut, usize::MAX);
        let (v, t) = self.tracked(|e| e.dominator_facts(b));
        self.ctx_busy.pop();
        let v = Rc::new(ConstraintSet::new(v));
        // A context that lacks what an outer one is still computing must not be kept.
        let cut = self.ctx_cut;
        if cut >= level {
            self.remember(t, MemoSlot::Ctx(b), |m| m.ctx.insert(b.0, v.clone(), t));
            self.ctx_cut = before;
        } else {
            self.ctx_cut = before.min(cut);
        }
        v
    }

    /// May block `b` execute?
    pub(crate) fn reachable(&mut self, b: BlockId) -> bool {
        if let Some((v, t)) = self.memo.reach.get(b.0) {
            let (v, t) = (*v, *t);
            self.rest_on(t);
            return v;
        }
        if b.0 == 0 {
            return true;
        }
        let (v, t) = self.tracked(|e| e.may_reach(b));
        self.remember(t, MemoSlot::Reach(b), |m| m.reach.insert(b.0, v, t));
        v
    }
}
