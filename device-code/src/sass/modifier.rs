//! Modifiers of operations: types, comparisons, modes, special registers.

/// Families of operations of which only the effects are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OtherKind {
    /// Floating point and conversions.
    Float,
    /// Tensor core.
    Tensor,
    /// Waits, NOP, and other instructions without a result that matters.
    Control,
    /// A barrier of the threads of a block (BAR).
    Barrier {
        /// Its number; `None`: a register holds it.
        number: Option<u8>,
        /// The thread arrives, and does not wait for the others.
        arrives: bool,
    },
    /// A memory fence (MEMBAR), and whether its scope is the device or the system.
    Fence {
        /// It reaches beyond the block and the cluster.
        device: bool,
    },
    /// Integer operations without use in addresses (dot products, absolute differences).
    Integer,
    /// Kills the thread (graphics).
    Kill,
}

/// Lanes of VIADD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lanes {
    /// One 32-bit lane.
    One,
    /// Two 16-bit lanes.
    Two,
    /// Four 8-bit lanes.
    Four,
}

/// Which part of a product IMAD takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MulKind {
    /// Low 32 bits; src\[2\] is 32 bits.
    Low,
    /// All 64 bits into a pair; src\[2\] is a pair.
    Wide,
    /// High 32 bits of product + src\[2\], which is a pair.
    High,
}

/// Integer types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntTy {
    /// 32 bits, signed.
    S32,
    /// 32 bits, unsigned.
    U32,
    /// 64 bits, signed.
    S64,
    /// 64 bits, unsigned.
    U64,
}

impl IntTy {
    /// True for the signed ones.
    #[must_use]
    pub const fn signed(self) -> bool {
        matches!(self, IntTy::S32 | IntTy::S64)
    }
    /// True for the 64-bit ones.
    #[must_use]
    pub const fn wide(self) -> bool {
        matches!(self, IntTy::S64 | IntTy::U64)
    }
}

/// Types of the packed integer operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VecTy {
    /// 32 bits, unsigned.
    U32,
    /// 32 bits, signed.
    S32,
    /// Two unsigned 16-bit lanes.
    U16x2,
    /// Two signed 16-bit lanes.
    S16x2,
    /// Four unsigned 8-bit lanes.
    U8x4,
    /// Four signed 8-bit lanes.
    S8x4,
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Comparison {
    /// Never true.
    F,
    Lt,
    Eq,
    Le,
    Gt,
    Ne,
    Ge,
    /// Always true.
    T,
}

/// How a compare is combined with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BoolOp {
    And,
    Or,
    Xor,
}

/// Kinds of VOTE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum VoteMode {
    All,
    Any,
    Eq,
}

/// Kinds of SHFL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ShflMode {
    Idx,
    Up,
    Down,
    Bfly,
}

/// Operations of REDUX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ReduxOp {
    And,
    Or,
    Xor,
    Sum,
    Min,
    Max,
}

/// Type of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MemTy {
    U8,
    S8,
    U16,
    S16,
    B32,
    B64,
    B128,
    /// 32 bytes in two runs of four registers (sm_100 on).
    B256,
}

impl MemTy {
    /// Bytes per thread.
    #[must_use]
    pub const fn bytes(self) -> u16 {
        match self {
            MemTy::U8 | MemTy::S8 => 1,
            MemTy::U16 | MemTy::S16 => 2,
            MemTy::B32 => 4,
            MemTy::B64 => 8,
            MemTy::B128 => 16,
            MemTy::B256 => 32,
        }
    }
    /// Registers of one run (a `B256` access has two such runs).
    #[must_use]
    pub const fn regs(self) -> u8 {
        match self {
            MemTy::B64 => 2,
            MemTy::B128 | MemTy::B256 => 4,
            _ => 1,
        }
    }
}

/// Atomic operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AtomOp {
    Add,
    Min,
    Max,
    Inc,
    Dec,
    And,
    Or,
    Xor,
    Exch,
    SafeAdd,
    /// Adds the number of active lanes (ATOMS.POPC.INC).
    PopcInc,
    /// Arrives at a barrier object (sm_80).
    Arrive,
}

/// Kinds of compare-and-swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CasKind {
    /// Compare and swap.
    Cas,
    /// Compare and swap, as a step of a retry loop.
    Cast,
    /// The same with a spin hint.
    CastSpin,
}

/// Types of atomics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AtomTy {
    U32,
    S32,
    U64,
    S64,
    B128,
    F32Ftz,
    F32,
    F64,
    F16x2,
    F16x4,
    F16x8,
    Bf16x2,
    Bf16x4,
    Bf16x8,
    F32x2Ftz,
    F32x4Ftz,
    F32x2,
    F32x4,
}

impl AtomTy {
    /// Bytes per thread.
    #[must_use]
    pub(crate) const fn bytes(self) -> u16 {
        use AtomTy::*;
        match self {
            U32 | S32 | F32Ftz | F32 | F16x2 | Bf16x2 => 4,
            U64 | S64 | F64 | F16x4 | Bf16x4 | F32x2Ftz | F32x2 => 8,
            B128 | F16x8 | Bf16x8 | F32x4Ftz | F32x4 => 16,
        }
    }
    /// 32-bit registers of one operand.
    #[must_use]
    pub const fn regs(self) -> u8 {
        (self.bytes() / 4) as u8
    }
}

/// How BRA treats divergence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BraMode {
    Plain,
    /// The compiler knows the branch to be uniform.
    Uniform,
    /// Taken only when lanes diverge: goes to slow code that rejoins by a later branch.
    Div,
    /// Taken only when lanes are converged.
    Conv,
}

/// A special register, by its number in the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct SpecialReg(pub u8);

#[allow(missing_docs)]
impl SpecialReg {
    pub const LANE_ID: SpecialReg = SpecialReg(0);
    pub const TID_X: SpecialReg = SpecialReg(33);
    pub const TID_Y: SpecialReg = SpecialReg(34);
    pub const TID_Z: SpecialReg = SpecialReg(35);
    pub const CTAID_X: SpecialReg = SpecialReg(37);
    pub const CTAID_Y: SpecialReg = SpecialReg(38);
    pub const CTAID_Z: SpecialReg = SpecialReg(39);
    /// High word of the local window (generic addresses of local memory).
    pub const LOCAL_WINDOW_HI: SpecialReg = SpecialReg(46);
    /// High word of the shared window (generic addresses of shared memory).
    pub const SHARED_WINDOW_HI: SpecialReg = SpecialReg(47);
    pub const EQ_MASK: SpecialReg = SpecialReg(56);
    pub const LT_MASK: SpecialReg = SpecialReg(57);
    pub const LE_MASK: SpecialReg = SpecialReg(58);
    pub const GT_MASK: SpecialReg = SpecialReg(59);
    pub const GE_MASK: SpecialReg = SpecialReg(60);
    pub const VIRTUAL_SMID: SpecialReg = SpecialReg(67);
    pub const CGA_CTA_ID: SpecialReg = SpecialReg(136);
    /// Zero.
    pub const ZERO: SpecialReg = SpecialReg(255);
}
