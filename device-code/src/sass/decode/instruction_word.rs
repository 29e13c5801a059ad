//! Fields of an instruction word: bit ranges (`lo..hi`, `hi` exclusive), registers, predicates,
//! source slots of the ALU.

use crate::arch::Generation;
use crate::sass::operand::{Bank, ConstRef, File, Index, InstOperand, Pred, PredSrc, Reg, Run, UReg, Value};

/// An instruction word under decoding.
#[derive(Clone, Copy)]
pub(super) struct Word {
    pub(crate) arch: Generation,
    pub(crate) bits: u128,
    pub(crate) pc: u32,
    pub(crate) opcode: u16,
}

/// What bit "negate" means in an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// The operand has no such bit.
    None,
    /// Arithmetic negation.
    Neg,
    /// Bitwise complement.
    Not,
}

impl Word {
    pub(crate) fn new(arch: Generation, bits: u128, pc: u32) -> Word {
        Word { arch, bits, pc, opcode: bits as u16 & 0xfff }
    }

    /// The operation number: opcode without the form.
    pub(crate) fn base(&self) -> u16 {
        self.opcode & 0x1ff
    }

    /// The operand form (bits 9..12).
    pub(crate) fn form(&self) -> u16 {
        self.opcode >> 9
    }

    /// Unsigned field; at most 64 bits.
    pub(crate) fn b(&self, lo: u32, hi: u32) -> u64 {
        (self.bits >> lo) as u64 & (u64::MAX >> (64 - (hi - lo)))
    }

    /// Signed field.
    pub(crate) fn s(&self, lo: u32, hi: u32) -> i64 {
        let shift = 64 - (hi - lo);
        ((self.b(lo, hi) << shift) as i64) >> shift
    }

    pub(crate) fn bit(&self, n: u32) -> bool {
        self.bits >> n & 1 != 0
    }

    pub(crate) fn r(&self, lo: u32) -> Reg {
        Reg(self.b(lo, lo + 8) as u8)
    }

    /// A uniform register: 6 bits up to sm_90, 8 bits from sm_100; URZ becomes 255.
    pub(crate) fn ur(&self, lo: u32) -> UReg {
        if self.arch >= Generation::Blackwell {
            UReg(self.b(lo, lo + 8) as u8)
        } else {
            let n = self.b(lo, lo + 6) as u8;
            UReg(if n == 63 { 255 } else { n })
        }
    }

    pub(crate) fn p(&self, lo: u32, uniform: bool) -> Pred {
        Pred { num: self.b(lo, lo + 3) as u8, uniform }
    }

    /// Predicate source at `lo..lo+3`, negated by bit `lo+3`.
    pub(crate) fn ps(&self, lo: u32, uniform: bool) -> PredSrc {
        PredSrc { pred: self.p(lo, uniform), not: self.bit(lo + 3) }
    }

    /// Predicate source stored complemented (0 = PT), negated by bit `lo+3`.
    pub(crate) fn ps_complemented(&self, lo: u32) -> PredSrc {
        PredSrc { pred: Pred { num: 7 - self.b(lo, lo + 3) as u8, uniform: false }, not: self.bit(lo + 3) }
    }

    /// The destination run at 16..24.
    pub(crate) fn dst(&self, uniform: bool, count: u8) -> Run {
        if uniform { run(File::UR, self.ur(16).0, count) } else { run(File::R, self.r(16).0, count) }
    }

    /// The register at `lo` of either file as a source.
    pub(crate) fn reg_src(&self, lo: u32, uniform: bool, regs: u8) -> InstOperand {
        let value = if uniform { Value::UReg(self.ur(lo)) } else { Value::Reg(self.r(lo)) };
        InstOperand { value, regs, neg: false, abs: false, inv: false }
    }

    fn signed(&self, mut src: InstOperand, bit: u32, sign: Sign) -> InstOperand {
        if !matches!(src.value, Value::Imm(_)) && sign != Sign::None && self.bit(bit) {
            match sign {
                Sign::Neg => src.neg = true,
                _ => src.inv = true,
            }
        }
        src
    }

    /// Source A, with its sign at bit 72.
    pub(crate) fn src_a(&self, uniform: bool, regs: u8, sign: Sign) -> InstOperand {
        self.signed(self.reg_src(24, uniform, regs), 72, sign)
    }

    /// Slot X (bits 32..64), by form; sign at bit 63.
    pub(crate) fn slot_x(&self, uniform: bool, regs: u8, sign: Sign) -> InstOperand {
        let value = match self.form() {
            2 | 4 => Value::Imm(self.b(32, 64) as i64),
            3 | 5 => Value::Const(self.constant()),
            6 | 7 => Value::UReg(self.ur(32)),
            _ if uniform => Value::UReg(self.ur(32)),
            _ => Value::Reg(self.r(32)),
        };
        self.signed(InstOperand { value, regs, neg: false, abs: false, inv: false }, 63, sign)
    }

    /// Slot X as a floating point source: sign at bit 63, absolute value at bit 62.
    pub(crate) fn slot_x_float(&self, regs: u8) -> InstOperand {
        let mut src = self.slot_x(false, regs, Sign::Neg);
        src.abs = self.bit(62) && !matches!(src.value, Value::Imm(_));
        src
    }

    /// Slot Y (bits 64..72); sign at bit 75.
    pub(crate) fn slot_y(&self, uniform: bool, regs: u8, sign: Sign) -> InstOperand {
        self.signed(self.reg_src(64, uniform, regs), 75, sign)
    }

    /// Sources B and C: forms 2, 3, 7 have C in slot X.
    pub(crate) fn src_bc(
        &self,
        uniform: bool,
        (regs_b, regs_c): (u8, u8),
        sign_b: Sign,
        sign_c: Sign,
    ) -> (InstOperand, InstOperand) {
        if matches!(self.form(), 2 | 3 | 7) {
            (self.slot_y(uniform, regs_b, sign_b), self.slot_x(uniform, regs_c, sign_c))
        } else {
            (self.slot_x(uniform, regs_b, sign_b), self.slot_y(uniform, regs_c, sign_c))
        }
    }

    /// The constant in slot X. Its low two offset bits are ignored by the hardware.
    pub(crate) fn constant(&self) -> ConstRef {
        let offset = (self.s(38, 54) & !3) as i32;
        let bank = if self.bit(91) { Bank::Bindless(self.ur(32)) } else { Bank::Number(self.b(54, 59) as u8) };
        ConstRef { bank, offset, index: Index::None }
    }

    /// Branch displacement in bytes, relative to the next instruction.
    pub(crate) fn displacement(&self) -> i64 {
        if self.arch >= Generation::Hopper {
            let n = self.b(34, 82) << 8 | self.b(16, 24);
            (((n << 8) as i64) >> 8).wrapping_mul(4)
        } else {
            self.s(34, 82).wrapping_mul(4)
        }
    }

    /// The offset in the section that a displacement leads to.
    pub(crate) fn relative(&self, displacement: i64) -> i64 {
        (i64::from(self.pc) + 16).wrapping_add(displacement)
    }
}

/// A run cut off at the end of the register file.
pub(super) fn run(file: File, first: u8, count: u8) -> Run {
    Run { file, first, count: count.min(255 - first) }
}
