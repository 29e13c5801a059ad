//! The types of the value graph: nodes, accesses, stores to local memory.
//!
//! Owns the data only. `build` makes nodes, `eval` gives them values. The graph is written to disk
//! with its summary.

use crate::effects::Early;
use crate::ir::{AccessKind, BlockId, Cmp, Combine, ConstantBank, Pure, Reason, Special, SymbolId, Sync};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// Index into [`Graph::nodes`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct NodeId(pub u32);

/// Width of a node's value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Width {
    /// Congruent modulo 2^32.
    W32,
    /// Congruent modulo 2^64.
    W64,
    /// Truth value.
    Pred,
}

impl Width {
    /// Bits of an integer width (1 for a predicate).
    pub(crate) fn bits(self) -> u32 {
        match self {
            Width::W32 => 32,
            Width::W64 => 64,
            Width::Pred => 1,
        }
    }
}

/// One value.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Node {
    /// What it is.
    pub(crate) kind: Kind,
    /// Width of the result.
    pub(crate) width: Width,
    /// Block in which it is computed: its guards hold whenever the value exists.
    pub(crate) home: BlockId,
}

/// Value kinds. Operands are nodes of the same width unless said otherwise.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// Being built (only seen through a cycle that is no loop).
    Building,
    /// Constant (truth value: 0 or 1).
    Const(u64),
    /// Unknown.
    Opaque(Reason),
    /// Unknown within bounds.
    Bounded(i64, i64),
    /// Bytes at a parameter offset.
    Param(u16, u8),
    /// Launch value.
    Special(Special),
    /// Address of a global.
    Symbol(SymbolId),
    /// Address of a parameter byte.
    ParamAddress(u16),
    /// Sum of coefficient * node, plus a constant.
    Lin(SmallVec<[(NodeId, i64); 3]>, i64),
    /// Product.
    Mul(NodeId, NodeId),
    /// 64-bit product of 32-bit numbers.
    MulWide(bool, NodeId, NodeId),
    /// High half of the product.
    MulHi(bool, NodeId, NodeId),
    /// 64-bit from 32-bit.
    Extend(bool, NodeId),
    /// Low word of a 64-bit node.
    Lo(NodeId),
    /// High word of a 64-bit node.
    Hi(NodeId),
    /// 64-bit: a 32-bit node times 2^32.
    High(NodeId),
    /// 64-bit from two 32-bit nodes that did not pair.
    Pack(NodeId, NodeId),
    /// Left shift by a 32-bit amount.
    Shl(NodeId, NodeId),
    /// Right shift by a 32-bit amount.
    Shr(bool, NodeId, NodeId),
    /// Bitwise function.
    Lop3(u8, NodeId, NodeId, NodeId),
    /// Minimum (true) or maximum.
    MinMax(bool, bool, NodeId, NodeId),
    /// Absolute value.
    Abs(NodeId),
    /// Choice by predicate.
    Sel(NodeId, NodeId, NodeId),
    /// Quotient.
    Div(bool, NodeId, NodeId),
    /// Remainder.
    Rem(bool, NodeId, NodeId),
    /// Low bits, extended: bits, signed.
    Ext(u8, bool, NodeId),
    /// Byte permutation.
    Prmt(NodeId, NodeId, NodeId),
    /// A value as a thread of the same warp has it, and which thread.
    OtherLane(NodeId, LaneChoice),
    /// A function of numbers that has no form. Operands are as wide as it says.
    Pure(Pure, [NodeId; 3]),
    /// Parameter bytes at a dynamic offset.
    ParamIndexed(i32, u8, bool, NodeId),
    /// Word(s) of local memory at an address; the stores are in [`Graph::local_stores`].
    LocalLoad(NodeId, u8),
    /// Word(s) of shared memory at a constant address; the stores are in [`Graph::shared_stores`].
    SharedLoad(u32, u8),
    /// 64-bit word of global memory at an address.
    Loaded(NodeId),
    /// Join of one value per predecessor block.
    Phi(SmallVec<[(BlockId, NodeId); 2]>),
    /// Loop header: values from outside, values from the back edges.
    LoopPhi(SmallVec<[(BlockId, NodeId); 2]>, SmallVec<[(BlockId, NodeId); 2]>),
    /// Predicate: comparison; signed, 64 bit.
    Cmp(Cmp, bool, NodeId, NodeId),
    /// Predicate: comparison of floating point numbers (see [`crate::ir::Op::FloatCmp`]): which
    /// hold, denormal ones flushed.
    FloatCmp(u8, bool, NodeId, NodeId),
    /// Predicate: negation.
    Not(NodeId),
    /// Predicate: combination.
    Combine(Combine, NodeId, NodeId),
    /// Predicate: truth table.
    PLut(u8, [NodeId; 3]),
    /// Predicate: integer node is not zero.
    NonZero(NodeId),
}

/// Which lane a shuffle takes a value from: 32-bit nodes (PTX ISA, "shfl").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct LaneChoice {
    /// 0 by index, 1 up, 2 down, 3 butterfly.
    pub(crate) mode: u8,
    /// Index, distance or mask.
    pub(crate) lane: NodeId,
    /// Clamp and mask of segments.
    pub(crate) within: NodeId,
}

impl Kind {
    /// Is a value the same wherever one of this kind is made of the same operands, in the same
    /// block and iteration? Unknown values are each their own: two loads from one address may find
    /// different words there. Joins are filled later.
    pub(crate) fn is_made(&self) -> bool {
        match self {
            Kind::Building
            | Kind::Opaque(_)
            | Kind::Bounded(..)
            | Kind::OtherLane(..)
            | Kind::LocalLoad(..)
            | Kind::SharedLoad(..)
            | Kind::Loaded(_)
            | Kind::Phi(_)
            | Kind::LoopPhi(..) => false,
            Kind::Const(_)
            | Kind::Param(..)
            | Kind::Special(_)
            | Kind::Symbol(_)
            | Kind::ParamAddress(_)
            | Kind::Lin(..)
            | Kind::Mul(..)
            | Kind::MulWide(..)
            | Kind::MulHi(..)
            | Kind::Extend(..)
            | Kind::Lo(_)
            | Kind::Hi(_)
            | Kind::High(_)
            | Kind::Pack(..)
            | Kind::Shl(..)
            | Kind::Shr(..)
            | Kind::Lop3(..)
            | Kind::MinMax(..)
            | Kind::Abs(_)
            | Kind::Sel(..)
            | Kind::Div(..)
            | Kind::Rem(..)
            | Kind::Ext(..)
            | Kind::Prmt(..)
            | Kind::Pure(..)
            | Kind::ParamIndexed(..)
            | Kind::Cmp(..)
            | Kind::FloatCmp(..)
            | Kind::Not(_)
            | Kind::Combine(..)
            | Kind::PLut(..)
            | Kind::NonZero(_) => true,
        }
    }
}

/// What an access goes through.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Target {
    /// 64-bit address.
    Address(NodeId),
    /// 64-bit address with a size known at launch only.
    Bulk(NodeId, NodeId),
    /// Tensor map at this address, and the 32-bit coordinates of a tile (none: not known).
    TensorMap(NodeId, SmallVec<[NodeId; 5]>),
    /// The tensor of a map that the kernel makes itself, if the copy is made by that map.
    Made(Box<MadeTensor>),
    /// Texture or surface handle.
    Handle(NodeId, bool),
    /// Anywhere in what these values point into: arguments of a call that is not followed.
    Passed(SmallVec<[NodeId; 4]>),
    /// No rule.
    Unknown(Reason),
}

/// How a map that a kernel makes itself may be the one that a copy is made by.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MadeTensor {
    /// 64-bit address of the map that the copy is made by.
    pub(crate) map: NodeId,
    /// Where the map is made, an address of 32 bits if it is shared memory, and the 64-bit address
    /// of the tensor that is put in.
    pub(crate) put: (NodeId, NodeId),
    /// From shared memory: the 64-bit address that bytes go to, and the 32-bit one they come from.
    pub(crate) copy: Option<(NodeId, NodeId)>,
}

impl MadeTensor {
    /// The values that it is told by.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        let copy = self.copy.into_iter().flat_map(|(to, from)| [to, from]);
        [self.map, self.put.0, self.put.1].into_iter().chain(copy)
    }
}

/// One memory instruction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Access {
    /// Where.
    pub(crate) block: BlockId,
    /// Direction.
    pub kind: AccessKind,
    /// Bytes per thread.
    pub(crate) bytes: u32,
    /// Address.
    pub(crate) target: Target,
    /// Guard of the instruction itself.
    pub(crate) guard: Option<NodeId>,
    /// Where in the code (byte offset, or line of PTX).
    pub(crate) at: u32,
    /// Made before the thread has waited: see [`crate::KernelAccess::early`].
    pub(crate) early: Early,
}

impl Access {
    /// Is it a copy by tensor map of tiles at coordinates?
    pub(crate) fn is_tiled(&self) -> bool {
        matches!(&self.target, Target::TensorMap(_, coordinates) if !coordinates.is_empty())
    }
}

/// A number that is the same in all threads, as far as the code tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Given {
    /// It is in the code.
    Number(u64),
    /// Bytes at a parameter offset.
    Param(u16, u8),
}

impl Given {
    /// The number that a node is.
    pub(crate) fn of(g: &Graph, n: NodeId) -> Option<Given> {
        let node = g.node(n);
        match node.kind {
            Kind::Const(v) => Some(Given::Number(v & u64::MAX >> (64 - node.width.bits()))),
            Kind::Param(at, bytes) => Some(Given::Param(at, bytes)),
            _ => None,
        }
    }
}

/// A compare-and-swap of 4 or 8 bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Swap {
    /// The number of its access.
    pub(crate) access: u32,
    /// What it compares the word with, if that is given.
    pub(crate) compared: Option<Given>,
    /// What it stores then.
    pub(crate) stored: Option<Given>,
}

/// What a warp decides together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum WarpDecision {
    /// Which thread is elected: the predicate is true in it alone.
    Elects,
    /// Whether a predicate holds in any thread, or in all.
    Votes { all: bool, p: NodeId },
}

impl WarpDecision {
    /// The predicate that threads are asked for.
    pub(crate) fn asks(&self) -> Option<NodeId> {
        match *self {
            WarpDecision::Elects => None,
            WarpDecision::Votes { p, .. } => Some(p),
        }
    }
}

/// An instruction that orders accesses.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct SyncPoint {
    /// Where.
    pub(crate) block: BlockId,
    /// The number of the first access that was found behind it: it lies before those of its block
    /// that have this number or a higher one.
    pub(crate) before: u32,
    /// What it orders.
    pub(crate) sync: Sync,
    /// Guard of the instruction itself.
    pub(crate) guard: Option<NodeId>,
}

/// A store to shared memory, or to local memory that no variable stands for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredWords {
    /// 32-bit address; a 64-bit one of a generic store, which may go to shared memory.
    pub(crate) addr: NodeId,
    /// Stored words.
    pub(crate) words: SmallVec<[NodeId; 4]>,
    /// Where.
    pub(crate) block: BlockId,
    /// 64-bit values of the word pairs, when they pair.
    pub(crate) pairs: SmallVec<[NodeId; 2]>,
    /// Bytes stored (less than 4, or more than there are `words`: these are not usable).
    pub(crate) bytes: u32,
}

/// A step of making the words of tensor maps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MapWords {
    /// Where, and which instruction of the block.
    pub(crate) block: BlockId,
    pub(crate) inst: u32,
    /// Guard of the instruction itself.
    pub(crate) guard: Option<NodeId>,
    pub(crate) step: MapStepNode,
}

/// See above. Addresses in shared memory have 32 bits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum MapStepNode {
    /// Words go to shared memory (none: they are not known), with the 64-bit values of pairs.
    Store { addr: NodeId, words: SmallVec<[NodeId; 4]>, pairs: SmallVec<[NodeId; 2]>, bytes: u32 },
    /// Words come from shared memory: values, and which of the words each begins with.
    Load { addr: NodeId, words: Vec<(NodeId, u8)> },
    /// A word goes to global memory, by this instruction (see [`Access::at`]).
    Word { addr: NodeId, word: NodeId, at: u32 },
}

impl MapWords {
    /// The values that it rests on.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.guard.into_iter().collect();
        match &self.step {
            MapStepNode::Store { addr, words, pairs, .. } => {
                nodes.push(*addr);
                nodes.extend(words.iter().chain(pairs));
            }
            MapStepNode::Load { addr, .. } => nodes.push(*addr),
            MapStepNode::Word { addr, word, .. } => nodes.extend([*addr, *word]),
        }
        nodes
    }
}

/// The value graph.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Graph {
    /// All nodes.
    pub(crate) nodes: Vec<Node>,
    /// Memory instructions that may touch global memory.
    pub(crate) accesses: Vec<Access>,
    /// Fences and barriers.
    pub(crate) syncs: Vec<SyncPoint>,
    /// Compare-and-swaps, by their accesses.
    pub(crate) swaps: Vec<Swap>,
    /// Branch condition of each block that has one.
    pub(crate) conds: Vec<Option<NodeId>>,
    /// Stores to local memory.
    pub(crate) local_stores: Vec<StoredWords>,
    /// Stores to shared memory, when something loads from there that matters.
    pub(crate) shared_stores: Vec<StoredWords>,
    /// How the words of tensor maps are made that the kernel makes itself, in the order of the
    /// code; none where that is not followed.
    pub(crate) map_words: Vec<MapWords>,
    /// The values of words that steps among them load.
    pub(crate) map_loads: BTreeSet<NodeId>,
    /// Some 64-bit number is the sum of a low word and 2^32 times a high word that were made apart.
    pub(crate) split_words: bool,
    /// What was in the place of a value before a call that is not followed. (A call keeps some
    /// registers; which ones is not known.)
    pub(crate) before_call: BTreeMap<NodeId, NodeId>,
    /// Which of the predicates that have no form a warp decides.
    pub(crate) decisions: BTreeMap<NodeId, WarpDecision>,
    /// Words that loops carry round, as low (false) or high halves of 64-bit values that they carry
    /// round.
    pub(crate) halves: BTreeMap<NodeId, (NodeId, bool)>,
    /// The `__constant__` variables of machine code.
    pub(crate) constants: Option<ConstantBank>,
    /// The instructions (see [`Access::at`]) that make the nodes whose value is not followed. For
    /// messages only.
    pub(crate) made_at: BTreeMap<NodeId, u32>,
}

impl Graph {
    /// The node.
    pub(crate) fn node(&self, n: NodeId) -> &Node {
        &self.nodes[n.0 as usize]
    }

    /// Adds a node behind all others.
    pub(super) fn put(&mut self, kind: Kind, width: Width, home: BlockId) -> NodeId {
        self.nodes.push(Node { kind, width, home });
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// The nodes a node is computed from.
    pub(crate) fn operands(&self, n: NodeId) -> SmallVec<[NodeId; 4]> {
        let mut v: SmallVec<[NodeId; 4]> = SmallVec::new();
        match &self.node(n).kind {
            Kind::Lin(t, _) => v.extend(t.iter().map(|t| t.0)),
            Kind::Mul(a, b)
            | Kind::MulWide(_, a, b)
            | Kind::MulHi(_, a, b)
            | Kind::Pack(a, b)
            | Kind::Shl(a, b)
            | Kind::Shr(_, a, b)
            | Kind::MinMax(_, _, a, b)
            | Kind::Div(_, a, b)
            | Kind::Rem(_, a, b)
            | Kind::Cmp(_, _, a, b)
            | Kind::FloatCmp(_, _, a, b)
            | Kind::Combine(_, a, b) => v.extend([*a, *b]),
            Kind::Extend(_, a)
            | Kind::Lo(a)
            | Kind::Hi(a)
            | Kind::High(a)
            | Kind::Abs(a)
            | Kind::Ext(_, _, a)
            | Kind::ParamIndexed(_, _, _, a)
            | Kind::LocalLoad(a, _)
            | Kind::Loaded(a)
            | Kind::Not(a)
            | Kind::NonZero(a) => v.push(*a),
            Kind::Lop3(_, a, b, c) | Kind::Sel(a, b, c) | Kind::Prmt(a, b, c) => v.extend([*a, *b, *c]),
            Kind::OtherLane(a, from) => v.extend([*a, from.lane, from.within]),
            Kind::PLut(_, s) | Kind::Pure(_, s) => v.extend(s.iter().copied()),
            Kind::Phi(arms) => v.extend(arms.iter().map(|a| a.1)),
            Kind::LoopPhi(a, b) => v.extend(a.iter().chain(b).map(|a| a.1)),
            Kind::Building
            | Kind::Const(_)
            | Kind::Opaque(_)
            | Kind::Bounded(..)
            | Kind::Param(..)
            | Kind::Special(_)
            | Kind::SharedLoad(..)
            | Kind::Symbol(_)
            | Kind::ParamAddress(_) => {}
        }
        v
    }
}
