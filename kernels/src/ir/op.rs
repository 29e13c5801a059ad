//! Instructions of the intermediate representation, and what each operation does.

use super::{Pure, Reason, SrcOperand, Var};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Comparison.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
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
    /// Whether it holds for two numbers in this order.
    pub(crate) fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Cmp::Lt => order.is_lt(),
            Cmp::Le => order.is_le(),
            Cmp::Gt => order.is_gt(),
            Cmp::Ge => order.is_ge(),
            Cmp::Eq => order.is_eq(),
            Cmp::Ne => order.is_ne(),
        }
    }

    /// The relation that holds where this one does not.
    #[must_use]
    pub(crate) fn negated(self) -> Cmp {
        match self {
            Cmp::Lt => Cmp::Ge,
            Cmp::Le => Cmp::Gt,
            Cmp::Gt => Cmp::Le,
            Cmp::Ge => Cmp::Lt,
            Cmp::Eq => Cmp::Ne,
            Cmp::Ne => Cmp::Eq,
        }
    }

    /// The same relation with its sides exchanged.
    #[must_use]
    pub(crate) fn mirrored(self) -> Cmp {
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Combine {
    /// and
    And,
    /// or
    Or,
    /// xor
    Xor,
}

/// Operation. `s0, s1, ..` are the sources, `d0, ..` the destinations; unless said otherwise there
/// is one destination. "Machine halves" (marked **half**) exist for SASS, where 64-bit arithmetic
/// is spread over two instructions; a front end with 64-bit variables never needs them.
#[derive(Clone, PartialEq, Debug)]
pub enum Op {
    /// d0 = s0 (any class).
    Mov,
    /// d0 = sum of all sources; d1, d2 (optional) = carry-outs.
    Add,
    /// **half** d0 = s0 + s1 + s2 + carries (the sources after the third are predicates). `Not`
    /// prefixes are bitwise.
    AddX,
    /// d0 = s0 * s1 + s2, low half; d1 (optional) = carry-out.
    Mad,
    /// **half** d0 = s0 * s1 + s2 + carry s3.
    MadX,
    /// 64-bit d0 (or d0:d1 in 32-bit variables) = s0 * s1 + s2, s0 and s1 32 bit, s2 64 bit; behind
    /// a 64-bit d0, d1 (optional) = carry-out.
    MadWide {
        /// Sign-extend s0, s1.
        signed: bool,
    },
    /// **half** The same of unsigned numbers, plus carry s3.
    MadWideX,
    /// d0 = high half of s0 * s1 + s2, where s2 has twice the width of d0 (64-bit factors: only a
    /// zero s2 is modelled).
    MulHi {
        /// Signed product.
        signed: bool,
    },
    /// d0 = (s0 << shift) + s1; d1 (optional) = carry-out.
    Lea {
        /// Shift.
        shift: u8,
    },
    /// **half** d0 = high word of ({s2:s0} << shift) + s1 (+ carry s3 when `x`); `sx`: s0 is
    /// sign-extended, s2 unused.
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
        /// Counts wrap (else they are clamped).
        wraps: bool,
    },
    /// d0 = s0 << s1 (PTX semantics: shifts of the width or more give 0).
    Shl,
    /// d0 = s0 >> s1 (shifts of the width or more give 0 or the sign).
    Shr {
        /// Arithmetic.
        signed: bool,
    },
    /// d0 = bitwise function of s0, s1, s2 by truth table (bit `4*a + 2*b + c` of `lut`); d1
    /// (optional predicate) = d0 != 0. `a & b` is 0xc0, `a | b` 0xfc, `a ^ b` 0x3c, `~a` 0x0f
    /// (missing sources: zero).
    Lop3 {
        /// Truth table.
        lut: u8,
    },
    /// d0 = (s0 compared with s1 as floating point numbers, combined with s2 as by `Cmp`); d1
    /// (optional) = the comparison's opposite, combined.
    FloatCmp {
        /// What holds: a bit each for less (1), equal (2), greater (4), not ordered (8).
        cmp: u8,
        /// Double precision.
        wide: bool,
        /// Denormal numbers count as zero.
        flush: bool,
        /// How s2 takes part.
        combine: Combine,
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
    /// d0 = the low `bits` of s0, zero- or sign-extended to the width of d0. `cvt.s64.s32` is
    /// `bits: 32, signed`, a truncation to 32 bits is `bits: 32` into a 32-bit variable (s0 may be
    /// of either class).
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
    /// d0 = s0 as a thread of the same warp has it (SHFL); s1, s2 say which lane.
    Shuffle {
        /// How the lane is computed; equal numbers mean equal ways.
        mode: u8,
    },
    /// Predicate d0 = whether the warp elected this thread (ELECT).
    Elect,
    /// Predicate d0 = whether predicate s0 holds in any thread of the warp, or in all (VOTE).
    Vote {
        /// In all.
        all: bool,
    },
    /// Predicate d0 = the answer about the generic address s0 + s1 + .. + `off` (64-bit sources).
    LiesIn {
        /// The question.
        window: Window,
        /// Constant part of the address.
        off: i64,
    },
    /// d0 = some value in lo..=hi (population count and the like).
    Bounded {
        /// Least value.
        lo: i64,
        /// Greatest value.
        hi: i64,
    },
    /// d0 (and d1.. for wider loads, one per word) = `bytes` read at parameter offset `off + s0`
    /// (32-bit s0).
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
    /// **half** as `Cmp`, comparing 64-bit numbers whose low words were compared by the `Cmp` that
    /// defined predicate s3.
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
    /// d0 = a function of s0, s1, s2 that has no form.
    Pure(Pure),
    /// I2F of s0; `up` = rounded up (`.RP`), as the division idiom does.
    IntToFloat {
        /// `.RP`
        up: bool,
    },
    /// Memory access; destinations receive loaded words. Sources: the words stored (in local space,
    /// and in shared space, where none means that they are not known); of a read of global memory,
    /// predicates without which it does not happen; of an atomic, the value that a compare-and-swap
    /// compares.
    Mem(Mem),
    /// d0.. = consecutive words read from global memory at the sum of the 64-bit sources and a
    /// constant. Says what the values are; the access itself is a [`Op::Mem`] of its own.
    Loaded(i64),
    /// Orders accesses, and computes nothing.
    Sync(Sync),
    /// What counts on the way from a store to a bulk operation. [`super::proxy_paths`] takes these
    /// out again.
    Proxy(ProxyStep),
    /// All destinations unknown.
    Unknown(Reason),
    /// Every variable unknown from here on (a call that was not followed).
    ClobberAll,
}

/// What orders accesses to memory, beyond the block: fences, the orders of atomic accesses, and the
/// barriers that hand such an order on to the other threads of a block (PTX ISA, "Memory
/// Consistency Model", "Causality order").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Sync {
    /// What atomic loads before it saw comes before what follows it.
    Acquire,
    /// What precedes it comes before the atomic stores behind it.
    Release,
    /// Both.
    Fence,
    /// Threads of a block meet at the barrier of this number (the first source, if it is told).
    Barrier,
    /// The thread arrives there, and does not wait for the others.
    BarrierArrive,
    /// The thread arrives at the barrier of its cluster.
    ClusterArrive,
    /// Threads of a cluster meet.
    ClusterWait,
    /// Threads of a warp meet.
    WarpBarrier,
    /// Machine code joins the threads of a warp. (No promise of the source's.)
    Join,
    /// The thread, or a copy that it starts, arrives at an `mbarrier`.
    PhaseArrive,
    /// The thread waits for a phase of an `mbarrier`.
    PhaseWait,
    /// The thread waits for the grids that its own depends on (`griddepcontrol.wait`).
    GridWait,
    /// The block lets dependent grids begin (`griddepcontrol.launch_dependents`).
    GridTrigger,
}

/// What threads do about the two proxies of shared memory (PTX ISA, "Proxies").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProxyStep {
    /// The thread writes through the generic proxy.
    Store,
    /// A fence makes that known to the asynchronous proxy (`fence.proxy.async`).
    Fence,
    /// A bulk or tensor copy, or a reduction, reads through the asynchronous proxy.
    Bulk,
}

impl Sync {
    /// Orders behind atomic loads.
    pub(crate) fn acquires(self) -> bool {
        matches!(self, Sync::Acquire | Sync::Fence)
    }

    /// Orders before atomic stores.
    pub(crate) fn releases(self) -> bool {
        matches!(self, Sync::Release | Sync::Fence)
    }

    /// Threads meet.
    pub(crate) fn is_barrier(self) -> bool {
        let of_block = matches!(self, Sync::Barrier | Sync::BarrierArrive | Sync::WarpBarrier);
        of_block || matches!(self, Sync::ClusterArrive | Sync::ClusterWait)
    }
}

/// Which memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum MemSpace {
    /// Global or generic.
    Global,
    /// Per-thread; addresses are 32-bit offsets. Used for arrays with dynamic index; the front end
    /// turns constant slots into variables where it can prove that nothing else reaches them.
    Local,
    /// Of the block; addresses are 32-bit. Only given where a load may be told from the stores it
    /// sees ([`crate::lower_sass`]).
    Shared,
    /// A store to a 64-bit address that may lie in shared memory, beside those to `Shared`. What it
    /// does to global memory is a [`Op::Mem`] of its own.
    Generic,
    /// A step of making a tensor map. What it does to global memory is a [`Op::Mem`] of its own.
    Map(MapStep),
}

/// How a kernel makes a tensor map (PTX ISA, "tensormap.replace" and "tensormap.cp_fenceproxy").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum MapStep {
    /// The map at a 32-bit address of shared memory gets the tensor's address, the only source.
    Shared,
    /// The same of a map at a 64-bit address.
    Global,
    /// Bytes of a map go to a 64-bit address. The sources are 32-bit ones: together they are where
    /// the bytes come from in shared memory.
    Copy,
    /// A word goes to a 64-bit address, the only source.
    Word,
    /// Words of shared memory: the sources go to a 32-bit address; without any, something that is
    /// not known. An address that is not known may be any.
    Store,
    /// The destinations are words at a 32-bit address of shared memory.
    Load,
}

/// Direction, and whether other kernels may access the bytes at the same time.
///
/// A load or store with an order (`.relaxed` and stronger, `.volatile`) is atomic. Only scopes that
/// reach beyond a cluster count: towards another kernel, what is atomic within a block or a cluster
/// is a plain read, a plain write or both (PTX ISA, "Morally strong operations").
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum AccessKind {
    /// Load.
    Read,
    /// Store.
    Write,
    /// Atomic read-modify-write or reduction.
    Atomic,
    /// Atomic load.
    AtomicRead,
    /// Atomic store.
    AtomicWrite,
}

impl AccessKind {
    /// The kind of a load.
    #[must_use]
    pub(crate) fn load(atomic: bool) -> AccessKind {
        if atomic { AccessKind::AtomicRead } else { AccessKind::Read }
    }

    /// The kind of a store.
    #[must_use]
    pub(crate) fn store(atomic: bool) -> AccessKind {
        if atomic { AccessKind::AtomicWrite } else { AccessKind::Write }
    }

    /// The bytes may change.
    #[must_use]
    pub(crate) fn writes(self) -> bool {
        !matches!(self, AccessKind::Read | AccessKind::AtomicRead)
    }

    /// The old value of the bytes matters.
    #[must_use]
    pub(crate) fn reads(self) -> bool {
        !matches!(self, AccessKind::Write | AccessKind::AtomicWrite)
    }

    /// It races with no other atomic access.
    #[must_use]
    pub(crate) fn is_atomic(self) -> bool {
        !matches!(self, AccessKind::Read | AccessKind::Write)
    }
}

/// A question about a generic address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Window {
    /// Does it lie in shared memory?
    Shared,
    /// Does it lie in local memory?
    Local,
    /// Does it lie in neither of the two?
    Neither,
}

/// A memory access.
#[derive(Clone, PartialEq, Debug)]
pub struct Mem {
    /// Memory.
    pub(crate) space: MemSpace,
    /// Direction.
    pub(crate) kind: AccessKind,
    /// Bytes touched per thread.
    pub(crate) bytes: u32,
    /// Address.
    pub addr: Addr,
}

/// An address: see [`Mem`].
#[derive(Clone, PartialEq, Debug)]
pub enum Addr {
    /// Sum of 64-bit operands (32-bit ones for local and shared space) and a constant.
    Sum(SmallVec<[SrcOperand; 2]>, i64),
    /// A bulk copy: `bytes` is not in [`Mem::bytes`] but in this 32-bit operand.
    Bulk(SmallVec<[SrcOperand; 2]>, SrcOperand),
    /// Through the tensor map at this 64-bit address: the tile at these 32-bit coordinates, along
    /// the innermost axis first; without any, some part of the tensor.
    TensorMap(SrcOperand, SmallVec<[SrcOperand; 5]>),
    /// Through a texture or surface handle (64- or 32-bit operand), `bool`: a surface.
    Handle(SrcOperand, bool),
    /// Anywhere in what these operands point into, or what they point to points into: arguments of
    /// a call that is not followed.
    Passed(SmallVec<[SrcOperand; 2]>),
    /// No rule.
    Unknown(Reason),
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Inst {
    /// Predicate under which it executes.
    pub(crate) guard: Option<SrcOperand>,
    /// Operation.
    pub op: Op,
    /// Sources. For `Mem` stores to local or shared space: the stored words.
    pub(crate) srcs: SmallVec<[SrcOperand; 4]>,
    /// Destinations.
    pub(crate) dsts: SmallVec<[Var; 2]>,
    /// Where it is in the code (byte offset or line), for messages.
    pub at: u32,
}
