//! Atoms: the unknowns of affine forms, and the keys by which equal ones are found again.
//!
//! Owns the data only. The evaluation makes atoms; the head of `eval` says what its boxes and
//! constraints promise.

use crate::ir::{BlockId, Reason, Special};
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::constraints::ConstraintRef;
use crate::ranges::domain::int::Int;
use crate::ranges::graph::node::NodeId;
use smallvec::SmallVec;
use std::rc::Rc;

/// What an atom stands for, where that matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtomKind {
    /// None of the others: an opaque value, a quotient, a join.
    Plain,
    /// Thread or block index: every value of the box occurs, independently.
    Index,
    /// Pointer-sized parameter word.
    Param(u16),
    /// Symbol address.
    Symbol(u32),
    /// Address of a parameter.
    ParamAddress(u16),
    /// Base of local memory.
    Local,
    /// Completed iterations of a loop.
    Iteration(u32),
    /// A symbol in place of a phi that is being solved.
    Unsolved,
}

/// An unknown of affine forms.
pub(crate) struct Atom {
    /// Least value, in every execution of its block.
    pub(crate) lo: Int,
    /// Greatest value.
    pub(crate) hi: Int,
    /// What it stands for.
    pub(crate) kind: AtomKind,
    /// Why its value is unknown, if it is.
    pub(crate) opaque: Option<Reason>,
    /// The block in which it is made.
    pub(crate) home: BlockId,
    /// Atoms on which its value depends.
    pub(crate) deps: SmallVec<[AtomId; 3]>,
    /// Constraints that hold whenever it has a value.
    pub(crate) cons: Vec<ConstraintRef>,
    /// The values that it may be, when it is a choice between pointers.
    pub(crate) alts: Option<Rc<Vec<AffineForm>>>,
    /// Where in global memory it was loaded from.
    pub(crate) loaded: Option<NodeId>,
    /// The dividend and the divisor, when it is a rounded-down quotient.
    pub(crate) floor: Option<Rc<(AffineForm, Int)>>,
    /// Which of several values it is depends on more than `deps` (a condition).
    pub(crate) choice: bool,
}

/// What an atom was made for: equal keys are the same atom. (Most variants name the operation and
/// its operands.)
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum AtomKey {
    Node(NodeId, u8),
    Special(Special),
    Param(u16),
    Symbol(u32),
    ParamAddress(u16),
    Floor(AffineForm, Int),
    Interp(AffineForm, u32, bool),
    Abs(AffineForm, BlockId),
    Mul(AffineForm, AffineForm, BlockId),
    Mask(AffineForm, u64, BlockId),
    Xor(AffineForm, u64),
    Pair(u8, AffineForm, AffineForm, BlockId),
    Lop(u8, Vec<AffineForm>, BlockId),
    Alts(NodeId),
    Table(AffineForm, i32, u8, bool),
    Join(NodeId, u8, Vec<AffineForm>),
    Step(NodeId, AffineForm, Int, Int),
    Range(NodeId, Int, Int),
}

impl AtomKey {
    /// Does it name a number of the launch, which is the same wherever it is asked for?
    pub(crate) fn is_of_launch(&self) -> bool {
        matches!(self, AtomKey::Special(_) | AtomKey::Param(_) | AtomKey::Symbol(_) | AtomKey::ParamAddress(_))
    }
}
