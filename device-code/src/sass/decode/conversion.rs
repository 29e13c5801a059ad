//! Decodes conversions: between floating point types, to and from integers, and MUFU.
//!
//! Sizes in the encoding are log2 of bytes.

use super::floating::round;
use crate::arch::Generation;
use crate::sass::arithmetic::{Arithmetic, SassRound};
use crate::sass::decode::instruction_word::{Sign, Word};
use crate::sass::inst::MachineInst;
use crate::sass::opcode::Opcode;
use smallvec::smallvec;

fn regs(log2: u64) -> u8 {
    if log2 == 3 { 2 } else { 1 }
}

/// I2F and F2I.
pub(super) fn convert(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    i.dst = Some(w.dst(false, regs(w.b(75, 77))));
    i.src = smallvec![w.slot_x(false, regs(w.b(84, 86)), Sign::None)];
    let round = w.b(78, 80) as u8;
    let (from, to) = (1 << w.b(84, 86), 1 << w.b(75, 77));
    let part = if w.form() == 4 { 0 } else { w.b(60, 62) as u8 };
    Some(match w.base() {
        0x106 | 0x112 => Opcode::I2f { signed: w.bit(74), round, from, to, part },
        _ => {
            i.src = smallvec![w.slot_x_float(regs(w.b(84, 86)))];
            let nan_zero = w.bit(77);
            let part = if from == 2 { part } else { 0 };
            Opcode::F2i { signed: w.bit(72), round, ftz: w.bit(80), from, to, part, nan_zero }
        }
    })
}

pub(super) fn mufu(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    // One bit up to sm_89, a format after that.
    let half = if w.arch >= Generation::Hopper { w.b(72, 74) != 0 } else { w.bit(73) };
    let part = if half && w.form() != 4 { w.b(60, 62) as u8 } else { 0 };
    i.dst = Some(w.dst(false, 1));
    i.src = smallvec![w.slot_x_float(1)];
    Some(Opcode::Mufu { func: w.b(74, 80) as u8, half, part })
}

/// F2F, FRND, F2FP, F2IP, I2FP, I2I, I2IP.
pub(super) fn decode(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    match w.base() {
        0x03e => return pack(w, i),
        0x039 => return pack_integers(w, i),
        0x045 => {
            let words = w.b(75, 78) == 2 && w.b(84, 86) == 2 && matches!(w.form(), 1 | 4 | 5 | 6);
            let round = round(w);
            if w.arch < Generation::Ampere || !words || !matches!(round, SassRound::Nearest | SassRound::Zero) {
                return None;
            }
            i.dst = Some(w.dst(false, 1));
            i.src = smallvec![w.slot_x(false, 1, Sign::None)];
            return Some(Arithmetic::I2fp { signed: w.bit(74), round });
        }
        0x043 => return clamp_float(w, i),
        0x038 => return clamp_integer(w, i),
        _ if !matches!(w.form(), 1 | 4 | 5 | 6) => return None,
        _ => {}
    }
    // One code more than there are sizes: bfloat16.
    let bf16 = w.b(75, 78) == 4;
    let (from, to) = (w.b(84, 86), if bf16 { 1 } else { w.b(75, 77) });
    if from == 0 || to == 0 {
        return None;
    }
    let (round, ftz) = (round(w), w.bit(80));
    let half = if from == 1 && w.form() != 4 { w.b(60, 62) as u8 } else { 0 };
    if half > 1 {
        return None;
    }
    let op = match w.base() {
        0x107 | 0x113 if from == to && !w.bit(77) => Arithmetic::Frnd { round, ftz, bytes: 1 << from, half },
        0x104 | 0x110 if from != to && (bf16 || !w.bit(77)) && w.form() != 4 => {
            Arithmetic::F2f { round, ftz, from: 1 << from, to: 1 << to, bf16, half }
        }
        _ => return None,
    };
    if from == 3 && w.form() == 4 {
        return None;
    }
    i.dst = Some(w.dst(false, regs(to)));
    i.src = smallvec![w.slot_x_float(regs(from))];
    Some(op)
}

/// F2FP to and from numbers of eight bits: at 76 and 86..88 the type of the result, at 72..75 that
/// of what is unpacked. (Bits were read off what `nvdisasm` prints when single ones change.)
fn eight(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    if w.arch != Generation::Hopper || w.form() != 1 || w.b(79, 86) != 0 || w.bit(86) {
        return None;
    }
    let (x, y) = (w.slot_x(false, 1, Sign::None), w.reg_src(64, false, 1));
    let (relu, low) = (w.bit(75), w.b(72, 75));
    let op = match (w.b(87, 91), w.bit(77), w.bit(78)) {
        (0b1001, true, true) if low == 0 => {
            i.src = smallvec![w.reg_src(24, false, 1), x, y];
            Arithmetic::PackEight { e5m2: !w.bit(76), relu, halves: false }
        }
        (0b1001, true, false) if low == 0b010 => {
            i.src = smallvec![x, y];
            Arithmetic::PackEight { e5m2: !w.bit(76), relu, halves: true }
        }
        (0b0100 | 0b0110, false, false) if !w.bit(76) && matches!(low, 0b100 | 0b110) => {
            i.src = smallvec![x];
            Arithmetic::UnpackEight { e5m2: low == 0b100, relu, high: w.bit(88) }
        }
        _ => return None,
    };
    i.dst = Some(w.dst(false, 1));
    Some(op)
}

fn pack(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    if let Some(op) = eight(w, i) {
        return Some(op);
    }
    // What else is `.SATFINITE`, or of eight bits, was not measured.
    if w.bit(77) || w.bit(81) || w.b(86, 91) != 0 || !matches!(w.form(), 1 | 4 | 5 | 6) {
        return None;
    }
    let round = match w.b(79, 81) {
        0 => SassRound::Nearest,
        3 => SassRound::Zero,
        _ => return None,
    };
    let merge = w.bit(78);
    let (a, x, y) = (w.reg_src(24, false, 1), w.slot_x(false, 1, Sign::None), w.reg_src(64, false, 1));
    // Bits 72 and 73 choose the half of C.
    if merge && w.b(72, 74) != 0 || !merge && !y.is_zero() {
        return None;
    }
    i.dst = Some(w.dst(false, 1));
    i.src = if merge { smallvec![x, y] } else { smallvec![a, x] };
    Some(Arithmetic::F2fp { bf16: w.bit(76), relu: w.bit(75), round, merge })
}

/// F2IP of one number: the others are zero.
fn clamp_float(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    let alone = w.reg_src(24, false, 1).is_zero() && w.reg_src(64, false, 1).is_zero();
    if w.arch < Generation::Hopper || !alone || w.b(72, 78) != 0b100 || w.b(80, 91) != 0 || w.form() != 1 {
        return None;
    }
    i.dst = Some(w.dst(false, 1));
    i.src = smallvec![w.slot_x(false, 1, Sign::None)];
    Some(Arithmetic::F2ip { round: round(w) })
}

/// I2I of 32 bits.
fn clamp_integer(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    if w.form() != 1 || w.b(72, 76) != 0 || w.b(78, 91) != 0 {
        return None;
    }
    i.dst = Some(w.dst(false, 1));
    i.src = smallvec![w.slot_x(false, 1, Sign::None)];
    Some(Arithmetic::I2i { bits: if w.bit(77) { 16 } else { 8 }, signed: w.bit(76) })
}

fn pack_integers(w: &Word, i: &mut MachineInst) -> Option<Arithmetic> {
    if w.form() != 1 {
        return None;
    }
    let (bits, signed) = match w.b(76, 79) {
        0 => (8, false),
        1 => (8, true),
        2 => (16, false),
        3 => (16, true),
        4 => (2, false),
        5 => (2, true),
        6 => (4, false),
        7 => (4, true),
        _ => return None,
    };
    // How many bits of C are taken: as many as there is room for.
    let room = match bits {
        2 => 3,
        4 => 2,
        _ => 0,
    };
    if w.b(72, 74) != room {
        return None;
    }
    i.dst = Some(w.dst(false, 1));
    i.src = smallvec![w.reg_src(24, false, 1), w.slot_x(false, 1, Sign::None), w.slot_y(false, 1, Sign::None)];
    Some(Arithmetic::I2ip { bits, signed })
}
