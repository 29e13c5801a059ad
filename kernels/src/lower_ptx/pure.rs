//! PTX instructions that are functions of numbers without a form: bits counted and turned, dot
//! products, floating point.
//!
//! Owns which instruction is which function. What they give for known numbers is in `ir/pure.rs`.

use super::arithmetic::{has, is_signed};
use super::{Lower, class};
use crate::ir::{Class, Op, Pure, Reason, Rounding, SrcOperand, Var};
use crate::lower_ptx::arithmetic::set_predicates;
use device_code::ptx::{Instruction, OpcodeInfo, Type};
use smallvec::SmallVec;

/// How a conversion rounds: to a number (`.rn`), or to a whole one (`.rni`). Conversions that are
/// exact may say nothing.
fn rounding(op: &OpcodeInfo) -> Rounding {
    let any = |names: [&str; 2]| names.iter().any(|name| has(op, name));
    if any(["rz", "rzi"]) {
        Rounding::Zero
    } else if any(["rm", "rmi"]) {
        Rounding::Down
    } else if any(["rp", "rpi"]) {
        Rounding::Up
    } else {
        Rounding::Nearest
    }
}

fn is_plain_float(ty: Type) -> bool {
    matches!(ty, Type::F32 | Type::F64)
}

/// Lowers one of these to `d`; false when the instruction is another one.
pub(super) fn pure(lower: &mut Lower<'_>, name: &str, op: &OpcodeInfo, i: &Instruction, ty: Type, d: Var) -> bool {
    if d == Var::NONE || has(op, "sat") {
        return false;
    }
    if is_plain_float(ty) {
        return float(lower, name, op, i, ty, d);
    }
    let wide = ty.size() == 8;
    let unsigned = |part: &String| part.starts_with('u');
    let signs = || {
        let types: SmallVec<[bool; 4]> =
            op.parts[1..].iter().filter(|p| Type::from_name(p).is_some()).map(|p| !unsigned(p)).collect();
        (types.first().copied().unwrap_or(true), types.get(1).copied().unwrap_or(true))
    };
    let f = match name {
        _ if ty.size() < 4 => return false,
        "brev" => Pure::Reverse { wide },
        "clz" => Pure::LeadingZeros { wide },
        "bfind" => Pure::HighestBit { wide, signed: is_signed(ty), distance: has(op, "shiftamt") },
        "popc" => Pure::Ones { wide },
        "fns" => Pure::NthBit,
        "dp4a" => Pure::DotBytes { a_signed: signs().0, b_signed: signs().1 },
        "dp2a" => Pure::DotHalves { a_signed: signs().0, b_signed: signs().1, high: has(op, "hi") },
        "sad" if !wide => Pure::Difference { signed: is_signed(ty) },
        "bfe" => Pure::Extract { wide, signed: is_signed(ty) },
        "bmsk" if has(op, "clamp") => Pure::Mask,
        "shf" => {
            let right = has(op, "r");
            Pure::Funnel { right, hi: !right, signed: false, wide: false, wraps: !has(op, "clamp") }
        }
        // The field where the mask is set, else the other.
        "bfi" if !wide => {
            let [field, other, from, count] = [1, 2, 3, 4].map(|k| lower.src(i.operands.get(k), Class::W32));
            let mask = lower.temporary(Class::W32, Op::Pure(Pure::Mask), &[from, count]);
            let field = lower.temporary(Class::W32, Op::Shl, &[field, from]);
            lower.emit(Op::Lop3 { lut: 0xe4 }, &[field, other, mask], &[d]);
            return true;
        }
        _ => return false,
    };
    let operands = i.operands.iter().skip(1).take(3).enumerate();
    let sources: SmallVec<[SrcOperand; 3]> =
        operands.map(|(k, o)| lower.src(Some(o), if f.is_wide(k) { Class::W64 } else { Class::W32 })).collect();
    lower.emit(Op::Pure(f), &sources, &[d]);
    true
}

fn float(lower: &mut Lower<'_>, name: &str, op: &OpcodeInfo, i: &Instruction, ty: Type, d: Var) -> bool {
    if ["rz", "rm", "rp", "approx", "full", "NaN", "xorsign"].iter().any(|mode| has(op, mode)) {
        return false;
    }
    let (wide, flush, width) = (ty == Type::F64, has(op, "ftz"), class(ty));
    let sign = SrcOperand::imm(if wide { 1 << 63 } else { 1 << 31 });
    let zero = SrcOperand::imm(0);
    let mut of = [1, 2, 3].map(|k| i.operands.get(k).map_or(zero, |o| lower.src(Some(o), width)));
    // ptxas may fuse what says nothing of rounding.
    let fusible = !has(op, "rn");
    let f = match name {
        "add" | "sub" => Pure::FloatAdd { wide, flush, fusible },
        "mul" => Pure::FloatMul { wide, flush, fusible },
        "fma" | "mad" => Pure::FloatFma { wide, flush },
        "div" => Pure::FloatDiv { wide, flush },
        "rcp" => {
            let one = if wide { 1.0_f64.to_bits() } else { u64::from(1.0_f32.to_bits()) };
            of = [SrcOperand::imm(one), of[0], zero];
            Pure::FloatDiv { wide, flush }
        }
        "min" | "max" => Pure::FloatMinMax { wide, flush, max: name == "max" },
        // The sign changed, or cleared.
        "neg" | "abs" if !flush => {
            let lut = if name == "neg" { 0x3c } else { 0x30 };
            lower.emit(Op::Lop3 { lut }, &[of[0], sign, zero], &[d]);
            return true;
        }
        _ => return false,
    };
    if name == "sub" {
        of[1] = lower.temporary(width, Op::Lop3 { lut: 0x3c }, &[of[1], sign, zero]);
    }
    lower.emit(Op::Pure(f), &of, &[d]);
    true
}

/// Conversions from or to single and double precision; false when there is no rule.
pub(super) fn convert_float(
    lower: &mut Lower<'_>,
    op: &OpcodeInfo,
    i: &Instruction,
    (to, from): (Type, Type),
    d: Var,
) -> bool {
    let (round, flush) = (rounding(op), has(op, "ftz"));
    let integer =
        |ty: Type| !is_plain_float(ty) && matches!(ty.size(), 4 | 8) && !matches!(ty, Type::F16x2 | Type::Bf16x2);
    if d == Var::NONE || has(op, "sat") || has(op, "relu") || has(op, "satfinite") {
        return false;
    }
    let f = match (is_plain_float(from), is_plain_float(to)) {
        (true, true) if from == to => Pure::FloatRound { wide: to == Type::F64, flush, round },
        (true, true) => Pure::FloatResize { widens: to == Type::F64, flush, round },
        (true, false) if integer(to) => {
            let bits = (8 * to.size()) as u8;
            Pure::FloatToInt { signed: is_signed(to), bits, from_wide: from == Type::F64, flush, round }
        }
        (false, true) if integer(from) => {
            let (from_wide, wide) = (from.size() == 8, to == Type::F64);
            Pure::IntToFloat { signed: is_signed(from), from_wide, wide, round }
        }
        (false, true) if from.size() == 2 && !matches!(from, Type::F16 | Type::Bf16) => {
            let signed = is_signed(from);
            let value = lower.narrow(i.operands.get(1), signed);
            let f = Pure::IntToFloat { signed, from_wide: false, wide: to == Type::F64, round };
            lower.emit(Op::Pure(f), &[value], &[d]);
            return true;
        }
        _ => return false,
    };
    let value = lower.src(i.operands.get(1), class(from));
    lower.emit(Op::Pure(f), &[value], &[d]);
    true
}

/// `setp` of single and double precision.
pub(super) fn compare_floats(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction, ty: Type) {
    let name = op.parts.get(1).map_or("", String::as_str);
    let names = [("num", 7), ("nan", 8), ("eq", 2), ("ne", 5), ("lt", 1), ("le", 3), ("gt", 4), ("ge", 6)];
    let found = names.iter().find(|n| name == n.0).map(|n| n.1);
    // With an operand that is no number, too.
    let unordered = || {
        let ordered = name.strip_suffix('u')?;
        names.iter().find(|n| ordered == n.0).map(|n| n.1 | 8)
    };
    let Some(cmp) = found.or_else(unordered).filter(|_| is_plain_float(ty)) else {
        return lower.give_up(i, Reason::Float);
    };
    let o = &i.operands;
    let (a, b) = (lower.src(o.get(1), class(ty)), lower.src(o.get(2), class(ty)));
    let (wide, flush) = (ty == Type::F64, has(op, "ftz"));
    set_predicates(lower, op, i, (a, b), |combine| Op::FloatCmp { cmp, wide, flush, combine });
}
