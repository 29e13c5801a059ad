//! Evaluation of a prepared kernel for one launch: every node becomes an affine form with concrete
//! coefficients.
//!
//! Owns [`Eval`] and its four questions: the value of a node, the truth of a predicate, the guards
//! of a block, and whether a block may execute. Each looks in `state` (what is known so far). If
//! nothing is there, it calls the function that finds it. The other files of this folder hold these
//! functions, one file for each kind of question: `value` dispatches by node kind; `no_wrap`,
//! `arithmetic`, `bitwise`, `indexed_loads`, `shared_loads` and `other_lanes` own operations;
//! `joins`, `irreducible`, `recurrences`, `carried_ranges` and `trip_counts` own control flow;
//! `conditions` and `predicate_masks` own predicates. They take the evaluation as a parameter and
//! ask it in turn, for the value of a node may need the guard of its block, which needs values.
//! `extent` adds the step from a value to bytes, and is called by none of them.
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
//!   (see [`Scope::solved`]).
//! * A fact from a guard must not be applied to a value of an earlier iteration
//!   (`across_iterations` in `graph/build.rs`).
//! * An undefined arm of a join may be dropped only because it was never written.
//! * What is found while a predicate is under evaluation lacks that predicate (see
//!   [`Eval::ev_pred`]).

mod arithmetic;
mod bitwise;
mod carried_ranges;
pub(super) mod conditions;
mod indexed_loads;
mod irreducible;
mod joins;
pub(super) mod no_wrap;
mod other_lanes;
mod predicate_masks;
pub(super) mod recurrences;
mod shared_loads;
pub(super) mod state;
pub(super) mod trip_counts;
pub(super) mod value;

use crate::effects::LaunchArgs;
use crate::ir::cfg::Cfg;
use crate::ir::{BlockId, Reason};
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::AtomKey;
use crate::ranges::domain::condition::Cond;
use crate::ranges::domain::constraints::ConstraintSet;
use crate::ranges::domain::int::Int;
use crate::ranges::eval::conditions::{Branch, dominator_facts, may_reach, truth};
use crate::ranges::eval::state::atoms::Atoms;
use crate::ranges::eval::state::loop_table::LoopTable;
use crate::ranges::eval::state::scope::{Scope, Unsettled};
use crate::ranges::eval::value::value_of;
use crate::ranges::graph::node::{Graph, NodeId};
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// Nesting of value evaluation before giving up.
const MAX_NESTING: u32 = 180;

/// One evaluation.
pub(super) struct Eval<'g> {
    pub(crate) g: &'g Graph,
    pub(crate) cfg: &'g Cfg,
    /// The conditional branch at the end of each block.
    pub(crate) branches: &'g [Option<Branch>],
    pub(crate) launch: LaunchArgs<'g>,
    /// An axis and the block index along it, when it is fixed (`per_block`).
    pub(crate) block: Option<(u8, u32)>,
    pub(crate) atoms: Atoms,
    pub(crate) loops: LoopTable,
    pub(crate) scope: Scope,
    /// No constraints.
    pub(crate) none: Rc<ConstraintSet>,
    nesting: u32,
    /// While a trip count is solved: forms that were taken for numbers without proof, with the
    /// ranges of their types.
    pub(crate) assumed: Option<Vec<(AffineForm, Int, Int)>>,
    /// Loads from local memory that are being evaluated.
    pub(crate) local_busy: Vec<NodeId>,
    /// Bits that are passed round loops whose bodies are being evaluated.
    pub(crate) busy_bits: Vec<(NodeId, u32)>,
    /// Blocks for which all decisions on the way are captured by constraints.
    pub(crate) paths: FxHashSet<BlockId>,
}

impl<'g> Eval<'g> {
    pub(crate) fn new(g: &'g Graph, cfg: &'g Cfg, branches: &'g [Option<Branch>], launch: LaunchArgs<'g>) -> Self {
        Eval {
            g,
            cfg,
            branches,
            launch,
            block: None,
            atoms: Atoms::default(),
            loops: LoopTable::new(cfg.loops.len()),
            scope: Scope::default(),
            none: Rc::default(),
            nesting: 0,
            assumed: None,
            local_busy: Vec::new(),
            busy_bits: Vec::new(),
            paths: FxHashSet::default(),
        }
    }

    /// Grants an access its reserve when the budget is used up. Values made since then are
    /// forgotten; what was found out about conditions stays, so that they do not use up the reserve
    /// too.
    pub(crate) fn reserve(&mut self) {
        if self.atoms.budget.grant_reserve() {
            self.scope.forget_values();
        }
    }

    /// The atom of a key; makes it if there is none.
    pub(crate) fn keyed(&mut self, key: AtomKey, make: impl FnOnce(&mut Self) -> AtomId) -> AtomId {
        if let Some(a) = self.atoms.find(&key) {
            return a;
        }
        let a = make(self);
        self.atoms.name(key, a);
        a
    }

    /// A number of which nothing but its width is known.
    pub(crate) fn opaque(&mut self, key: AtomKey, why: Reason, bits: u32, home: BlockId) -> AffineForm {
        let hi = Int::new((1 << bits.min(64)) - 1);
        AffineForm::atom(self.keyed(key, |eval| eval.atoms.new_atom(0, hi, Some(why), home)))
    }

    /// Runs `f`, and says on what unsettled its result rests.
    pub(crate) fn tracked<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> (T, Unsettled) {
        let around = self.scope.begin_result();
        let v = f(self);
        (v, self.scope.end_result(around))
    }

    /// Runs `f`, and says whether its result rests on nothing unsettled.
    pub(crate) fn is_clean<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let (v, t) = self.tracked(f);
        (v, t == Unsettled::NOTHING)
    }

    /// Value of an integer node.
    pub(crate) fn ev(&mut self, n: NodeId) -> AffineForm {
        if let Some(v) = self.scope.value(n) {
            return v;
        }
        let node = self.g.node(n);
        let (bits, home) = (node.width.bits(), node.home);
        if self.nesting > MAX_NESTING || self.atoms.budget.exhausted() {
            return self.opaque(AtomKey::Node(n, 9), Reason::Budget, bits, home);
        }
        self.nesting += 1;
        let (v, t) = self.tracked(|eval| value_of(eval, n).norm(bits));
        self.nesting -= 1;
        self.scope.remember_value(n, &v, t);
        v
    }

    /// Truth of a predicate node.
    pub(crate) fn ev_pred(&mut self, n: NodeId) -> Cond {
        if let Some(v) = self.scope.pred(n) {
            return v;
        }
        if self.nesting > MAX_NESTING || self.atoms.budget.exhausted() {
            return Cond::Unknown;
        }
        let busy = self.scope.begin_pred(n);
        self.nesting += 1;
        let (v, t) = self.tracked(|eval| truth(eval, n));
        self.nesting -= 1;
        self.scope.end_pred(n, busy, &v, t);
        v
    }

    /// Constraints that hold whenever block `b` executes.
    pub(crate) fn ctx(&mut self, b: BlockId) -> Rc<ConstraintSet> {
        if let Some(v) = self.scope.guards(b) {
            return v;
        }
        if b.0 == 0 {
            return self.none.clone();
        }
        let Some(busy) = self.scope.begin_guards(b) else { return self.none.clone() };
        let (v, t) = self.tracked(|eval| dominator_facts(eval, b));
        let v = Rc::new(ConstraintSet::new(v));
        self.scope.end_guards(b, busy, &v, t);
        v
    }

    /// May block `b` execute?
    pub(crate) fn reachable(&mut self, b: BlockId) -> bool {
        if let Some(v) = self.scope.reach(b) {
            return v;
        }
        if b.0 == 0 {
            return true;
        }
        let (v, t) = self.tracked(|eval| may_reach(eval, b));
        self.scope.remember_reach(b, v, t);
        v
    }

    /// Bounds of a form whenever block `b` executes.
    pub(crate) fn bounds(&mut self, f: &AffineForm, b: BlockId) -> (Int, Int) {
        if let Some(c) = f.as_const() {
            return (c, c);
        }
        let ctx = self.ctx(b);
        self.atoms.bounds_in(f, &ctx, false)
    }
}
