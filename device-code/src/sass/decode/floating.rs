//! Decodes single and double precision arithmetic, packed halves and the integer dot products.
//!
//! A form that was not measured gives `None` and is left to `effects_only`.

use super::conversion;
use super::forms;
use super::tensor;
use crate::arch::Generation;
use crate::sass::arithmetic::{Arithmetic, FloatMode, HalfMode, Halves, SassRound};
use crate::sass::decode::instruction_word::{Sign, Word};
use crate::sass::inst::MachineInst;
use crate::sass::opcode::BoolOp;
use crate::sass::operand::{InstOperand, Value};
use smallvec::smallvec;

/// Decodes into `i`, which is as it was where this returns `None`.
pub(super) fn decode(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    if w.arch > Generation::Hopper || w.arch < Generation::Turing || !forms(w, 0b1111_1110) {
        return None;
    }
    match w.base() {
        0x020 | 0x021 | 0x023 => single(w, i),
        0x008 | 0x009 | 0x00a | 0x102 => select(w, i),
        0x028 | 0x029 | 0x02b => double(w, i),
        0x030..=0x035 | 0x040 => half(w, i),
        0x014 | 0x015 | 0x026 => integer(w, i),
        0x01f => signs(w, i),
        0x104 | 0x107 | 0x110 | 0x113 | 0x038 | 0x039 | 0x03e | 0x043 | 0x045 => conversion::decode(w, i),
        0x037 | 0x03a | 0x03c | 0x03d | 0x03f => tensor::decode(w, i),
        _ => None,
    }
}

pub(super) fn round(w: &Word) -> SassRound {
    [SassRound::Nearest, SassRound::Minus, SassRound::Plus, SassRound::Zero][w.b(78, 80) as usize]
}

fn mode(w: &Word) -> FloatMode {
    FloatMode { round: round(w), ftz: w.bit(80), sat: w.bit(77) }
}

/// Source A of `regs` registers: negation at 72, absolute value at 73.
fn source_a(w: &Word, regs: u8, abs: bool) -> InstOperand {
    InstOperand { abs: abs && w.bit(73), ..w.src_a(false, regs, Sign::Neg) }
}

/// Slot Y: negation at 75, absolute value at 74.
fn source_y(w: &Word, regs: u8) -> InstOperand {
    InstOperand { abs: w.bit(74), ..w.slot_y(false, regs, Sign::Neg) }
}

/// Slot X. An immediate of double precision is the high word of a number.
fn source_x(w: &Word, regs: u8) -> InstOperand {
    let mut x = w.slot_x_float(regs);
    if let (2, Value::Imm(v)) = (regs, x.value) {
        x.value = Value::Imm(v << 32);
    }
    x
}

/// The second source of an addition, which is in either slot.
fn addend(w: &Word, regs: u8) -> InstOperand {
    if w.form() == 1 && w.base() == 0x029 { source_y(w, regs) } else { source_x(w, regs) }
}

fn swapped(w: &Word) -> bool {
    matches!(w.form(), 2 | 3 | 7)
}

fn single(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    let fmz = w.bit(76);
    let (op, src) = match w.base() {
        0x020 if !swapped(w) && w.b(84, 87) != 0 => {
            let scale = w.b(84, 87) as i8 - 4;
            (Arithmetic::Fmul { mode: mode(w), fmz, scale }, smallvec![source_a(w, 1, true), source_x(w, 1)])
        }
        0x021 => (Arithmetic::Fadd(mode(w)), smallvec![source_a(w, 1, true), addend(w, 1)]),
        0x023 => {
            let (x, y) = (source_x(w, 1), source_y(w, 1));
            let (b, c) = if swapped(w) { (y, x) } else { (x, y) };
            (Arithmetic::Ffma { mode: mode(w), fmz }, smallvec![source_a(w, 1, true), b, c])
        }
        _ => return None,
    };
    i.dst = Some(w.dst(false, 1));
    i.src = src;
    Some(op)
}

fn bool_op(n: u64) -> Option<BoolOp> {
    Some(match n {
        0 => BoolOp::And,
        1 => BoolOp::Or,
        2 => BoolOp::Xor,
        _ => return None,
    })
}

fn select(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    if swapped(w) {
        return None;
    }
    let ftz = w.bit(80);
    let op = match w.base() {
        0x008 => Arithmetic::Fsel { ftz },
        // The sign of the product: from sm_86.
        0x009 => Arithmetic::Fmnmx { ftz, nan: w.bit(81), xorsign: w.bit(82) },
        0x00a => Arithmetic::Fset { cmp: w.b(76, 80) as u8, bop: bool_op(w.b(74, 76))?, ftz },
        0x102 => Arithmetic::Fchk,
        _ => return None,
    };
    if op == Arithmetic::Fchk {
        i.pdst[0] = w.p(81, false);
    } else {
        i.dst = Some(w.dst(false, 1));
        i.psrc[0] = w.ps(87, false);
    }
    i.src = smallvec![source_a(w, 1, true), source_x(w, 1)];
    Some(op)
}

fn double(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    let round = round(w);
    let (x, y) = (source_x(w, 2), source_y(w, 2));
    let a = source_a(w, 2, true);
    let (op, src) = match w.base() {
        0x028 if !swapped(w) => (Arithmetic::Dmul(round), smallvec![a, x]),
        0x029 => (Arithmetic::Dadd(round), smallvec![a, addend(w, 2)]),
        0x02b => {
            let (b, c) = if swapped(w) { (y, x) } else { (x, y) };
            (Arithmetic::Dfma(round), smallvec![a, b, c])
        }
        _ => return None,
    };
    i.dst = Some(w.dst(false, 2));
    i.src = src;
    Some(op)
}

fn halves(n: u64) -> Halves {
    [Halves::Both, Halves::Single, Halves::Low, Halves::High][n as usize]
}

fn half(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    if w.base() == 0x035 && w.arch < Generation::Ampere {
        return None;
    }
    let fused = matches!(w.base(), 0x031 | 0x035);
    // Only some of the operations know bfloat16 before sm_90.
    let typed = fused || w.base() == 0x040 || w.arch >= Generation::Hopper;
    let compares = matches!(w.base(), 0x033 | 0x034);
    let mut mode = HalfMode {
        // Comparisons have a second predicate there.
        bf16: typed && w.bit(if compares { 65 } else { 85 }),
        ftz: w.bit(80),
        sat: w.bit(77),
        relu: fused && w.bit(79),
        single: w.bit(78),
    };
    if w.bit(78) && w.bit(85) && fused {
        return None;
    }
    let a = source_a(w, 1, true);
    let ha = halves(w.b(74, 76));
    let immediate = matches!(w.form(), 2 | 4);
    let x = w.slot_x_float(1);
    let hx = if immediate { Halves::Both } else { halves(w.b(60, 62)) };
    let psrc = w.ps(87, false);
    if compares {
        (mode.sat, mode.single) = (false, false);
    }
    if w.base() == 0x040 {
        mode.sat = false;
    }
    if matches!(w.base(), 0x031 | 0x032 | 0x035) && w.bit(76) {
        // `.FMZ`
        return None;
    }
    let op = match w.base() {
        0x030 => Arithmetic::Hadd2(mode, [ha, hx]),
        0x032 => Arithmetic::Hmul2(mode, [ha, hx]),
        0x031 | 0x035 => {
            if mode.relu && !psrc.always() {
                return None;
            }
            let mut y = w.reg_src(64, false, 1);
            (y.neg, y.abs) = (w.bit(84), w.bit(83));
            let hy = halves(w.b(81, 83));
            let tensor = w.base() == 0x035;
            i.dst = Some(w.dst(false, 1));
            let (b, c, hb, hc) = if swapped(w) { (y, x, hy, hx) } else { (x, y, hx, hy) };
            i.src = smallvec![a, b, c];
            return Some(Arithmetic::Hfma2 { mode, halves: [ha, hb, hc], tensor });
        }
        0x040 => Arithmetic::Hmnmx2 { mode, halves: [ha, hx], nan: w.bit(81) },
        0x033 => Arithmetic::Hset2 {
            cmp: w.b(76, 80) as u8,
            bop: bool_op(w.b(69, 71))?,
            mode,
            halves: [ha, hx],
            float: w.bit(71),
        },
        0x034 => Arithmetic::Hsetp2 {
            cmp: w.b(76, 80) as u8,
            bop: bool_op(w.b(69, 71))?,
            mode,
            halves: [ha, hx],
            both: w.bit(71),
        },
        _ => return None,
    };
    if w.base() == 0x034 {
        i.pdst = [w.p(81, false), w.p(84, false)];
    } else {
        i.dst = Some(w.dst(false, 1));
    }
    if compares || w.base() == 0x040 {
        i.psrc[0] = psrc;
    }
    i.src = smallvec![a, x];
    Some(op)
}

/// PLOP3 of registers. The second predicate and its table are not measured.
fn signs(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    if w.form() != 1 || w.b(84, 87) != 7 || w.b(16, 24) != 0 {
        return None;
    }
    i.pdst[0] = w.p(81, false);
    i.src = smallvec![w.reg_src(24, false, 1), w.slot_x(false, 1, Sign::None), w.slot_y(false, 1, Sign::None)];
    Some(Arithmetic::Signs { lut: w.b(72, 80) as u8 })
}

fn integer(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    let op = match w.base() {
        // A predicate result is not measured.
        0x014 | 0x015 if w.b(81, 84) != 7 => return None,
        0x014 => Arithmetic::Vabsdiff { signed: w.bit(73) },
        0x015 => Arithmetic::Vabsdiff4 { signed: w.bit(73), acc: w.bit(75) },
        _ => Arithmetic::Idp { four: !w.bit(76), high: w.bit(77), a_signed: w.bit(73), b_signed: w.bit(74) },
    };
    if let Arithmetic::Idp { four: true, high: true, .. } = op {
        return None;
    }
    let sign_c = if w.base() == 0x026 { Sign::Neg } else { Sign::None };
    i.dst = Some(w.dst(false, 1));
    let (b, c) = w.src_bc(false, (1, 1), Sign::None, sign_c);
    i.src = smallvec![w.reg_src(24, false, 1), b, c];
    Some(op)
}
