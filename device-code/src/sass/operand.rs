//! What an instruction names: registers, predicates, constants, immediates, memory operands.
//!
//! Owns these types. Zero registers are normalised: `RZ` and `URZ` are number 255 on every
//! architecture, `PT` and `UPT` are number 7.

use std::fmt;

/// A per-thread 32-bit register, R0 to R254; 255 is RZ, which reads as zero and drops what is
/// written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u8);

/// A warp-uniform 32-bit register; 255 is URZ (also on architectures that encode it as 63).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UReg(pub u8);

impl Reg {
    /// The zero register.
    pub(crate) const RZ: Reg = Reg(255);
    /// The stack pointer, by convention of the compiler.
    pub const SP: Reg = Reg(1);
    /// True for RZ.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 255
    }
}

impl UReg {
    /// The zero register.
    pub(crate) const URZ: UReg = UReg(255);
    /// True for URZ.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 255
    }
}

/// A predicate register: P0 to P6 or UP0 to UP6; 7 is PT (always true; as a destination: dropped).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pred {
    /// 0 to 6, or 7 for PT.
    pub num: u8,
    /// A predicate of the uniform datapath (UP).
    pub uniform: bool,
}

impl Pred {
    /// The constant true.
    pub(crate) const PT: Pred = Pred { num: 7, uniform: false };
    /// True for PT and UPT.
    #[must_use]
    pub const fn is_true(self) -> bool {
        self.num == 7
    }
}

/// A predicate as a source: read, and negated when `not`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PredSrc {
    /// The register.
    pub pred: Pred,
    /// The value used is the register's complement.
    pub not: bool,
}

impl PredSrc {
    /// The constant true.
    pub const TRUE: PredSrc = PredSrc { pred: Pred::PT, not: false };
    /// True when the value is the constant true (plain PT).
    #[must_use]
    pub const fn always(self) -> bool {
        self.pred.is_true() && !self.not
    }
    /// True when the value is the constant false (`!PT`).
    #[must_use]
    pub const fn never(self) -> bool {
        self.pred.is_true() && self.not
    }
}

/// Where a constant comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bank {
    /// `c[n]`: 0 parameters and launch dimensions, 2 jump tables, 3 `__constant__` data, 4
    /// addresses of globals.
    Number(u8),
    /// `cx[UR]`: the bank is named by a descriptor in a uniform register.
    Bindless(UReg),
}

/// A register that is added to a constant's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Index {
    /// The offset is a number.
    None,
    /// A per-thread register (LDC).
    Reg(Reg),
    /// A uniform register (ULDC, LDCU).
    UReg(UReg),
}

/// A place in a constant bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConstRef {
    /// The bank.
    pub bank: Bank,
    /// Byte offset, signed; the index is added to it.
    pub offset: i32,
    /// Added to the offset, in bytes.
    pub index: Index,
}

impl ConstRef {
    /// The byte of its bank that a reference without an index names. Banks have 64 KiB, and
    /// instructions write the places of the upper half as negative numbers: `c[0x0][-0x6878]` in a
    /// kernel with 32,000 bytes of parameters (`nvcc` 13.0, 8.0).
    #[must_use]
    pub fn place(self) -> Option<u32> {
        (self.index == Index::None).then_some(u32::from(self.offset as u16))
    }

    /// What is added to the index, or [`ConstRef::place`] where there is none.
    #[must_use]
    pub fn displacement(self) -> i64 {
        self.place().map_or(i64::from(self.offset), i64::from)
    }
}

/// The value of a source operand before negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A register, or the aligned run that starts there (see [`InstOperand::regs`]).
    Reg(Reg),
    /// A uniform register, or the run that starts there.
    UReg(UReg),
    /// An immediate. 32-bit ones are zero-extended bit patterns (0..2^32); the 64-bit immediates of
    /// `.64` operations (sm_120) are already sign- or zero-extended to 64 bits as the operation
    /// does.
    Imm(i64),
    /// A constant bank entry read in place.
    Const(ConstRef),
}

/// A source operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InstOperand {
    /// What is read.
    pub value: Value,
    /// How many 32-bit registers (or 4-byte constant words) are read: 1, 2 (pair) or 4.
    pub regs: u8,
    /// Arithmetic negation of the value read.
    pub neg: bool,
    /// Absolute value, before negation (floating point only).
    pub abs: bool,
    /// Bitwise complement of the value read (the same encoding bit as `neg`, in `.X` operations).
    pub inv: bool,
}

impl InstOperand {
    /// One register, unmodified.
    #[must_use]
    pub const fn reg(r: Reg) -> InstOperand {
        InstOperand { value: Value::Reg(r), regs: 1, neg: false, abs: false, inv: false }
    }
    /// One uniform register, unmodified.
    #[must_use]
    pub const fn ureg(r: UReg) -> InstOperand {
        InstOperand { value: Value::UReg(r), regs: 1, neg: false, abs: false, inv: false }
    }
    /// An immediate, unmodified.
    #[must_use]
    pub(crate) const fn imm(v: i64) -> InstOperand {
        InstOperand { value: Value::Imm(v), regs: 1, neg: false, abs: false, inv: false }
    }
    /// True when the value read is zero: RZ, URZ or the immediate 0 (a complement of it is not).
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        !self.inv
            && match self.value {
                Value::Reg(r) => r.is_zero(),
                Value::UReg(r) => r.is_zero(),
                Value::Imm(v) => v == 0,
                Value::Const(_) => false,
            }
    }
    /// The immediate when the operand is one (immediates carry no modifiers).
    #[must_use]
    pub const fn as_imm(&self) -> Option<i64> {
        match self.value {
            Value::Imm(v) => Some(v),
            _ => None,
        }
    }
}

/// A register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum File {
    /// Per-thread registers.
    R,
    /// Uniform registers.
    UR,
}

/// A run of registers that an instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// Which file.
    pub file: File,
    /// First register of the run; 255 means the result is dropped.
    pub first: u8,
    /// Number of registers (1, 2, 4, 8, or more for tensor results). The run never goes past 254.
    pub count: u8,
}

impl Run {
    /// True when nothing is written (RZ or URZ).
    #[must_use]
    pub const fn is_dropped(self) -> bool {
        self.first == 255 || self.count == 0
    }
    /// The register numbers written (empty when dropped).
    pub fn numbers(self) -> impl Iterator<Item = u8> {
        let end = if self.is_dropped() { 0 } else { (u16::from(self.first) + u16::from(self.count)).min(255) };
        (u16::from(self.first)..end).map(|n| n as u8)
    }
    /// True when the run writes this register.
    #[must_use]
    pub(crate) fn contains(self, file: File, number: u8) -> bool {
        file == self.file
            && !self.is_dropped()
            && number >= self.first
            && number != 255
            && u16::from(number) < u16::from(self.first) + u16::from(self.count)
    }
}

/// An address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressSpace {
    /// Global memory: the address is a device address.
    Global,
    /// Generic: global, shared or local, decided by the address (see the window special registers).
    Generic,
    /// Shared memory of the block, 32-bit byte addresses.
    Shared,
    /// Shared memory of another block of the cluster.
    RemoteShared,
    /// Local memory of the thread, 32-bit byte addresses.
    Local,
    /// A tensor map in memory: `ubase` is the address of the map, the bytes touched are described
    /// inside it.
    TensorMap,
    /// A texture or surface handle: the bytes touched are described by the handle.
    Handle,
    /// Tensor memory of sm_100a, no bytes of global memory.
    Tensor,
}

/// What is done to the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemEffect {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes atomically (the old value may be returned or not).
    Atomic,
    /// Only a hint: prefetch or cache control. Neither a read nor a write.
    Hint,
}

/// Who else may access the bytes at the same time: the order and scope of an access (`STRONG.GPU`
/// and the like).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Strength {
    /// Nobody, or it is not encoded.
    Weak,
    /// Threads of the same block (`STRONG.CTA`, `STRONG.SM`).
    Block,
    /// Threads of other kernels of the device (`STRONG.GPU`).
    Device,
    /// Those, and the host and other devices (`STRONG.SYS`, `MMIO.SYS`).
    System,
}

/// A memory operand. The address is `base (64 bits when base64, else its 32 bits zero-extended) *
/// scale + ubase + offset`; absent parts are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemOperand {
    /// Address space.
    pub space: AddressSpace,
    /// Kind of access.
    pub access: MemEffect,
    /// Its order and scope.
    pub strength: Strength,
    /// Bytes touched by one thread; 0 when the size is not in the encoding (bulk copies, tensor
    /// maps, textures).
    pub bytes: u16,
    /// Per-thread base register (RZ when absent).
    pub base: Reg,
    /// The base is a register pair holding a 64-bit address.
    pub base64: bool,
    /// The base is multiplied by this (shared memory only; else 1).
    pub scale: u8,
    /// Uniform address term; `None` when absent. For global and generic memory it is a pair (64
    /// bits), for shared and local memory one register.
    pub ubase: Option<UReg>,
    /// Signed byte offset.
    pub offset: i64,
    /// Uniform register pair holding the memory descriptor: **no part of the address**.
    pub(crate) desc: Option<UReg>,
}

impl MemOperand {
    /// An operand with no address parts.
    #[must_use]
    pub(crate) const fn new(space: AddressSpace, access: MemEffect, bytes: u16) -> MemOperand {
        let (base, strength) = (Reg::RZ, Strength::Weak);
        MemOperand { space, access, strength, bytes, base, base64: false, scale: 1, ubase: None, offset: 0, desc: None }
    }
    /// True for the spaces that can reach global memory by an address.
    #[must_use]
    pub(crate) const fn reaches_global(&self) -> bool {
        matches!(self.space, AddressSpace::Global | AddressSpace::Generic)
    }
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() { f.write_str("RZ") } else { write!(f, "R{}", self.0) }
    }
}

impl fmt::Display for UReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() { f.write_str("URZ") } else { write!(f, "UR{}", self.0) }
    }
}

impl fmt::Display for Pred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let u = if self.uniform { "U" } else { "" };
        if self.is_true() { write!(f, "{u}PT") } else { write!(f, "{u}P{}", self.num) }
    }
}

impl fmt::Display for PredSrc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.not { "!" } else { "" }, self.pred)
    }
}

macro_rules! debug_as_display {
    ($($t:ty),*) => {$(
        impl fmt::Debug for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(self, f) }
        }
    )*};
}
debug_as_display!(Reg, UReg, Pred, PredSrc);
