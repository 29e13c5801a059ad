//! Decodes the tensor core operations of sm_80 to sm_90 that act on one warp.
//!
//! Those of warp groups are left to `effects_only`.

use super::floating::round;
use crate::arch::Generation;
use crate::sass::arithmetic::{Arithmetic, MatrixTy, SassRound};
use crate::sass::decode::instruction_word::{Sign, Word};
use crate::sass::inst::MachineInst;
use crate::sass::operand::InstOperand;
use smallvec::smallvec;

pub(super) fn decode(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    if w.form() != 1 || w.arch < Generation::Ampere {
        return None;
    }
    if w.base() == 0x03a {
        if w.b(72, 80) != 0 {
            return None;
        }
        i.dst = Some(w.dst(false, 1));
        i.src = smallvec![w.reg_src(24, false, 1)];
        return Some(Arithmetic::Movm);
    }
    // Metadata of a sparse factor is in a register, and two bits select its lanes. The next one is
    // of scheduling: the register is read again.
    let sparse = match w.base() {
        0x03c => w.bit(73),
        0x037 => w.bit(72),
        _ => false,
    };
    if w.b(if sparse { 51 } else { 40 }, 63) != 0 {
        return None;
    }
    let op = match w.base() {
        0x03c => halves(w)?,
        0x037 => integers(w)?,
        0x03d => bits(w)?,
        _ => {
            // Sixteen rows from sm_90 on.
            let (m, k) = [(8, 4), (16, 4), (16, 8), (16, 16)][w.b(76, 78) as usize];
            if w.arch > Generation::Hopper || m == 16 && w.arch < Generation::Hopper || w.bit(73) || w.bit(74) {
                return None;
            }
            let f64 = MatrixTy::F64;
            let (round, sparse) = (round(w), None);
            Arithmetic::Mma { m, k, a: f64, b: f64, single: false, sat: false, and: false, round, sparse }
        }
    };
    let Arithmetic::Mma { m, k, a, b, single, .. } = op else { return None };
    // Registers of a lane: the matrix's bits over 32 lanes of 32 bits.
    let share = |rows: u32, ty: MatrixTy| (rows * u32::from(k) * ty.bits() / 1024) as u8;
    let there = if sparse { u32::from(m) / 2 } else { u32::from(m) };
    let result = match (a, single) {
        (MatrixTy::F64, _) => m / 2,
        (MatrixTy::F16, false) => m / 8,
        _ => m / 4,
    };
    let neg = |at: u32, bit: u32, regs: u8| InstOperand { neg: w.bit(bit), ..w.reg_src(at, false, regs) };
    let signed = matches!(a, MatrixTy::F16 | MatrixTy::Bf16 | MatrixTy::Tf32 | MatrixTy::F64);
    i.dst = Some(w.dst(false, result));
    i.src = if signed {
        smallvec![
            neg(24, 72, share(there, a)),
            neg(32, 63, share(8, b)),
            w.slot_y(false, result, if a == MatrixTy::F64 { Sign::Neg } else { Sign::None }),
        ]
    } else {
        smallvec![
            w.reg_src(24, false, share(there, a)),
            w.reg_src(32, false, share(8, b)),
            w.reg_src(64, false, result)
        ]
    };
    if sparse {
        i.src.push(w.reg_src(40, false, 1));
    }
    Some(op)
}

/// The field of [`Arithmetic::Mma`].
fn selector(w: &Word, sparse: bool) -> Option<u8> {
    sparse.then(|| w.b(48, 50) as u8)
}

fn halves(w: &Word) -> Option<Arithmetic> {
    let ty = [MatrixTy::F16, MatrixTy::Bf16, MatrixTy::Tf32].get(w.b(82, 84) as usize).copied()?;
    let single = w.bit(76);
    let sparse = w.bit(73);
    let k = match (w.bit(75), w.bit(78), ty) {
        _ if w.bit(74) || sparse && (w.bit(63) || w.bit(72)) => return None,
        (false, false, MatrixTy::F16 | MatrixTy::Bf16) if sparse => return None,
        (false, false, _) => 8,
        (true, false, MatrixTy::F16 | MatrixTy::Bf16) => 16,
        (true, false, MatrixTy::Tf32) if sparse => 16,
        (true, true, MatrixTy::F16 | MatrixTy::Bf16) if sparse => 32,
        (false, true, MatrixTy::Tf32) if !sparse => 4,
        _ => return None,
    };
    if ty != MatrixTy::F16 && !single {
        return None;
    }
    let (round, sparse) = (SassRound::Nearest, selector(w, sparse));
    Some(Arithmetic::Mma { m: 16, k, a: ty, b: ty, single, sat: false, and: false, round, sparse })
}

fn integers(w: &Word) -> Option<Arithmetic> {
    let ty = |signed: bool, four: bool| match (signed, four) {
        (true, false) => MatrixTy::S8,
        (false, false) => MatrixTy::U8,
        (true, true) => MatrixTy::S4,
        (false, true) => MatrixTy::U4,
    };
    // Rows times columns.
    if w.b(73, 75) != 0b10 || w.bit(77) || w.bit(79) {
        return None;
    }
    let sparse = w.bit(72);
    let (a, b) = (ty(w.bit(76), w.bit(83)), ty(w.bit(78), w.bit(84)));
    let (m, k) = match (w.bit(75), w.bit(85), w.bit(86)) {
        (false, false, false) => (8, 16),
        (false, false, true) => (16, 16),
        (true, false, true) => (16, 32),
        (false, true, false) => (8, 32),
        (false, true, true) => (16, 64),
        (true, true, true) if sparse => (16, 128),
        _ => return None,
    };
    if sparse && (m == 8 || !matches!(k * a.bits() as u16, 256 | 512)) {
        return None;
    }
    // Sixteen rows of 32 nibbles share their code with 32 bytes.
    let wide = (m, k) == (8, 32) || k == 64 && !sparse;
    if a.bits() != b.bits() || (k == 16 && a.bits() == 4) || wide && a.bits() == 8 {
        return None;
    }
    let (round, sparse) = (SassRound::Nearest, selector(w, sparse));
    Some(Arithmetic::Mma { m, k, a, b, single: true, sat: w.bit(82), and: false, round, sparse })
}

fn bits(w: &Word) -> Option<Arithmetic> {
    if w.b(72, 75) != 0b100 || w.bit(77) || !w.bit(80) {
        return None;
    }
    let (m, k) = match (w.bit(75), w.bit(76)) {
        (false, false) => (8, 128),
        (true, false) => (16, 128),
        (false, true) => (16, 256),
        _ => return None,
    };
    let b1 = MatrixTy::B1;
    let (and, round, sparse) = (w.bit(78), SassRound::Nearest, None);
    Some(Arithmetic::Mma { m, k, a: b1, b: b1, single: true, sat: false, and, round, sparse })
}
