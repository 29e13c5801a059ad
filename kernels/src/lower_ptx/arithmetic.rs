//! What PTX arithmetic means for addresses.

use smallvec::SmallVec;

use crate::ir::{Class, Cmp, Combine, Op, Reason, Src, SrcOperand, Var};
use crate::lower_ptx::memory_access::any_memory;
use crate::lower_ptx::packing::{mov_pieces, parameter_address, shf, words_in};
use crate::lower_ptx::pure::{compare_floats, convert_float, pure};
use device_code::ptx::{self, Instruction, OpcodeInfo, Type};

use super::{Lower, class};

/// The last type of an opcode.
pub(super) fn last_type(op: &OpcodeInfo) -> Option<Type> {
    op.parts[1..].iter().rev().find_map(|part| Type::from_name(part))
}

/// True when the opcode has that modifier.
pub(super) fn has(op: &OpcodeInfo, modifier: &str) -> bool {
    op.parts[1..].iter().any(|part| part == modifier)
}

pub(super) fn is_signed(ty: Type) -> bool {
    matches!(ty, Type::S8 | Type::S16 | Type::S32 | Type::S64)
}

fn is_float(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 | Type::F32 | Type::F64)
}

/// Instructions that touch registers only, whatever their modifiers.
fn is_pure(name: &str) -> bool {
    matches!(
        name,
        "add"
            | "sub"
            | "mul"
            | "mad"
            | "mul24"
            | "mad24"
            | "sad"
            | "div"
            | "rem"
            | "abs"
            | "neg"
            | "min"
            | "max"
            | "popc"
            | "clz"
            | "bfind"
            | "fns"
            | "brev"
            | "bfe"
            | "bfi"
            | "bmsk"
            | "szext"
            | "dp4a"
            | "dp2a"
            | "addc"
            | "subc"
            | "madc"
            | "testp"
            | "copysign"
            | "fma"
            | "rcp"
            | "sqrt"
            | "rsqrt"
            | "sin"
            | "cos"
            | "lg2"
            | "ex2"
            | "tanh"
            | "set"
            | "setp"
            | "selp"
            | "slct"
            | "and"
            | "or"
            | "xor"
            | "not"
            | "cnot"
            | "lop3"
            | "shf"
            | "shl"
            | "shr"
            | "mov"
            | "prmt"
            | "cvt"
            | "cvta"
            | "isspacep"
            | "getctarank"
            | "mapa"
            | "movmatrix"
            | "istypep"
    ) || is_video(name)
}

/// The instructions that once served video: arithmetic on bytes and halves of registers.
fn is_video(name: &str) -> bool {
    let plain = name.trim_end_matches(['2', '4']);
    matches!(plain, "vadd" | "vsub" | "vabsdiff" | "vmin" | "vmax" | "vshl" | "vshr" | "vmad" | "vset" | "vavrg")
}

/// Operands of more than one number, or of formats that only conversions know: never addresses.
fn is_packed(op: &OpcodeInfo) -> bool {
    op.parts[1..].iter().any(|part| {
        part.ends_with("x2") && !part.ends_with("16x2")
            || part.ends_with("x4")
            || matches!(part.as_str(), "tf32" | "ue8m0x2")
    })
}

/// An instruction that is neither control flow nor memory.
pub(super) fn alu(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction) {
    let name = op.parts[0].as_str();
    let o = &i.operands;
    if name == "createpolicy" {
        // What caches keep: it says nothing of memory.
        return lower.give_up(i, Reason::Descriptor);
    }
    if name == "mapa" {
        // The shared memory of another block of the cluster.
        return lower.give_up(i, Reason::Window);
    }
    if name == "isspacep" {
        return lower.lies_in(op, i);
    }
    if is_pure(name) && is_packed(op) {
        return lower.give_up(i, Reason::Float);
    }
    let Some(ty) = last_type(op) else {
        if !is_pure(name) {
            any_memory(lower, Reason::Instruction);
        }
        return lower.give_up(i, Reason::Instruction);
    };
    let narrow = ty.size() == 2 && !is_float(ty);
    let d = lower.dst(o.first());
    let float = is_float(ty) && !matches!(name, "mov" | "selp" | "setp" | "cvt");
    match name {
        _ if !is_pure(name) => {
            any_memory(lower, Reason::Instruction);
            lower.give_up(i, Reason::Instruction);
        }
        _ if float && !pure(lower, name, op, i, ty, d) => lower.give_up(i, Reason::Float),
        _ if float => {}
        "mov" => mov(lower, ty, i),
        "cvta" => convert_address(lower, op, i),
        "cvt" => convert(lower, op, i, d),
        "setp" => compare(lower, op, i, ty),
        "and" | "or" | "xor" | "not" if ty == Type::Pred => {
            let a = lower.src(o.get(1), Class::Pred);
            let b = if name == "not" { SrcOperand::imm(0) } else { lower.src(o.get(2), Class::Pred) };
            let lut0 = lut(name);
            lower.emit(Op::PLut { lut0, lut1: 0 }, &[a, b, SrcOperand::imm(0)], &[d]);
        }
        "selp" => {
            let (a, b) = (lower.src(o.get(1), class(ty)), lower.src(o.get(2), class(ty)));
            let p = lower.src(o.get(3), Class::Pred);
            lower.emit(Op::Sel, &[a, b, p], &[d]);
        }
        _ if d == Var::NONE || has(op, "cc") || has(op, "sat") => lower.give_up(i, Reason::Instruction),
        "shf" if matches!(o.get(3), Some(ptx::Operand::Int(_))) => shf(lower, op, i, d),
        _ if narrow => narrow_alu(lower, name, op, i, ty, d),
        _ => wide_alu(lower, name, op, i, ty, d),
    }
}

/// Arithmetic of 32 and 64 bits.
fn wide_alu(lower: &mut Lower<'_>, name: &str, op: &OpcodeInfo, i: &Instruction, ty: Type, d: Var) {
    let o = &i.operands;
    let width = class(ty);
    let signed = is_signed(ty);
    let zero = SrcOperand::imm(0);
    let mode = op.parts.get(1).map_or("", String::as_str);
    // Shift amounts are 32 bits whatever the type.
    let shift = matches!(name, "shl" | "shr");
    let a = lower.src(o.get(1), width);
    let b = if o.len() > 2 { lower.src(o.get(2), if shift { Class::W32 } else { width }) } else { zero };
    match (name, mode) {
        ("add", _) => lower.emit(Op::Add, &[a, b], &[d]),
        ("sub", _) => match negated(b, width) {
            Some(b) => lower.emit(Op::Add, &[a, b], &[d]),
            None => lower.give_up(i, Reason::Instruction),
        },
        ("neg", _) => match negated(a, width) {
            Some(a) => lower.emit(Op::Add, &[a, zero], &[d]),
            None => lower.give_up(i, Reason::Instruction),
        },
        ("abs", _) => lower.emit(Op::Abs, &[a], &[d]),
        ("mul", "lo") => lower.emit(Op::Mad, &[a, b, zero], &[d]),
        ("mul", "wide") => lower.emit(Op::MadWide { signed }, &[a, b, zero], &[d]),
        ("mul", "hi") => lower.emit(Op::MulHi { signed }, &[a, b, zero], &[d]),
        ("mad", "lo") => {
            let c = lower.src(o.get(3), width);
            lower.emit(Op::Mad, &[a, b, c], &[d]);
        }
        ("mad", "wide") => {
            let c = lower.src(o.get(3), Class::W64);
            lower.emit(Op::MadWide { signed }, &[a, b, c], &[d]);
        }
        ("mad", "hi") => {
            let c = lower.src(o.get(3), width);
            let high = lower.temporary(width, Op::MulHi { signed }, &[a, b, zero]);
            lower.emit(Op::Add, &[high, c], &[d]);
        }
        ("div", _) => lower.emit(Op::Div { signed }, &[a, b], &[d]),
        ("rem", _) => lower.emit(Op::Rem { signed }, &[a, b], &[d]),
        ("min" | "max", _) => {
            let (op_of, least) = (Op::MinMax { signed }, SrcOperand::imm(u64::from(name == "min")));
            if has(op, "relu") {
                // What is less than zero becomes zero.
                let value = lower.temporary(width, op_of, &[a, b, least]);
                lower.emit(Op::MinMax { signed: true }, &[value, zero, zero], &[d]);
            } else {
                lower.emit(op_of, &[a, b, least], &[d]);
            }
        }
        ("and" | "or" | "xor" | "not", _) => lower.emit(Op::Lop3 { lut: lut(name) }, &[a, b, zero], &[d]),
        ("lop3", _) => match (o.first(), o.get(4)) {
            (Some(ptx::Operand::Register(_)), Some(&ptx::Operand::Int(table))) => {
                let c = lower.src(o.get(3), Class::W32);
                lower.emit(Op::Lop3 { lut: table as u8 }, &[a, b, c], &[d]);
            }
            _ => lower.give_up(i, Reason::Bits),
        },
        ("shl", _) => lower.emit(Op::Shl, &[a, b], &[d]),
        ("shr", _) => lower.emit(Op::Shr { signed }, &[a, b], &[d]),
        ("prmt", "b32") if op.parts.len() == 2 => {
            let selector = lower.src(o.get(3), Class::W32);
            lower.emit(Op::Prmt, &[a, selector, b], &[d]);
        }
        ("bfe", _) => match (o.get(2), o.get(3)) {
            (Some(&ptx::Operand::Int(position)), Some(&ptx::Operand::Int(length)))
                if length > 0 && position.saturating_add(length) <= u64::from(ty.size() * 8) =>
            {
                let shifted = lower.temporary(width, Op::Shr { signed: false }, &[a, SrcOperand::imm(position)]);
                lower.emit(Op::Ext { bits: length as u8, signed }, &[shifted], &[d]);
            }
            _ if pure(lower, name, op, i, ty, d) => {}
            _ => lower.give_up(i, Reason::Bits),
        },
        ("bfi", _) => match (o.get(3), o.get(4)) {
            // Two words put together.
            (Some(ptx::Operand::Int(32)), Some(ptx::Operand::Int(32))) if width == Class::W64 => {
                let low = lower.src(o.get(2), Class::W32);
                let high = lower.src(o.get(1), Class::W32);
                lower.emit(Op::Pack, &[low, high], &[d]);
            }
            (Some(&ptx::Operand::Int(position)), Some(&ptx::Operand::Int(length)))
                if (1..64).contains(&length) && position.saturating_add(length) <= u64::from(ty.size() * 8) =>
            {
                let field = lower.temporary(width, Op::Shl, &[a, SrcOperand::imm(position)]);
                let mask = SrcOperand::imm(((1 << length) - 1) << position);
                // The field where the mask is set, else the other.
                lower.emit(Op::Lop3 { lut: 0xe4 }, &[field, b, mask], &[d]);
            }
            _ if pure(lower, name, op, i, ty, d) => {}
            _ => lower.give_up(i, Reason::Bits),
        },
        _ if pure(lower, name, op, i, ty, d) => {}
        _ => lower.give_up(i, Reason::Bits),
    }
}

/// Arithmetic of 16 bits, in 32-bit variables that hold the value extended with zeros.
fn narrow_alu(lower: &mut Lower<'_>, name: &str, op: &OpcodeInfo, i: &Instruction, ty: Type, d: Var) {
    let o = &i.operands;
    let signed = is_signed(ty);
    let zero = SrcOperand::imm(0);
    let a = lower.narrow(o.get(1), signed);
    let wide = op.parts.get(1).is_some_and(|part| part == "wide");
    let value = match name {
        "shl" | "shr" => {
            let b = lower.src(o.get(2), Class::W32);
            let op = if name == "shl" { Op::Shl } else { Op::Shr { signed } };
            lower.temporary(Class::W32, op, &[a, b])
        }
        "not" => lower.temporary(Class::W32, Op::Lop3 { lut: lut("not") }, &[a, zero, zero]),
        "neg" => match negated(a, Class::W32) {
            Some(a) => lower.temporary(Class::W32, Op::Add, &[a, zero]),
            None => return lower.give_up(i, Reason::Instruction),
        },
        "add" | "sub" | "mul" | "mad" | "and" | "or" | "xor" | "min" | "max" | "div" | "rem" => {
            let b = lower.narrow(o.get(2), signed);
            let (op, srcs): (Op, SmallVec<[SrcOperand; 3]>) = match name {
                "add" => (Op::Add, SmallVec::from_slice(&[a, b])),
                "sub" => match negated(b, Class::W32) {
                    Some(b) => (Op::Add, SmallVec::from_slice(&[a, b])),
                    None => return lower.give_up(i, Reason::Instruction),
                },
                "mul" if has(op, "hi") => {
                    // Factors of 16 bits: their product fits.
                    let product = lower.temporary(Class::W32, Op::Mad, &[a, b, zero]);
                    (Op::Shr { signed }, SmallVec::from_slice(&[product, SrcOperand::imm(16)]))
                }
                "mul" => (Op::Mad, SmallVec::from_slice(&[a, b, zero])),
                "mad" if has(op, "lo") => {
                    let c = lower.narrow(o.get(3), signed);
                    (Op::Mad, SmallVec::from_slice(&[a, b, c]))
                }
                "mad" => return lower.give_up(i, Reason::Bits),
                "min" | "max" => {
                    let least = SrcOperand::imm(u64::from(name == "min"));
                    (Op::MinMax { signed }, SmallVec::from_slice(&[a, b, least]))
                }
                "div" => (Op::Div { signed }, SmallVec::from_slice(&[a, b])),
                "rem" => (Op::Rem { signed }, SmallVec::from_slice(&[a, b])),
                _ => (Op::Lop3 { lut: lut(name) }, SmallVec::from_slice(&[a, b, zero])),
            };
            lower.temporary(Class::W32, op, &srcs)
        }
        _ => return lower.give_up(i, Reason::Bits),
    };
    if wide {
        lower.emit(Op::Mov, &[value], &[d]);
    } else {
        lower.emit(Op::Ext { bits: 16, signed: false }, &[value], &[d]);
    }
}

/// Minus a value, without giving a constant a prefix.
fn negated(value: SrcOperand, width: Class) -> Option<SrcOperand> {
    Some(match value.src {
        Src::Imm(bits) if width == Class::W64 => SrcOperand::imm(bits.wrapping_neg()),
        Src::Imm(bits) => SrcOperand::imm(bits.wrapping_neg() & 0xffff_ffff),
        src if value.prefix == crate::ir::Prefix::None => SrcOperand::neg(src),
        _ => return None,
    })
}

fn mov(lower: &mut Lower<'_>, ty: Type, i: &Instruction) {
    let o = &i.operands;
    match (o.first(), o.get(1)) {
        (Some(ptx::Operand::Vector(parts)), Some(source)) if ty == Type::B64 && parts.len() == 2 => {
            let (low, high) = (lower.dst(parts.first()), lower.dst(parts.get(1)));
            if let Some(words) = words_in(lower, source) {
                let words = [lower.src(Some(&words[0]), Class::W32), lower.src(Some(&words[1]), Class::W32)];
                for (d, word) in [low, high].into_iter().zip(words).filter(|(d, _)| *d != Var::NONE) {
                    lower.emit(Op::Mov, &[word], &[d]);
                }
                return;
            }
            let value = lower.src(Some(source), Class::W64);
            lower.emit(Op::Unpack, &[value], &[low, high]);
        }
        (Some(ptx::Operand::Register(_)), Some(ptx::Operand::Vector(parts))) if ty == Type::B64 && parts.len() == 2 => {
            let low = lower.src(parts.first(), Class::W32);
            let high = lower.src(parts.get(1), Class::W32);
            let d = lower.dst(o.first());
            lower.emit(Op::Pack, &[low, high], &[d]);
        }
        (Some(ptx::Operand::Register(_)), Some(source)) if !matches!(source, ptx::Operand::Vector(_)) => {
            let d = lower.dst(o.first());
            if ty == Type::B128 {
                return lower.give_up(i, Reason::Instruction);
            }
            let value = lower.src(Some(source), lower.f.class(d));
            let value = match value.src {
                Src::Imm(bits) if ty.size() == 2 => SrcOperand::imm(bits & 0xffff),
                _ => value,
            };
            lower.emit(Op::Mov, &[value], &[d]);
        }
        _ => mov_pieces(lower, ty, i),
    }
}

fn convert(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction, d: Var) {
    let mut types = op.parts[1..].iter().filter_map(|part| Type::from_name(part));
    let (Some(to), Some(from)) = (types.next(), types.next()) else { return lower.give_up(i, Reason::Instruction) };
    if is_float(to) || is_float(from) {
        if !convert_float(lower, op, i, (to, from), d) {
            lower.give_up(i, Reason::Float);
        }
        return;
    }
    if has(op, "sat") || has(op, "pack") || d == Var::NONE {
        return lower.give_up(i, Reason::Bits);
    }
    if to.size() == 8
        && let Some((local, offset)) = parameter_address(lower, i.operands.get(1))
    {
        let address = lower.variable_address(local, offset, Class::W64);
        return lower.emit(Op::Mov, &[address], &[d]);
    }
    let register = lower.operand_type(i.operands.first()).map_or(to.size(), Type::size);
    let value = lower.src(i.operands.get(1), class(from));
    let wide = lower.f.class(d);
    // Extended from the source's bits, cut to the result's, and a signed result fills its
    // register.
    let (from_bits, to_bits) = ((from.size() * 8) as u8, (to.size() * 8) as u8);
    if from_bits < to_bits {
        let value = if let Src::Imm(_) = value.src { return lower.give_up(i, Reason::Bits) } else { value };
        if is_signed(from) && to_bits < 32 {
            let extended = lower.temporary(Class::W32, Op::Ext { bits: from_bits, signed: true }, &[value]);
            lower.emit(Op::Ext { bits: (register * 8).min(32) as u8, signed: false }, &[extended], &[d]);
        } else {
            lower.emit(Op::Ext { bits: from_bits, signed: is_signed(from) }, &[value], &[d]);
        }
    } else if is_signed(to) && register > to.size() {
        // Such a register holds zeros above its own width.
        let extended = lower.temporary(wide, Op::Ext { bits: to_bits, signed: true }, &[value]);
        lower.emit(Op::Ext { bits: (register * 8) as u8, signed: false }, &[extended], &[d]);
    } else {
        lower.emit(Op::Ext { bits: to_bits, signed: false }, &[value], &[d]);
    }
}

fn convert_address(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction) {
    let d = lower.dst(i.operands.first());
    if d == Var::NONE {
        return;
    }
    if has(op, "global") || has(op, "const") || has(op, "param") || has(op, "param::entry") {
        let value = lower.src(i.operands.get(1), lower.f.class(d));
        return lower.emit(Op::Mov, &[value], &[d]);
    }
    lower.give_up(i, Reason::Window);
}

fn compare(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction, ty: Type) {
    if is_float(ty) {
        return compare_floats(lower, op, i, ty);
    }
    let o = &i.operands;
    let (cmp, unsigned) = match op.parts.get(1).map_or("", String::as_str) {
        "eq" => (Cmp::Eq, false),
        "ne" => (Cmp::Ne, false),
        "lt" => (Cmp::Lt, false),
        "le" => (Cmp::Le, false),
        "gt" => (Cmp::Gt, false),
        "ge" => (Cmp::Ge, false),
        "lo" => (Cmp::Lt, true),
        "ls" => (Cmp::Le, true),
        "hi" => (Cmp::Gt, true),
        "hs" => (Cmp::Ge, true),
        _ => return lower.give_up(i, Reason::Instruction),
    };
    let signed = is_signed(ty) && !unsigned;
    let wide = class(ty) == Class::W64;
    let (a, b) = if ty.size() == 2 {
        (lower.narrow(o.get(1), signed), lower.narrow(o.get(2), signed))
    } else {
        (lower.src(o.get(1), class(ty)), lower.src(o.get(2), class(ty)))
    };
    set_predicates(lower, op, i, (a, b), |combine| Op::Cmp { cmp, signed, wide, combine });
}

/// The result of a comparison, joined with a third predicate where there is one, in one
/// predicate or in two (PTX ISA, "setp").
pub(super) fn set_predicates(
    lower: &mut Lower<'_>,
    op: &OpcodeInfo,
    i: &Instruction,
    (a, b): (SrcOperand, SrcOperand),
    compare: impl FnOnce(Combine) -> Op,
) {
    let o = &i.operands;
    let combine = match op.parts.get(2).map_or("", String::as_str) {
        "or" => Combine::Or,
        "xor" => Combine::Xor,
        _ => Combine::And,
    };
    let third = if o.len() > 3 { lower.src(o.get(3), Class::Pred) } else { SrcOperand::imm(1) };
    let (p, q) = match o.first() {
        Some(ptx::Operand::Pair(pair)) => (lower.dst(Some(&pair.0)), lower.dst(Some(&pair.1))),
        other => (lower.dst(other), Var::NONE),
    };
    let both = [p, q];
    let dsts = if q == Var::NONE { &both[..1] } else { &both[..] };
    lower.emit(compare(combine), &[a, b, third], dsts);
}

/// Truth tables: bit `4*a + 2*b + c`.
fn lut(name: &str) -> u8 {
    match name {
        "and" => 0xc0,
        "or" => 0xfc,
        "xor" => 0x3c,
        _ => 0x0f,
    }
}
