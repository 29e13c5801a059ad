//! What operands and parameters of operations are: rows, predicates, and types.

use device_code::ptx::Type;

use crate::float::approximate::Approximation;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// One register of all lanes of a warp. Values are zero-extended to 64 bits.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct Row(pub [u64; LANES]);

/// Where an operand's row is: in the frame of the running function, or (top bit set) in the
/// program's constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(pub u32);

impl Slot {
    /// The bit that marks constants.
    pub const CONSTANT: u32 = 1 << 31;
    /// An operand that is not there.
    pub const NONE: Slot = Slot(0x7fff_ffff);
}

/// A predicate of the running function, in the low 24 bits; or a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pred(pub u32);

impl Pred {
    pub const NEGATED: u32 = 1 << 31;
    /// The predicate that is true in all lanes.
    pub const ALWAYS: Pred = Pred(0x7fff_ffff);
    /// The predicate that is false in all lanes.
    pub const NEVER: Pred = Pred(0xffff_ffff);
}

/// What the main loop does after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Go on with the next one.
    Step,
    /// The program counter was set, all lanes stay together.
    Jumped,
    /// The groups changed: choose one again.
    Repick,
    /// The whole warp waits: see `Warp::parked`.
    Parked,
    /// Let others run before this one goes on (its program counter was advanced).
    Yield,
    /// `Warp::fault` says what is wrong.
    Fault,
}

/// The type of an operand or result of a `LaneOp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are Rust's own")]
pub enum LaneTy {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

/// What becomes of the result of a `LaneOp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResultUse {
    /// It goes to row `d`.
    Value,
    /// It is combined with predicate `c` as `y` says and goes to predicates `d` and (its opposite)
    /// `z`.
    Predicate,
    /// As for predicates; row `d` gets `x` where it holds, else zero.
    Choice,
}

/// What a `LaneOp` computes, where native code has instructions for it. Operands and result have
/// the types of the operation; narrow results are cut to theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sem {
    /// Whatever its function does.
    Call,
    /// The first operand, extended or cut to the result's type.
    Move,
    /// As `Move` to 64 bits, and those of `x` are kept.
    MoveMasked,
    /// Integers, wrapping.
    Add,
    Add3,
    Sub,
    Mul,
    /// The upper half of the product.
    MulHigh,
    /// The product in the result's type, to which both are extended.
    MulWide,
    /// Product of the first two plus the third, wrapping.
    MulAdd,
    /// Product of the first two, extended to the third's type, plus the third.
    MulAddWide,
    And,
    Or,
    Xor,
    Not,
    Neg,
    Abs,
    Min,
    Max,
    /// Counts that are too large give what is shifted in.
    Shl,
    Shr,
    /// The count (b) is at most `x`.
    AndCount,
    MinCount,
    /// The first operand (of 64 bits) shifted; the upper or lower half of it.
    ShlHigh,
    ShlLow,
    ShrHigh,
    ShrLow,
    /// Funnel shifts of `a` below `b` by `c` modulo 32.
    FunnelLeft,
    FunnelRight,
    /// The truth table `x` of three words.
    Lop3,
    /// `a` below `b`.
    Join,
    /// The upper half of 64 bits.
    High,
    /// `(a << x) >> 32`
    ShiftedHigh,
    /// `a << x`, in 64 bits.
    Shifted,
    /// The arithmetic of floats, rounded to nearest. NaNs of singles are the hardware's.
    FloatAdd,
    FloatSub,
    FloatMul,
    FloatFma,
    /// The same where `x` has flags.
    FlagAdd,
    FlagSub,
    FlagMul,
    FlagFma,
    FlagDiv,
    FlagSqrt,
    FlagNeg,
    FlagAbs,
    /// `1 / a` of singles, where `x` has flags.
    FlagRcp,
    /// What the special function unit computes of singles; of `x` it has the flag for subnormals.
    Approximate(Approximation),
    /// Of doubles, rounded to nearest.
    DoubleDiv,
    DoubleRcp,
    DoubleSqrt,
    /// The sign bit of a float turned over or cleared.
    NegBits,
    AbsBits,
    /// Lesser and greater of singles as PTX has them, where `x` has flags.
    FlagMin,
    FlagMax,
    /// Between numbers, as Rust's `as`.
    Convert,
    /// Comparisons; of floats false where one is NaN, but for `Ne`.
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Comparisons of floats that are true where one is NaN, and `!=` that is not.
    EqUnordered,
    NeOrdered,
    LtUnordered,
    LeUnordered,
    GtUnordered,
    GeUnordered,
}

/// What an atomic operation does with the old value and its operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UpdateOp {
    Add,
    Min,
    Max,
    Inc,
    Dec,
    And,
    Or,
    Xor,
    Exchange,
    Compare,
    /// Of singles, the same in every memory: machine code without `.FTZ`.
    AddEverywhere,
    /// One more has arrived at a barrier of machine code.
    Arrive,
}

/// What is done with 16 bytes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WideAccess {
    Load,
    Store,
    Exchange,
    CompareAndSwap,
}

/// An atomic operation on values of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Update {
    pub(crate) op: UpdateOp,
    pub(crate) ty: Type,
}

/// An atomic operation that native code has instructions for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtomKind {
    Add,
    Min { signed: bool },
    Max { signed: bool },
    And,
    Or,
    Xor,
    Exchange,
    Compare,
    AddSingle,
    AddDouble,
}

/// Numbers that say whether an instruction has an operand: see where each is re-exported.
pub(crate) const BARRIER_POPC: u32 = 2;
pub const COMBINE_NONE: u32 = 0;
pub const EXTENDED: u32 = 16;
pub(crate) const OUTWARD: u32 = 0;
