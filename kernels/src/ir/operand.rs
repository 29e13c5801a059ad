//! What instructions of the intermediate representation read: sources, their prefixes, launch
//! values.

use super::{SymbolId, Var};
use serde::{Deserialize, Serialize};

/// A special value that the launch fixes or boxes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Special {
    /// threadIdx, axis 0..3.
    Tid(u8),
    /// blockIdx, axis 0..3.
    Ctaid(u8),
    /// blockDim.
    Ntid(u8),
    /// gridDim.
    Nctaid(u8),
    /// Lane of the warp, 0..32.
    Lane,
    /// Rank of the block in its cluster.
    ClusterRank,
    /// Blocks of a cluster.
    ClusterSize,
    /// blockIdx within its cluster, axis.
    ClusterCtaid(u8),
    /// Cluster extent, axis.
    ClusterNctaid(u8),
    /// Index of the cluster in the grid, axis.
    ClusterId(u8),
    /// Number of clusters, axis.
    NCluster(u8),
    /// What machine code multiplies blockIdx with for the index of the cluster, axis: a single.
    ClusterReciprocal(u8),
    /// Bytes of dynamic shared memory.
    DynamicShared,
    /// Base of the thread's local memory: unknown, the same everywhere in a kernel (SASS: the word
    /// R1 starts from; PTX: the depot). Local addresses are compared relative to it.
    LocalBase,
    /// Address of memory of the driver's own, by the offset of its word.
    DriverBase(u16),
}

/// A source without its prefix. There is no unknown source: a front end that meets one defines a
/// fresh variable with [`Op::Unknown`] and names that (two unknown values must never look like the
/// same value).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Src {
    /// Constant; 32-bit users take the low half. As predicate: 0 or 1.
    Imm(u64),
    /// A variable of the class the user expects.
    Var(Var),
    /// A 64-bit value in two 32-bit variables.
    Pair(Var, Var),
    /// A 32-bit variable zero-extended where 64 bits are expected.
    Zext(Var),
    /// `bytes` (1, 2, 4, 8) at a parameter offset, zero-extended. Eight bytes are one 64-bit value:
    /// a candidate pointer.
    Param {
        /// Byte offset in the parameters.
        off: u16,
        /// Width.
        bytes: u8,
    },
    /// Launch value.
    Special(Special),
    /// 64-bit address of a symbol.
    Symbol(SymbolId),
    /// Low (false) or high (true) word of the address of a symbol.
    SymbolHalf(SymbolId, bool),
    /// 64-bit generic address *of* a parameter byte (`mov.b64 %rd, param` for tensor maps and
    /// `__grid_constant__`). Offsets from 0x8000 on are negative: machine code counts from the
    /// start of the constant bank.
    ParamAddress(u16),
    /// Low (false) or high (true) word of [`Src::ParamAddress`].
    ParamAddressHalf(u16, bool),
    /// The word of constant bank 3 at this offset (see [`super::ConstantBank`]).
    Constant(u32),
    /// A 32-bit word that the driver passes beside the parameters, by some offset. A pair of
    /// neighbours, in either order, is the address of memory of the driver's own (grid barriers,
    /// printf), which no program reaches by itself.
    Driver(u16),
}

/// Modifier in front of a source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) enum Prefix {
    /// As is.
    #[default]
    None,
    /// Arithmetic negation (two's complement).
    Neg,
    /// Bitwise not; negation of a predicate.
    Not,
}

/// A source with its prefix.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SrcOperand {
    /// Value.
    pub(crate) src: Src,
    /// Modifier.
    pub(crate) prefix: Prefix,
}

impl SrcOperand {
    /// Plain source.
    pub(crate) const fn new(src: Src) -> Self {
        SrcOperand { src, prefix: Prefix::None }
    }
    /// Constant.
    pub(crate) const fn imm(v: u64) -> Self {
        SrcOperand::new(Src::Imm(v))
    }
    /// Variable.
    pub(crate) const fn var(v: Var) -> Self {
        SrcOperand::new(Src::Var(v))
    }
    /// Predicate variable, negated when `not`.
    pub(crate) const fn pred(v: Var, not: bool) -> Self {
        SrcOperand { src: Src::Var(v), prefix: if not { Prefix::Not } else { Prefix::None } }
    }
    /// Arithmetic negation of a source.
    pub(crate) const fn neg(src: Src) -> Self {
        SrcOperand { src, prefix: Prefix::Neg }
    }
    /// Is this the constant `v`?
    pub(crate) fn is_imm(&self, v: u64) -> bool {
        self.prefix == Prefix::None && self.src == Src::Imm(v)
    }
}
