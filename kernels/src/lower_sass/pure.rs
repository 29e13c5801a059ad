//! SASS instructions that are functions of numbers without a form: bits counted and turned, dot
//! products, floating point.
//!
//! Owns which instruction is which function. What they give for known numbers is in `ir/pure.rs`.

use super::Lower;
use crate::ir::{Op, Pure, Rounding, SrcOperand};
use crate::lower_sass::arithmetic::{float, preds_unknown};
use device_code::sass::{self, Arithmetic, FloatMode, MachineInst, PredSrc, SassRound};
use smallvec::SmallVec;

type Sources = SmallVec<[SrcOperand; 3]>;

fn rounding(round: u8) -> Rounding {
    [Rounding::Nearest, Rounding::Down, Rounding::Up, Rounding::Zero][usize::from(round & 3)]
}

fn rounding_of(round: SassRound) -> Rounding {
    match round {
        SassRound::Nearest => Rounding::Nearest,
        SassRound::Minus => Rounding::Down,
        SassRound::Plus => Rounding::Up,
        SassRound::Zero => Rounding::Zero,
    }
}

fn is_plain(mode: FloatMode) -> bool {
    mode.round == SassRound::Nearest && !mode.sat
}

/// A predicate source that is no variable.
fn constant(p: PredSrc) -> Option<bool> {
    match (p.always(), p.never()) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Lowers one of these; false when the instruction is another one.
pub(super) fn pure(lower: &mut Lower<'_>, i: &MachineInst) -> bool {
    use sass::Opcode as S;
    let (f, sources): (Pure, Sources) = match i.op {
        S::Brev => (Pure::Reverse { wide: false }, words(lower, i)),
        S::Popc => (Pure::Ones { wide: false }, words(lower, i)),
        S::Flo { signed, sh } => (Pure::HighestBit { wide: false, signed, distance: sh }, words(lower, i)),
        S::Bmsk { wrap: false } => (Pure::Mask, words(lower, i)),
        // Rounded up it may be part of a division.
        S::I2f { signed, round, from: from @ (4 | 8), to: to @ (4 | 8), part: 0 } if round != 2 || to == 8 => {
            let value = if from == 8 { lower.arg64(i, 0) } else { lower.arg(i, 0) };
            let (from_wide, wide) = (from == 8, to == 8);
            let f = Pure::IntToFloat { signed, from_wide, wide, round: rounding(round) };
            (f, SmallVec::from_slice(&[value]))
        }
        S::F2i { signed, round, ftz, from: from @ (4 | 8), to: to @ (4 | 8), part: 0, .. } => {
            let f = Pure::FloatToInt { signed, bits: 8 * to, from_wide: from == 8, flush: ftz, round: rounding(round) };
            (f, floats(lower, i, from == 8))
        }
        S::Arithmetic(op) => match arithmetic(lower, i, op) {
            Some(found) => found,
            None => return false,
        },
        _ => return false,
    };
    if i.dst.is_some_and(|r| r.count == 2) {
        lower.emit64(i, Op::Pure(f), &sources);
    } else {
        let d = lower.dst(i, 0);
        lower.emit(i, Op::Pure(f), &sources, &[d]);
    }
    preds_unknown(lower, i);
    true
}

fn arithmetic(lower: &mut Lower<'_>, i: &MachineInst, op: Arithmetic) -> Option<(Pure, Sources)> {
    let fusible = false;
    Some(match op {
        Arithmetic::Fadd(mode) if is_plain(mode) => {
            (Pure::FloatAdd { wide: false, flush: mode.ftz, fusible }, floats(lower, i, false))
        }
        Arithmetic::Fmul { mode, fmz: false, scale: 0 } if is_plain(mode) => {
            (Pure::FloatMul { wide: false, flush: mode.ftz, fusible }, floats(lower, i, false))
        }
        Arithmetic::Ffma { mode, fmz: false } if is_plain(mode) => {
            (Pure::FloatFma { wide: false, flush: mode.ftz }, floats(lower, i, false))
        }
        Arithmetic::Fmnmx { ftz, nan: false, xorsign: false } => {
            let max = !constant(i.psrc[0])?;
            (Pure::FloatMinMax { wide: false, flush: ftz, max }, floats(lower, i, false))
        }
        Arithmetic::Frnd { round, ftz, bytes: bytes @ (4 | 8), half: 0 } => {
            let wide = bytes == 8;
            (Pure::FloatRound { wide, flush: ftz, round: rounding_of(round) }, floats(lower, i, wide))
        }
        Arithmetic::F2f { round, ftz, from: from @ (4 | 8), to: 4 | 8, bf16: false, half: 0 } => {
            let f = Pure::FloatResize { widens: from == 4, flush: ftz, round: rounding_of(round) };
            (f, floats(lower, i, from == 8))
        }
        Arithmetic::I2fp { signed, round } => {
            let f = Pure::IntToFloat { signed, from_wide: false, wide: false, round: rounding_of(round) };
            (f, words(lower, i))
        }
        Arithmetic::Dadd(SassRound::Nearest) => {
            (Pure::FloatAdd { wide: true, flush: false, fusible }, floats(lower, i, true))
        }
        Arithmetic::Dmul(SassRound::Nearest) => {
            (Pure::FloatMul { wide: true, flush: false, fusible }, floats(lower, i, true))
        }
        Arithmetic::Dfma(SassRound::Nearest) => (Pure::FloatFma { wide: true, flush: false }, floats(lower, i, true)),
        Arithmetic::Idp { four: true, a_signed, b_signed, .. } => {
            (Pure::DotBytes { a_signed, b_signed }, words(lower, i))
        }
        Arithmetic::Idp { four: false, high, a_signed, b_signed } => {
            (Pure::DotHalves { a_signed, b_signed, high }, words(lower, i))
        }
        Arithmetic::Vabsdiff { signed } => (Pure::Difference { signed }, words(lower, i)),
        _ => return None,
    })
}

fn words(lower: &mut Lower<'_>, i: &MachineInst) -> Sources {
    (0..i.src.len().min(3)).map(|k| lower.arg(i, k)).collect()
}

fn floats(lower: &mut Lower<'_>, i: &MachineInst, wide: bool) -> Sources {
    (0..i.src.len().min(3)).map(|k| float(lower, i, k, wide)).collect()
}
