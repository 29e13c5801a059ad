//! Atoms.

use crate::ir::{BlockId, Reason, Special};
use crate::ranges::domain::affine::{AtomId, Form};
use crate::ranges::domain::constraints::Con;
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
    pub cons: Vec<Con>,
    pub alts: Option<Rc<Vec<Form>>>,
    /// Where in global memory it was loaded from.
    pub loaded: Option<NodeId>,
    /// What it is the rounded-down quotient of.
    pub floor: Option<Rc<(Form, Int)>>,
    /// Which of several values it is depends on more than `deps` (a condition).
    pub choice: bool,
}

/// Identity of an atom by content.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Key {
    Node(NodeId, u8),
    Special(Special),
    Param(u16),
    Symbol(u32),
    ParamAddress(u16),
    Floor(Form, Int),
    Interp(Form, u32, bool),
    Abs(Form, BlockId),
    Mul(Form, Form, BlockId),
    Mask(Form, u64, BlockId),
    Xor(Form, u64),
    Pair(u8, Form, Form, BlockId),
    Lop(u8, Vec<Form>, BlockId),
    Alts(NodeId),
    Table(Form, i32, u8, bool),
    Join(NodeId, u8, Vec<Form>),
    Step(NodeId, Form, Int, Int),
    Range(NodeId, Int, Int),
}
