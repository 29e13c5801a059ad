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

/// What an atom is, where that matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtomKind {
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
    /// Stands for a phi being solved.
    Unsolved,
}

pub(crate) struct Atom {
    pub lo: Int,
    pub hi: Int,
    pub kind: AtomKind,
    pub opaque: Option<Reason>,
    pub home: BlockId,
    pub deps: SmallVec<[AtomId; 3]>,
    pub cons: Vec<ConstraintRef>,
    pub alts: Option<Rc<Vec<AffineForm>>>,
    /// Where in global memory it was loaded from.
    pub loaded: Option<NodeId>,
    /// What it is the rounded-down quotient of.
    pub floor: Option<Rc<(AffineForm, Int)>>,
    /// Which of several values it is depends on more than `deps` (a condition).
    pub choice: bool,
}

/// Identity of an atom by content.
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
