//! Predicates as the bits of a word (P2R, R2P): compilers save them so around calls and loops.
//!
//! Owns these two conversions. What makes a predicate is in `arithmetic`.

use super::Lower;
use super::arithmetic::AND;
use crate::ir::{Class, Op, Reason, SrcOperand, Var};
use device_code::sass::{self, MachineInst};
use smallvec::SmallVec;

/// Truth table of `a | b | c`.
const OR3: u8 = 0xfe;

/// The bit of the only predicate that a P2R takes, when it sets all others to zero.
pub(super) fn put_by(i: &MachineInst) -> Option<(u64, SrcOperand)> {
    let mask = u8::try_from(i.src.get(1)?.as_imm()?).ok()?;
    let alone = i.src.first()?.is_zero() && mask.is_power_of_two() && mask < 0x80;
    let pred = sass::Pred { uniform: i.uniform, num: mask.trailing_zeros() as u8 };
    alone.then(|| (mask.into(), SrcOperand::pred(Lower::pred_var(pred), false)))
}

/// `d = (s & ~(mask << 8 * byte)) | predicates << 8 * byte`. Whether the other bits of that
/// byte stay or are cleared is not relied on.
pub(super) fn predicates_to_word(lower: &mut Lower<'_>, i: &MachineInst, byte: u8, d: Var) {
    let Some(mask) = i.src.get(1).and_then(sass::InstOperand::as_imm).map(|m| m & 0x7f) else {
        return lower.give_up(i, Reason::Bits);
    };
    let shift = 8 * u32::from(byte);
    let mut words: SmallVec<[SrcOperand; 4]> = SmallVec::new();
    let word = |l: &mut Lower<'_>, op: Op, srcs: &[SrcOperand]| {
        let t = l.f.var(Class::W32);
        l.emit_always(i, op, srcs, &[t]);
        SrcOperand::var(t)
    };
    if !i.src[0].is_zero() {
        let (s, byte) = (lower.arg(i, 0), 0xff_u64 << shift);
        words.push(word(lower, Op::Lop3 { lut: AND }, &[s, SrcOperand::imm(!byte & 0xffff_ffff), SrcOperand::imm(0)]));
        let lost = lower.unknown(i, Class::W32, Reason::Bits);
        let rest = [lost, SrcOperand::imm(byte & !((mask as u64) << shift)), SrcOperand::imm(0)];
        words.push(word(lower, Op::Lop3 { lut: AND }, &rest));
    }
    for num in (0..7).filter(|n| mask >> n & 1 == 1) {
        let p = SrcOperand::pred(Lower::pred_var(sass::Pred { uniform: i.uniform, num }), false);
        words.push(word(lower, Op::Sel, &[SrcOperand::imm(1 << (u32::from(num) + shift)), SrcOperand::imm(0), p]));
    }
    while words.len() > 3 {
        let three: SmallVec<[SrcOperand; 4]> = words.drain(..3).collect();
        words.push(word(lower, Op::Lop3 { lut: OR3 }, &three));
    }
    words.resize(3, SrcOperand::imm(0));
    lower.emit(i, Op::Lop3 { lut: OR3 }, &words, &[d]);
}

/// The predicates of the mask are bits of a byte of a word.
pub(super) fn word_to_predicates(lower: &mut Lower<'_>, i: &MachineInst, byte: u8) {
    let Some(mask) = i.src.get(1).and_then(sass::InstOperand::as_imm).map(|m| m & 0x7f) else {
        return lower.give_up(i, Reason::Bits);
    };
    let s = lower.arg(i, 0);
    for num in (0..7).filter(|n| mask >> n & 1 == 1) {
        let t = lower.f.var(Class::W32);
        let bit = SrcOperand::imm(1 << (u32::from(num) + 8 * u32::from(byte)));
        let p = Lower::pred_var(sass::Pred { uniform: i.uniform, num });
        lower.emit(i, Op::Lop3 { lut: AND }, &[s, bit, SrcOperand::imm(0)], &[t, p]);
    }
}
