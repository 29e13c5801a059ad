//! Decodes the products of warp groups of sm_90a: HGMMA, IGMMA, BGMMA, QGMMA. (Fields were read off
//! what `nvdisasm` prints when single bits of what ptxas makes of `wgmma` change.)
//!
//! Leaves to `effects_only` what ptxas was not seen to emit: metadata with an offset (REGOFFSET),
//! scoreboards beside the one of groups.

use crate::arch::Generation;
use crate::sass::arithmetic::{Arithmetic, MatrixTy};
use crate::sass::decode::instruction_word::Word;
use crate::sass::inst::MachineInst;
use crate::sass::operand::{InstOperand, Pred, PredSrc, UReg, Value};
use smallvec::smallvec;

pub(super) fn decode(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    debug_assert_eq!(w.arch, Generation::Hopper);
    // The first factor is named by a descriptor, or in registers.
    let registers = match w.form() {
        4 => false,
        6 => true,
        _ => return None,
    };
    let ends_group = match w.b(84, 87) {
        0 => true,
        7 => false,
        _ => return None,
    };
    let sparse = w.bit(73) && w.base() != 0x1f2;
    if sparse && w.bit(74) {
        return None;
    }
    let (n, a, b) = match w.base() {
        0x1f0 => halves(w, sparse)?,
        0x1f1 => integers(w, sparse)?,
        0x1f2 => bits(w)?,
        _ => eights(w, sparse)?,
    };
    let floats = matches!(w.base(), 0x1f0 | 0x1f3);
    let single = floats && w.bit(75);
    if matches!(a, MatrixTy::Bf16 | MatrixTy::Tf32) && !single {
        return None;
    }
    let transposed = if w.base() == 0x1f0 { [!registers && w.bit(61), w.bit(62)] } else { [false; 2] };
    let sums = if floats && !single { n / 4 } else { n / 2 } as u8;
    // Of four uniform registers the first two are the descriptor of the first factor, if it has
    // one, and the others that of the second.
    let first = w.b(if registers { 32 } else { 24 }, if registers { 38 } else { 30 }) as u8;
    if first > 59 {
        return None;
    }
    let descriptor = |at: u8, neg: bool| InstOperand { regs: 2, neg, ..InstOperand::ureg(UReg(first + at)) };
    let factor_a = if registers {
        InstOperand { neg: floats && w.bit(72), ..w.reg_src(24, false, 4) }
    } else {
        descriptor(0, floats && w.bit(72))
    };
    i.dst = Some(w.dst(false, sums));
    i.src = smallvec![factor_a, descriptor(2, floats && w.bit(63)), w.reg_src(64, false, sums)];
    if sparse {
        i.src.push(w.reg_src(40, false, 1));
    }
    // The predicate's number is stored as its complement.
    i.psrc[0] = PredSrc { pred: Pred { num: 7 - w.b(87, 90) as u8, uniform: true }, not: w.bit(90) };
    let runs_over = |at: &InstOperand| matches!(at.value, Value::Reg(r) if !r.is_zero() && r.0 > 255 - at.regs);
    if i.dst.is_none_or(|run| run.is_dropped() || run.count != sums) || i.src.iter().any(runs_over) {
        return None;
    }
    let sat = w.base() == 0x1f1 && w.bit(75);
    let sparse = sparse.then(|| w.b(48, 50) as u8);
    Some(Arithmetic::GroupMma { n, a, b, single, sat, transposed, sparse, ends_group })
}

/// Columns in steps of eight, and types.
type Shape = (u16, MatrixTy, MatrixTy);

fn eighths(w: &Word) -> u16 {
    (w.b(53, 58) as u16 + 1) * 8
}

fn halves(w: &Word, sparse: bool) -> Option<Shape> {
    let ty = [MatrixTy::F16, MatrixTy::Bf16, MatrixTy::Tf32].get(w.b(76, 78) as usize).copied()?;
    // Bit 58 halves the terms, bit 59 doubles those of a sparse product.
    let terms = match (w.bit(58), w.bit(59), sparse) {
        (true, false, false) => 8,
        (false, false, _) => 16,
        (false, true, true) => 32,
        _ => return None,
    };
    let whole = 256 / ty.bits() * if sparse { 2 } else { 1 };
    (terms == whole).then(|| (eighths(w), ty, ty))
}

/// Columns of products of integers: in steps of eight up to 32, of sixteen above.
fn columns(step: u64) -> Option<u16> {
    match step as u16 {
        step @ 0..4 => Some((step + 1) * 8),
        step @ 4..18 => Some((step - 1) * 16),
        _ => None,
    }
}

fn integers(w: &Word, sparse: bool) -> Option<Shape> {
    let code = w.b(53, 59).checked_sub(u64::from(sparse))?;
    if code % 3 != 0 || w.bit(77) || w.bit(83) {
        return None;
    }
    let ty = |signed| if signed { MatrixTy::S8 } else { MatrixTy::U8 };
    Some((columns(code / 3)?, ty(w.bit(76)), ty(w.bit(82))))
}

fn bits(w: &Word) -> Option<Shape> {
    if w.bit(77) || !w.bit(78) || w.bit(79) || !w.bit(80) {
        return None;
    }
    Some((columns(w.b(53, 59))?, MatrixTy::B1, MatrixTy::B1))
}

fn eights(w: &Word, sparse: bool) -> Option<Shape> {
    if w.bit(58) != sparse {
        return None;
    }
    let ty = |wide| if wide { MatrixTy::E5m2 } else { MatrixTy::E4m3 };
    Some((eighths(w), ty(w.bit(76)), ty(w.bit(77))))
}
