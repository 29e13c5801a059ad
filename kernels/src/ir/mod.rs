//! The intermediate representation both front ends (SASS and PTX) lower to: one function per kernel, calls already
//! inlined, variables still mutable (SSA is built lazily by `ranges`).
//!
//! It owns the data types and the control-flow facts ([`cfg`]); it does not know encodings, nor what a value means.
//!
//! # For a front end
//!
//! * A [`Var`] has a class: 32 bit, 64 bit or predicate. PTX uses 64-bit variables for `.b64` registers; SASS has only
//!   32-bit ones and names a 64-bit source as [`Src::Pair`]. 16-bit PTX registers: use a 32-bit variable holding the
//!   zero- or sign-extended value; when unsure, define it with [`Op::Unknown`].
//! * The result width of an instruction is the class of its destination. Every arithmetic operation is modulo 2^width.
//! * An instruction whose meaning is not modelled must still name **all** variables it defines: `Op::Unknown(reason)` with
//!   `dsts`; an instruction that may define anything is [`Op::ClobberAll`]. An instruction that may touch global memory in
//!   a way that is not modelled is [`Op::Mem`] with `addr: Addr::Unknown`. Forgetting either is unsound, nothing else is.
//! * A guarded instruction (`@p`) sets [`Inst::guard`]: when false the destinations keep their old values.
//! * Block 0 is the entry and has no predecessor. A branch condition is an [`Operand`] of a predicate.
//! * Parameters are byte offsets from the start of the parameter area ([`Src::Param`]), whatever the bank address is.

pub mod cfg;

use smallvec::SmallVec;

/// A mutable variable of a [`Function`] (index into [`Function::vars`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Var(pub u32);

impl Var {
    /// Placeholder in a destination list: this part of the result is discarded.
    pub const NONE: Var = Var(u32::MAX);
}

/// A basic block (index into [`Function::blocks`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct BlockId(pub u32);

/// Name of a `__device__`/`__constant__` variable (index into [`Function::symbols`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SymbolId(pub u32);

/// What a variable can hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// 32-bit integer or float bits.
    W32,
    /// 64-bit integer or float bits.
    W64,
    /// One bit.
    Pred,
}

/// One kernel.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Mangled name.
    pub name: String,
    /// Class of every variable.
    pub vars: Vec<Class>,
    /// Blocks; entry first.
    pub blocks: Vec<Block>,
    /// Names of global symbols that operands mention.
    pub symbols: Vec<String>,
    /// Those of `symbols` that instructions read from the constant bank.
    pub constants: Vec<SymbolId>,
    /// Parameter layout found in the code: (offset, size) in bytes.
    pub params: Vec<(u16, u16)>,
    /// `griddepcontrol.wait` / ACQBULK is present.
    pub waits_for_dependency: bool,
    /// `griddepcontrol.launch_dependents` / PREEXIT is present.
    pub launches_dependents: bool,
    /// A fence of system scope is present: it may talk to the host or to kernels of other devices and processes while it runs.
    pub system_fence: bool,
}

impl Function {
    /// A fresh variable.
    pub fn var(&mut self, class: Class) -> Var {
        self.vars.push(class);
        Var(self.vars.len() as u32 - 1)
    }

    /// The id of a symbol name, added when new.
    pub fn symbol(&mut self, name: &str) -> SymbolId {
        if let Some(i) = self.symbols.iter().position(|s| s == name) {
            return SymbolId(i as u32);
        }
        self.symbols.push(name.to_owned());
        SymbolId(self.symbols.len() as u32 - 1)
    }

    /// Class of `v`.
    pub fn class(&self, v: Var) -> Class {
        self.vars[v.0 as usize]
    }
}

/// Straight-line instructions and one terminator.
#[derive(Clone, Debug)]
pub struct Block {
    /// Instructions in order.
    pub insts: Vec<Inst>,
    /// How the block ends.
    pub term: Term,
}

/// End of a block.
#[derive(Clone, Debug)]
pub enum Term {
    /// Unconditional.
    Jump(BlockId),
    /// `taken` when the predicate is true, else `fall`. `None` as a target: the thread exits.
    Branch {
        /// Predicate (use `prefix: Not` for a negated one).
        cond: Operand,
        /// Target when true.
        taken: Option<BlockId>,
        /// Target when false.
        fall: Option<BlockId>,
    },
    /// Any of these, by a value that is not modelled (jump tables, divergence helpers).
    Switch(Vec<BlockId>),
    /// The thread ends.
    Exit,
}

/// Why a value or extent is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// The value came out of global memory.
    Loaded,
    /// The value came out of shared memory.
    Shared,
    /// The value came out of local memory that could not be followed.
    Local,
    /// Result of an atomic.
    AtomicResult,
    /// Floating-point value.
    Float,
    /// Value of another lane (shuffle, vote, match, reduction).
    CrossLane,
    /// A loop whose recurrence or bound was not solved.
    Loop,
    /// Two words that did not combine to a 64-bit value.
    Pairing,
    /// 32-bit arithmetic that may wrap around.
    MayWrap,
    /// Bit manipulation without a rule.
    Bits,
    /// Parameter or constant bank read at an unknown index, or outside the recorded bytes.
    Constant,
    /// Result of a call that was not followed.
    Call,
    /// Read before any definition.
    Undefined,
    /// An instruction without a rule.
    Instruction,
    /// A special register without a rule.
    Special,
    /// Control flow without structure.
    Irreducible,
    /// Address built from a shared or local window, or from a hidden descriptor.
    Window,
    /// The range is in a tensor map, texture or surface object, not in registers.
    Descriptor,
    /// More alternatives or steps than the budget allows.
    Budget,
}

impl Reason {
    /// A few words for users, fitting after "because of".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Reason::Loaded => "a value loaded from memory",
            Reason::Shared => "a value from shared memory",
            Reason::Local => "a value from local memory",
            Reason::AtomicResult => "the result of an atomic",
            Reason::Float => "a floating-point value",
            Reason::CrossLane => "a value of another lane (shuffle, vote)",
            Reason::Loop => "a loop that is not affine",
            Reason::Pairing => "two words that make no known 64-bit value",
            Reason::MayWrap => "32-bit arithmetic that may wrap around",
            Reason::Bits => "bit manipulation or division",
            Reason::Constant => "a parameter or constant at an unknown index",
            Reason::Call => "a call that was not followed",
            Reason::Undefined => "a register that was never written",
            Reason::Instruction => "an instruction without a rule",
            Reason::Special => "a special register without a rule",
            Reason::Irreducible => "control flow without structure",
            Reason::Window => "an address made of a shared or local window",
            Reason::Descriptor => "a tensor map, texture or surface",
            Reason::Budget => "too many cases",
        }
    }
}

/// A special value that the launch fixes or boxes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    /// Bytes of dynamic shared memory.
    DynamicShared,
    /// Base of the thread's local memory: unknown, the same everywhere in a kernel (SASS: the word R1 starts from; PTX: the
    /// depot). Local addresses are compared relative to it.
    LocalBase,
    /// Address of memory of the driver's own, by the offset of its word.
    DriverBase(u16),
}

/// A source without its prefix. There is no unknown source: a front end that meets one defines a fresh variable with
/// [`Op::Unknown`] and names that (two unknown values must never look like the same value).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Src {
    /// Constant; 32-bit users take the low half. As predicate: 0 or 1.
    Imm(u64),
    /// A variable of the class the user expects.
    Var(Var),
    /// A 64-bit value in two 32-bit variables.
    Pair(Var, Var),
    /// A 32-bit variable zero-extended where 64 bits are expected.
    Zext(Var),
    /// `bytes` (1, 2, 4, 8) at a parameter offset, zero-extended. Eight bytes are one 64-bit value: a candidate pointer.
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
    /// 64-bit generic address *of* a parameter byte (`mov.b64 %rd, param` for tensor maps and `__grid_constant__`).
    /// Offsets from 0x8000 on are negative: machine code counts from the start of the constant bank.
    ParamAddress(u16),
    /// Low (false) or high (true) word of [`Src::ParamAddress`].
    ParamAddressHalf(u16, bool),
    /// A 32-bit word that the driver passes beside the parameters, by some offset. A pair of neighbours, in either order, is the address of
    /// memory of the driver's own (grid barriers, printf), which no program reaches by itself.
    Driver(u16),
}

/// Modifier in front of a source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Prefix {
    /// As is.
    #[default]
    None,
    /// Arithmetic negation (two's complement).
    Neg,
    /// Bitwise not; negation of a predicate.
    Not,
    /// Absolute value of a signed number.
    Abs,
}

/// A source with its prefix.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Operand {
    /// Value.
    pub src: Src,
    /// Modifier.
    pub prefix: Prefix,
}

impl Operand {
    /// Plain source.
    pub const fn new(src: Src) -> Self {
        Operand { src, prefix: Prefix::None }
    }
    /// Constant.
    pub const fn imm(v: u64) -> Self {
        Operand::new(Src::Imm(v))
    }
    /// Variable.
    pub const fn var(v: Var) -> Self {
        Operand::new(Src::Var(v))
    }
    /// Predicate variable, negated when `not`.
    pub const fn pred(v: Var, not: bool) -> Self {
        Operand { src: Src::Var(v), prefix: if not { Prefix::Not } else { Prefix::None } }
    }
    /// Arithmetic negation of a source.
    pub const fn neg(src: Src) -> Self {
        Operand { src, prefix: Prefix::Neg }
    }
    /// Is this the constant `v`?
    pub fn is_imm(&self, v: u64) -> bool {
        self.prefix == Prefix::None && self.src == Src::Imm(v)
    }
}

/// Comparison.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cmp {
    /// <
    Lt,
    /// <=
    Le,
    /// >
    Gt,
    /// >=
    Ge,
    /// ==
    Eq,
    /// !=
    Ne,
}

impl Cmp {
    /// The same relation with its sides exchanged.
    #[must_use]
    pub fn mirrored(self) -> Cmp {
        match self {
            Cmp::Lt => Cmp::Gt,
            Cmp::Le => Cmp::Ge,
            Cmp::Gt => Cmp::Lt,
            Cmp::Ge => Cmp::Le,
            Cmp::Eq | Cmp::Ne => self,
        }
    }
}

/// How a comparison is combined with a further predicate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Combine {
    /// and
    And,
    /// or
    Or,
    /// xor
    Xor,
}

/// Operation. `s0, s1, ..` are the sources, `d0, ..` the destinations; unless said otherwise there is one destination.
/// "Machine halves" (marked **half**) exist for SASS, where 64-bit arithmetic is spread over two instructions; a front end
/// with 64-bit variables never needs them.
#[derive(Clone, PartialEq, Debug)]
pub enum Op {
    /// d0 = s0 (any class).
    Mov,
    /// d0 = sum of all sources; d1, d2 (optional) = carry-outs.
    Add,
    /// **half** d0 = s0 + s1 + s2 + carries (the sources after the third are predicates). `Not` prefixes are bitwise.
    AddX,
    /// d0 = s0 * s1 + s2, low half; d1 (optional) = carry-out.
    Mad,
    /// **half** d0 = s0 * s1 + s2 + carry s3.
    MadX,
    /// 64-bit d0 (or d0:d1 in 32-bit variables) = s0 * s1 + s2, s0 and s1 32 bit, s2 64 bit.
    MadWide {
        /// Sign-extend s0, s1.
        signed: bool,
    },
    /// d0 = high half of s0 * s1 + s2, where s2 has twice the width of d0 (64-bit factors: only a zero s2 is modelled).
    MulHi {
        /// Signed product.
        signed: bool,
    },
    /// d0 = (s0 << shift) + s1; d1 (optional) = carry-out.
    Lea {
        /// Shift.
        shift: u8,
    },
    /// **half** d0 = high word of ({s2:s0} << shift) + s1 (+ carry s3 when `x`); `sx`: s0 is sign-extended, s2 unused.
    LeaHi {
        /// Shift.
        shift: u8,
        /// Sign-extend s0.
        sx: bool,
        /// With carry-in s3.
        x: bool,
    },
    /// **half** funnel shift of {s2:s0} by s1.
    Funnel {
        /// Right shift.
        right: bool,
        /// The high word of the result (SHF `.HI`).
        hi: bool,
        /// Arithmetic shift.
        signed: bool,
        /// The operand is 64 bits wide (types U64, S64); with 32 the shift applies to one word.
        wide: bool,
    },
    /// d0 = s0 << s1 (PTX semantics: shifts of the width or more give 0).
    Shl,
    /// d0 = s0 >> s1 (shifts of the width or more give 0 or the sign).
    Shr {
        /// Arithmetic.
        signed: bool,
    },
    /// d0 = bitwise function of s0, s1, s2 by truth table (bit `4*a + 2*b + c` of `lut`); d1 (optional predicate) = d0 != 0.
    /// `a & b` is 0xc0, `a | b` 0xfc, `a ^ b` 0x3c, `~a` 0x0f (missing sources: zero).
    Lop3 {
        /// Truth table.
        lut: u8,
    },
    /// d0 = min (s2 true) or max (s2 false) of s0, s1; s2 is a predicate.
    MinMax {
        /// Signed.
        signed: bool,
    },
    /// d0 = |s0|, signed.
    Abs,
    /// d0 = s2 ? s0 : s1 (any class).
    Sel,
    /// d0 = s0 / s1, rounding to zero.
    Div {
        /// Signed.
        signed: bool,
    },
    /// d0 = s0 % s1.
    Rem {
        /// Signed.
        signed: bool,
    },
    /// d0 = the low `bits` of s0, zero- or sign-extended to the width of d0. `cvt.s64.s32` is `bits: 32, signed`, a truncation
    /// to 32 bits is `bits: 32` into a 32-bit variable (s0 may be of either class).
    Ext {
        /// Bits taken.
        bits: u8,
        /// Sign-extend.
        signed: bool,
    },
    /// 64-bit d0 = {s1:s0} (`mov.b64 %rd, {lo, hi}`).
    Pack,
    /// d0 = low word, d1 = high word of 64-bit s0.
    Unpack,
    /// d0 = bytes of {s2:s0} chosen by s1 (PRMT without mode).
    Prmt,
    /// d0 = some value in lo..=hi (population count and the like).
    Bounded {
        /// Least value.
        lo: i64,
        /// Greatest value.
        hi: i64,
    },
    /// d0 (and d1.. for wider loads, one per word) = `bytes` read at parameter offset `off + s0` (32-bit s0).
    ParamIndexed {
        /// Constant part of the byte offset.
        off: i32,
        /// Width in bytes.
        bytes: u8,
        /// Sign-extend widths 1 and 2.
        signed: bool,
    },
    /// Predicates d0 = (s0 cmp s1) combined with s2; d1 (optional) = !(s0 cmp s1) combined with s2.
    Cmp {
        /// Relation.
        cmp: Cmp,
        /// Signed.
        signed: bool,
        /// s0 and s1 are 64-bit.
        wide: bool,
        /// Combination with s2 (use `And` and a true s2 for none).
        combine: Combine,
    },
    /// **half** as `Cmp`, comparing 64-bit numbers whose low words were compared by the `Cmp` that defined predicate s3.
    CmpX {
        /// Relation.
        cmp: Cmp,
        /// Signed.
        signed: bool,
        /// Combination with s2.
        combine: Combine,
    },
    /// Predicate d0 (and d1 with `lut1`) = truth table of predicates s0, s1, s2.
    PLut {
        /// Table of d0.
        lut0: u8,
        /// Table of d1.
        lut1: u8,
    },
    /// 1 / x seed of the 32-bit division idiom: MUFU.RCP.
    Rcp,
    /// I2F of s0; `up` = rounded up (`.RP`), as the division idiom does.
    IntToFloat {
        /// `.RP`
        up: bool,
    },
    /// F2I of s0.
    FloatToInt,
    /// Memory access; destinations receive loaded words. Sources: the words stored (local space); of a read of global memory,
    /// predicates without which it does not happen.
    Mem(Mem),
    /// d0.. = consecutive words read from global memory at the sum of the 64-bit sources and a constant. Says what the values are;
    /// the access itself is a [`Op::Mem`] of its own.
    Loaded(i64),
    /// All destinations unknown.
    Unknown(Reason),
    /// Every variable unknown from here on (a call that was not followed).
    ClobberAll,
}

/// Which memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    /// Global or generic.
    Global,
    /// Per-thread; addresses are 32-bit offsets. Used for arrays with dynamic index; the front end turns constant slots
    /// into variables where it can prove that nothing else reaches them.
    Local,
    /// Shared or constant memory: of no interest, the result is unknown.
    Other(Reason),
}

/// Direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum AccessKind {
    /// Load.
    Read,
    /// Store.
    Write,
    /// Atomic read-modify-write or reduction.
    Atomic,
}

/// A memory access.
#[derive(Clone, PartialEq, Debug)]
pub struct Mem {
    /// Memory.
    pub space: Space,
    /// Direction.
    pub kind: AccessKind,
    /// Bytes touched per thread.
    pub bytes: u32,
    /// Address.
    pub addr: Addr,
}

/// An address: see [`Mem`].
#[derive(Clone, PartialEq, Debug)]
pub enum Addr {
    /// Sum of 64-bit operands (32-bit ones for local space) and a constant.
    Sum(SmallVec<[Operand; 2]>, i64),
    /// A bulk copy: `bytes` is not in [`Mem::bytes`] but in this 32-bit operand.
    Bulk(SmallVec<[Operand; 2]>, Operand),
    /// Through the tensor map at this 64-bit address.
    TensorMap(Operand),
    /// Through a texture or surface handle (64- or 32-bit operand), `bool`: a surface.
    Handle(Operand, bool),
    /// No rule.
    Unknown(Reason),
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Inst {
    /// Predicate under which it executes.
    pub guard: Option<Operand>,
    /// Operation.
    pub op: Op,
    /// Sources. For `Mem` stores to local space: the stored words.
    pub srcs: SmallVec<[Operand; 4]>,
    /// Destinations.
    pub dsts: SmallVec<[Var; 2]>,
    /// Where it is in the code (byte offset or line), for messages.
    pub at: u32,
}
