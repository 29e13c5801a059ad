//! Values put together of parts and taken apart: vectors of registers in `mov`, and funnel shifts.

use std::rc::Rc;

use crate::ir::{Class, Op, Reason, SrcOperand, Var};
use device_code::ptx::{self, Body, Instruction, Local, OpcodeInfo, Register, Space, Type};

use super::{Lower, class};
use crate::lower_ptx::arithmetic::has;

/// No instruction, or several.
const NONE: u32 = u32::MAX;

/// For each register the one instruction that writes it, without a predicate; [`NONE`] for all
/// others.
///
/// Let `b` be such a register that was computed from such a register `a`. Wherever `b` is read, `a`
/// still holds the value from which `b` was computed: the definition of `a` comes before that of
/// `b` on every path, so a path that passes the definition of `a` again passes that of `b` too.
pub(super) fn definitions(body: &Body) -> Rc<[u32]> {
    fn written(operand: &ptx::Operand, note: &mut impl FnMut(Register)) {
        match operand {
            ptx::Operand::Register(register) => note(*register),
            ptx::Operand::Vector(list) | ptx::Operand::List(list) => list.iter().for_each(|o| written(o, note)),
            ptx::Operand::Pair(pair) => {
                written(&pair.0, note);
                written(&pair.1, note);
            }
            _ => {}
        }
    }
    let mut found = vec![(NONE, 0u32); body.registers.len()];
    for (at, instruction) in body.code.iter().enumerate() {
        if let Some(first) = instruction.operands.first() {
            written(first, &mut |register| {
                let (place, times) = &mut found[register.index()];
                (*place, *times) = (if instruction.guard.is_some() { NONE } else { at as u32 }, *times + 1);
            });
        }
    }
    found.into_iter().map(|(at, times)| if times == 1 { at } else { NONE }).collect()
}

/// The one instruction that writes a register.
fn definition<'m>(lower: &Lower<'m>, register: Register) -> Option<&'m Instruction> {
    let here = lower.here();
    here.body.code.get(*here.definitions.get(register.index())? as usize)
}

/// The parameter whose address in the space of parameters this 32-bit register holds.
pub(super) fn parameter_address(lower: &Lower<'_>, operand: Option<&ptx::Operand>) -> Option<(Local, i64)> {
    let Some(ptx::Operand::Register(register)) = operand else { return None };
    let made = definition(lower, *register)?;
    match (lower.module.opcode(made.opcode).parts[0].as_str(), made.operands.get(1)) {
        ("mov", Some(&ptx::Operand::Local(local, offset)))
            if lower.here().body.variables[local.index()].space == Space::Param =>
        {
            Some((local, offset))
        }
        _ => None,
    }
}

/// The words that a 64-bit register was put together of.
pub(super) fn words_in(lower: &Lower<'_>, operand: &ptx::Operand) -> Option<[ptx::Operand; 2]> {
    let ptx::Operand::Register(register) = operand else { return None };
    let made = definition(lower, *register)?;
    match (lower.module.opcode(made.opcode).text.as_str(), made.operands.get(1)) {
        ("mov.b64", Some(ptx::Operand::Vector(parts))) if parts.len() == 2 => {
            let lasts = |part: &ptx::Operand| match part {
                ptx::Operand::Register(r) => lower.here().definitions[r.index()] != NONE,
                ptx::Operand::Int(_) => true,
                _ => false,
            };
            parts.iter().all(lasts).then(|| [parts[0].clone(), parts[1].clone()])
        }
        _ => None,
    }
}

/// `mov.b32 %r, {a, b}` and `mov.b32 {a, b}, %r`, of halves, bytes, or of four halves.
pub(super) fn mov_pieces(lower: &mut Lower<'_>, ty: Type, i: &Instruction) {
    let wide = class(ty);
    match (i.operands.first(), i.operands.get(1)) {
        (Some(ptx::Operand::Register(_)), Some(ptx::Operand::Vector(parts))) if (2..=4).contains(&parts.len()) => {
            let bits = ty.size() * 8 / parts.len() as u32;
            if bits >= 32 || ty == Type::B128 {
                return lower.give_up(i, Reason::Bits);
            }
            let mut whole = SrcOperand::imm(0);
            for (n, part) in parts.iter().enumerate() {
                let value = lower.src(Some(part), Class::W32);
                let piece = lower.temporary(wide, Op::Ext { bits: bits as u8, signed: false }, &[value]);
                let shift = SrcOperand::imm(u64::from(bits) * n as u64);
                let placed = if n == 0 { piece } else { lower.temporary(wide, Op::Shl, &[piece, shift]) };
                whole = if n == 0 { placed } else { lower.temporary(wide, Op::Add, &[whole, placed]) };
            }
            let d = lower.dst(i.operands.first());
            lower.emit(Op::Mov, &[whole], &[d]);
        }
        (Some(ptx::Operand::Vector(parts)), Some(source)) if (2..=4).contains(&parts.len()) => {
            let bits = ty.size() * 8 / parts.len() as u32;
            if bits >= 32 || ty == Type::B128 {
                return lower.give_up(i, Reason::Bits);
            }
            let value = lower.src(Some(source), wide);
            let dsts: Vec<Var> = parts.iter().map(|part| lower.dst(Some(part))).collect();
            // All pieces first: a result may be the source's register.
            let pieces: Vec<SrcOperand> = (0..parts.len() as u64)
                .map(|n| {
                    let shift = SrcOperand::imm(u64::from(bits) * n);
                    let shifted = lower.temporary(wide, Op::Shr { signed: false }, &[value, shift]);
                    lower.temporary(Class::W32, Op::Ext { bits: bits as u8, signed: false }, &[shifted])
                })
                .collect();
            for (d, piece) in dsts.into_iter().zip(pieces).filter(|(d, _)| *d != Var::NONE) {
                lower.emit(Op::Mov, &[piece], &[d]);
            }
        }
        _ => lower.give_up(i, Reason::Bits),
    }
}

/// `shf.l` and `shf.r` of `{b, a}` by a constant; the low word is the first source.
pub(super) fn shf(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction, d: Var) {
    let o = &i.operands;
    let Some(&ptx::Operand::Int(by)) = o.get(3) else { return lower.give_up(i, Reason::Bits) };
    let by = if has(op, "clamp") { by.min(32) } else { by & 31 };
    let (low, high) = (lower.src(o.get(1), Class::W32), lower.src(o.get(2), Class::W32));
    // A shift to the left by n leaves what one to the right by 32 - n does: bits of the high
    // word above bits of the low one.
    let right = if has(op, "r") { by } else { 32 - by };
    match right {
        0 => lower.emit(Op::Mov, &[low], &[d]),
        32 => lower.emit(Op::Mov, &[high], &[d]),
        _ => {
            let above = lower.temporary(Class::W32, Op::Shl, &[high, SrcOperand::imm(32 - right)]);
            let below = lower.temporary(Class::W32, Op::Shr { signed: false }, &[low, SrcOperand::imm(right)]);
            lower.emit(Op::Add, &[above, below], &[d]);
        }
    }
}
