//! Operations of the floating point, packed and tensor units, with all that decides their result.
//!
//! Owns the types. The places of operands are those of `Opcode`: `dst`, `src`, `psrc`. Leaves out
//! what was not measured: such forms stay `Opcode::Other`.

use super::opcode::{BoolOp, OtherKind};

/// How a floating point operation rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SassRound {
    /// To the nearest, ties to even.
    Nearest,
    /// Down.
    Minus,
    /// Up.
    Plus,
    /// Towards zero.
    Zero,
}

/// Modes of single precision arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatMode {
    /// Rounding.
    pub round: SassRound,
    /// Denormal sources and results count as zero.
    pub ftz: bool,
    /// The result is clamped to 0..=1, NaN to 0.
    pub sat: bool,
}

/// Which halves of a register a packed operand takes, low then high.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Halves {
    /// The low half for the low lane, the high half for the high one.
    Both,
    /// The register is one single precision number for both lanes.
    Single,
    /// The low half twice.
    Low,
    /// The high half twice.
    High,
}

/// Modes of packed half precision arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HalfMode {
    /// bfloat16, else binary16.
    pub bf16: bool,
    /// Denormals count as zero.
    pub ftz: bool,
    /// The result is clamped to 0..=1.
    pub sat: bool,
    /// A negative result becomes zero.
    pub relu: bool,
    /// The result of the low lane, as a single precision number, is all of the destination.
    pub single: bool,
}

/// Which numbers a matrix instruction multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MatrixTy {
    F16,
    Bf16,
    Tf32,
    F64,
    S8,
    U8,
    S4,
    U4,
    B1,
    E4m3,
    E5m2,
}

impl MatrixTy {
    /// Bits of one element.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            MatrixTy::F16 | MatrixTy::Bf16 => 16,
            MatrixTy::Tf32 => 32,
            MatrixTy::F64 => 64,
            MatrixTy::S8 | MatrixTy::U8 | MatrixTy::E4m3 | MatrixTy::E5m2 => 8,
            MatrixTy::S4 | MatrixTy::U4 => 4,
            MatrixTy::B1 => 1,
        }
    }
}

/// An operation. `a`, `b`, `c` are src\[0\], src\[1\], src\[2\].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// a + b.
    Fadd(FloatMode),
    /// a * b * 2^scale. `fmz`: zero times anything is zero.
    Fmul {
        /// Modes.
        mode: FloatMode,
        /// Zero wins over infinity and NaN.
        fmz: bool,
        /// -3 to 3.
        scale: i8,
    },
    /// a * b + c, rounded once.
    Ffma {
        /// Modes.
        mode: FloatMode,
        /// Zero wins over infinity and NaN.
        fmz: bool,
    },
    /// psrc\[0\] ? min : max of a, b.
    Fmnmx {
        /// Denormals count as zero.
        ftz: bool,
        /// A NaN among the sources is the result (else the other source).
        nan: bool,
        /// The result has the sign of the product.
        xorsign: bool,
    },
    /// psrc\[0\] ? a : b.
    Fsel {
        /// A denormal result becomes zero.
        ftz: bool,
    },
    /// (a cmp b) bop psrc\[0\] as a number, 1.0 or 0. `cmp` as in `Opcode::Fsetp`.
    Fset {
        /// Which comparisons hold.
        cmp: u8,
        /// How psrc\[0\] takes part.
        bop: BoolOp,
        /// Denormals count as zero.
        ftz: bool,
    },
    /// pdst\[0\]: the quotient a / b needs the slow path.
    Fchk,
    /// a rounded to an integer, in its own type.
    Frnd {
        /// Rounding.
        round: SassRound,
        /// Denormals count as zero.
        ftz: bool,
        /// Bytes of the number: 2, 4, 8.
        bytes: u8,
        /// 1: the number is in the high half of its register.
        half: u8,
    },
    /// a in another floating point type.
    F2f {
        /// Rounding.
        round: SassRound,
        /// Denormals count as zero.
        ftz: bool,
        /// Bytes of the source: 2, 4, 8.
        from: u8,
        /// Bytes of the result: 2, 4, 8.
        to: u8,
        /// The result of two bytes is a bfloat16.
        bf16: bool,
        /// 1: the source is in the high half of its register.
        half: u8,
    },
    /// a, an integer of 32 bits, as a single (from sm_86).
    I2fp {
        /// a is signed.
        signed: bool,
        /// Rounding: to nearest or to zero.
        round: SassRound,
    },
    /// a, a single, as a byte without sign, clamped (from sm_90). What else it can pack is not
    /// decoded.
    F2ip {
        /// Rounding.
        round: SassRound,
    },
    /// Two single precision numbers as halves: a high, b low. With `merge` a is the low half, and
    /// b are the bits of the high one.
    F2fp {
        /// bfloat16, else binary16.
        bf16: bool,
        /// A negative result becomes zero.
        relu: bool,
        /// Rounding.
        round: SassRound,
        /// One half is converted only.
        merge: bool,
    },
    /// Two numbers as ones of eight bits, clamped to what is finite: singles a (high) and b, or
    /// with `halves` the halves of a. Above them the low half of the last source (from sm_90).
    PackEight {
        /// The result is E5M2, else E4M3.
        e5m2: bool,
        /// A negative result becomes zero.
        relu: bool,
        /// From halves.
        halves: bool,
    },
    /// Two numbers of eight bits of a as halves (from sm_90).
    UnpackEight {
        /// They are E5M2, else E4M3.
        e5m2: bool,
        /// A negative result becomes zero.
        relu: bool,
        /// They are in the high half of the register.
        high: bool,
    },
    /// a + b of packed halves.
    Hadd2(HalfMode, [Halves; 2]),
    /// a * b of packed halves.
    Hmul2(HalfMode, [Halves; 2]),
    /// a * b + c of packed halves. `tensor`: the unit that does it (`.MMA`), which changes nothing.
    Hfma2 {
        /// Modes.
        mode: HalfMode,
        /// Halves of the sources.
        halves: [Halves; 3],
        /// The other unit.
        tensor: bool,
    },
    /// psrc\[0\] ? min : max of packed halves.
    Hmnmx2 {
        /// Modes.
        mode: HalfMode,
        /// Halves of the sources.
        halves: [Halves; 2],
        /// A NaN among the sources is the result.
        nan: bool,
    },
    /// Comparison of packed halves as halves: 1.0 with `float`, else all ones.
    Hset2 {
        /// Which comparisons hold.
        cmp: u8,
        /// How psrc\[0\] takes part.
        bop: BoolOp,
        /// Modes.
        mode: HalfMode,
        /// Halves of the sources.
        halves: [Halves; 2],
        /// 1.0 for true.
        float: bool,
    },
    /// Comparison of packed halves: pdst\[0\] of the low lane, pdst\[1\] of the high one; with
    /// `both` pdst\[0\] that both hold and pdst\[1\] its complement.
    Hsetp2 {
        /// Which comparisons hold.
        cmp: u8,
        /// How psrc\[0\] takes part.
        bop: BoolOp,
        /// Modes.
        mode: HalfMode,
        /// Halves of the sources.
        halves: [Halves; 2],
        /// The lanes are combined (`H_AND`).
        both: bool,
    },
    /// a + b in double precision.
    Dadd(SassRound),
    /// a * b in double precision.
    Dmul(SassRound),
    /// a * b + c in double precision, rounded once.
    Dfma(SassRound),
    /// Dot product of bytes of a with bytes (`DP4A`) or of 16-bit words of a with two bytes of b,
    /// plus c.
    Idp {
        /// Four bytes, else two words.
        four: bool,
        /// Of b the high two bytes (two words only).
        high: bool,
        /// a is signed.
        a_signed: bool,
        /// b is signed.
        b_signed: bool,
    },
    /// |a - b| + c.
    Vabsdiff {
        /// Signed.
        signed: bool,
    },
    /// |a - b| of four bytes: c added to their sum with `acc`, else packed.
    Vabsdiff4 {
        /// Signed.
        signed: bool,
        /// Sum.
        acc: bool,
    },
    /// a and b clamped to a small integer type and packed: a high, b low, above them what c has.
    I2ip {
        /// Bits of the result type: 16, 8, 4, 2.
        bits: u8,
        /// The result type is signed.
        signed: bool,
    },
    /// a, an integer of 32 bits, clamped to a small type.
    I2i {
        /// Bits of the result: 16, 8.
        bits: u8,
        /// The result is signed.
        signed: bool,
    },
    /// pdst\[0\] = lut of the signs of a, b, c; the table is as in LOP3.
    Signs {
        /// Table.
        lut: u8,
    },
    /// Product of a (`m` by `k`) and b (`k` by 8) plus c, over the warp. HMMA, IMMA, BMMA, DMMA.
    Mma {
        /// Rows: 8 or 16.
        m: u8,
        /// Terms of each dot product.
        k: u16,
        /// Elements of a.
        a: MatrixTy,
        /// Elements of b.
        b: MatrixTy,
        /// The result is single precision (of halves only: else half precision).
        single: bool,
        /// Integer results are clamped.
        sat: bool,
        /// Of bits: AND, else XOR.
        and: bool,
        /// Rounding (double precision only).
        round: SassRound,
        /// Half of a is zero and not there (`.SP`): which lanes of each four hold the metadata,
        /// src\[3\], that says which half.
        sparse: Option<u8>,
    },
    /// Product of a (64 rows) and b (`n` columns), added to c over a warp group, which goes on
    /// while it is made. HGMMA, IGMMA, QGMMA, BGMMA. a is four registers, or a pair of uniform ones
    /// with the matrix's descriptor, as b is; c counts where psrc\[0\] holds.
    GroupMma {
        /// Columns: 8 to 256.
        n: u16,
        /// Elements of a.
        a: MatrixTy,
        /// Elements of b.
        b: MatrixTy,
        /// The result is single precision (of floating point only: else half precision).
        single: bool,
        /// Integer results are clamped.
        sat: bool,
        /// The factors in shared memory whose inner index is not the contiguous one.
        transposed: [bool; 2],
        /// As of [`Arithmetic::Mma`].
        sparse: Option<u8>,
        /// The last one of a group that WARPGROUP.DEPBAR waits for.
        ends_group: bool,
    },
    /// A tile of 8 by 8 halves transposed over the warp.
    Movm,
}

impl Arithmetic {
    /// The unit that does it.
    #[must_use]
    pub const fn kind(self) -> OtherKind {
        match self {
            Arithmetic::Idp { .. }
            | Arithmetic::Vabsdiff { .. }
            | Arithmetic::Vabsdiff4 { .. }
            | Arithmetic::I2i { .. }
            | Arithmetic::Signs { .. }
            | Arithmetic::I2ip { .. } => OtherKind::Integer,
            Arithmetic::Mma { .. } | Arithmetic::GroupMma { .. } | Arithmetic::Movm => OtherKind::Tensor,
            _ => OtherKind::Float,
        }
    }
}
