//! Families of loads and stores: constant banks, global, generic, shared and local memory.

use crate::compile_sass::control::under;
use device_code::sass::{
    AddressSpace, Bank, Index, InstOperand, MachineInst, MemOperand, MemTy, Opcode, PredSrc, Strength, UReg, Value,
};
use sim_races::{Order, Scope};

use crate::compile::function::Result;
use crate::compile_sass::translation::Translation;
use crate::exec::load_store::{GENERIC, GLOBAL, LOCAL, SHARED};
use crate::exec::per_lane::{op1, op2, op2x};
use crate::exec::told::strength::{PLAIN, RELAXED, UNSAID, VOLATILE, of_system, strong};
use crate::operations::build::{self, Elements};
use crate::program::{LaneTy, Sem, Slot};

/// The number of a space as the functions of the core have it.
fn space_number(space: AddressSpace) -> Option<u32> {
    Some(match space {
        AddressSpace::Global => GLOBAL,
        AddressSpace::Generic => GENERIC,
        AddressSpace::Shared => SHARED,
        AddressSpace::Local => LOCAL,
        _ => return None,
    })
}

/// What an access is towards other threads. Acquires and releases of the device are the fences
/// around it; of the block there is none behind an acquire.
pub(super) fn strength_of(m: &MemOperand) -> Option<u32> {
    match m.strength {
        Strength::Weak => None,
        Strength::Block => Some(strong(Order { acquire: true, release: false }, Scope::Block)),
        Strength::Device => Some(RELAXED),
        Strength::System => Some(of_system(RELAXED)),
    }
}

/// Returns false when the instruction is of another family.
pub(in crate::compile_sass) fn load_store(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    match i.op {
        Opcode::LoadConst { ty, mode } => load_constant(i, ty, mode, t)?,
        Opcode::Load { ty } => load(i, ty, t)?,
        Opcode::Store { ty } => store(i, ty, t)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn load_constant(i: &MachineInst, ty: MemTy, mode: u8, t: &mut Translation<'_>) -> Result<()> {
    let Some(Value::Const(constant)) = i.src.first().map(|source| source.value) else { return t.unsupported(i) };
    let Bank::Number(bank) = constant.bank else { return t.unsupported(i) };
    if mode != 0 {
        return t.unsupported(i);
    }
    let words = ty.regs();
    if let (Index::None, MemTy::B32 | MemTy::B64 | MemTy::B128) = (constant.index, ty) {
        for word in 0..words {
            let operand = InstOperand { regs: 1, ..i.src[0] };
            let (a, d) = (t.raw_word(&operand, word)?, t.dst(i, word));
            t.emit(op1(|a: u32| a).is(Sem::Move).of([a]).to(d));
        }
        return Ok(());
    }
    let index = match constant.index {
        Index::None => t.constant(0),
        Index::Reg(reg) => t.reg(reg),
        Index::UReg(reg) => t.ureg(reg),
    };
    if bank == 3 {
        // The offset has 32 bits and may wrap.
        let Some((start, _)) = t.constant_variables() else {
            return t.wrong("constant bank 3 is not there");
        };
        let (offset, address) = (t.temporary(), t.temporary());
        let x = constant.displacement() as u64;
        let run = op2x(|a: u32, _: u32, x: u64| a.wrapping_add(x as u32));
        t.emit(run.of([index, index]).with(x).to(offset));
        let run = op2x(|a: u32, _: u32, x: u64| u64::from(a).wrapping_add(x));
        t.emit(run.of([offset, offset]).with(start).to(address));
        return load_from(i, ty, (address, 0, GLOBAL), PLAIN, t);
    }
    // All words at once into rows of their own: the index may be one of the results.
    let first = t.temporary();
    for _ in 1..words {
        t.temporary();
    }
    let cell = match ty {
        MemTy::U8 => LaneTy::U8,
        MemTy::S8 => LaneTy::I8,
        MemTy::U16 => LaneTy::U16,
        MemTy::S16 => LaneTy::I16,
        _ => LaneTy::U32,
    };
    let offset = constant.displacement() as u64;
    let (count, bank) = (u32::from(words), u32::from(bank));
    t.emit(build::LoadBank { ty: cell, index, d: first, offset, words: count, bank, bits: 32 });
    for word in 0..words {
        let d = t.dst(i, word);
        t.emit(op1(|a: u32| a).is(Sem::Move).of([Slot(first.0 + u32::from(word))]).to(d));
    }
    Ok(())
}

/// The address of a memory operand: a row, what is added to it, and the space.
pub(crate) fn address(i: &MachineInst, m: &MemOperand, t: &mut Translation<'_>) -> Result<(Slot, u64, u32)> {
    let Some(space) = space_number(m.space) else { return t.unsupported(i) };
    let near = matches!(space, SHARED | LOCAL);
    let offset = m.offset as u64;
    let mut base = t.reg(m.base);
    if near {
        if m.scale != 1 {
            let d = t.temporary();
            let x = u64::from(m.scale);
            t.emit(op2x(|a: u32, _: u32, x: u64| a.wrapping_mul(x as u32)).of([base, base]).with(x).to(d));
            base = d;
        }
        if let Some(uniform) = m.ubase.filter(|uniform| !uniform.is_zero()) {
            let (d, b) = (t.temporary(), t.ureg(uniform));
            t.emit(op2(|a: u32, b: u32| a.wrapping_add(b)).is(Sem::Add).of([base, b]).to(d));
            base = d;
        }
        return Ok((base, offset, space));
    }
    if m.base64 {
        base = t.pair(&InstOperand { regs: 2, ..InstOperand::reg(m.base) })?;
    }
    if let Some(uniform) = m.ubase.filter(|uniform| !uniform.is_zero()) {
        let high = t.ureg(UReg(uniform.0 + 1));
        let low = t.ureg(uniform);
        let (b, d) = (t.joined(low, high), t.temporary());
        t.emit(op2(|a: u64, b: u64| a.wrapping_add(b)).is(Sem::Add).of([base, b]).to(d));
        base = d;
    }
    Ok((base, offset, space))
}

fn load(i: &MachineInst, ty: MemTy, t: &mut Translation<'_>) -> Result<()> {
    if i.dst2.is_some() || !i.pdst[0].is_true() {
        return t.unsupported(i);
    }
    let wanted = i.psrc[0];
    if wanted != PredSrc::TRUE {
        // Measured: where the predicate source is false, the result is zero.
        let guard = t.guard;
        under(&[PredSrc { not: !wanted.not, ..wanted }], t);
        let a = t.constant(0);
        for word in 0..ty.regs() {
            let d = t.dst(i, word);
            t.emit(op1(|a: u32| a).is(Sem::Move).of([a]).to(d));
        }
        t.guard = guard;
        under(&[wanted], t);
    }
    let place = address(i, &i.mem[0], t)?;
    let is_flag = place.2 == SHARED && t.polled.contains(&(t.section, t.pc));
    let otherwise = if is_flag { VOLATILE } else { PLAIN };
    load_from(i, ty, place, strength_of(&i.mem[0]).unwrap_or(otherwise), t)
}

fn load_from(
    i: &MachineInst,
    ty: MemTy,
    (address, offset, space): (Slot, u64, u32),
    strength: u32,
    t: &mut Translation<'_>,
) -> Result<()> {
    let (cell, count) = match ty {
        MemTy::U8 => (LaneTy::U8, 1),
        MemTy::S8 => (LaneTy::I8, 1),
        MemTy::U16 => (LaneTy::U16, 1),
        MemTy::S16 => (LaneTy::I16, 1),
        MemTy::B32 => (LaneTy::U32, 1),
        MemTy::B64 => (LaneTy::U32, 2),
        MemTy::B128 => (LaneTy::U32, 4),
        MemTy::B256 => return t.unsupported(i),
    };
    let rows = (0..count).map(|word| t.dst(i, word)).collect();
    let Elements { one: d, all, count } = Elements::new(rows);
    t.emit(build::Load { ty: cell, address, d, all, offset, space, count, bits: 32, strength });
    Ok(())
}

fn store(i: &MachineInst, ty: MemTy, t: &mut Translation<'_>) -> Result<()> {
    let (address, offset, space) = address(i, &i.mem[0], t)?;
    let (cell, count) = match ty {
        MemTy::U8 | MemTy::S8 => (LaneTy::U8, 1),
        MemTy::U16 | MemTy::S16 => (LaneTy::U16, 1),
        MemTy::B32 => (LaneTy::U32, 1),
        MemTy::B64 => (LaneTy::U32, 2),
        MemTy::B128 => (LaneTy::U32, 4),
        MemTy::B256 => return t.unsupported(i),
    };
    let mut rows = Vec::new();
    for word in 0..count {
        rows.push(t.raw_word(&i.src[0], word)?);
    }
    let Elements { one: value, all, count } = Elements::new(rows);
    let otherwise = if space == SHARED && !t.polled.is_empty() { UNSAID } else { PLAIN };
    let strength = strength_of(&i.mem[0]).unwrap_or(otherwise);
    t.emit(build::Store { ty: cell, address, value, all, offset, space, count, strength });
    Ok(())
}
