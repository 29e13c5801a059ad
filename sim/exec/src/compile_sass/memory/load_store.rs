//! Families of loads and stores: constant banks, global, generic, shared and local memory.

use device_code::sass::{
    AddressSpace, Bank, Index, InstOperand, MachineInst, MemOperand, MemTy, Opcode, PredSrc, Strength, UReg, Value,
};

use crate::compile::{blank, lane};
use crate::compile_sass::{Result, Translation};
use crate::exec::load_store::{GENERIC, GLOBAL, LOCAL, SHARED, STRONG};
use crate::exec::per_lane::{op1, op2, op2x};
use crate::program::{Inst, LaneTy, Operation, Sem, Slot};

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

/// Whether an access reaches other kernels atomically, as loads and stores carry it.
fn order_of(m: &MemOperand) -> Slot {
    if m.strength == Strength::Device { STRONG } else { Slot::NONE }
}

impl Translation<'_> {
    /// Returns false when the instruction is of another family.
    pub(in crate::compile_sass) fn load_store(&mut self, i: &MachineInst) -> Result<bool> {
        match i.op {
            Opcode::LoadConst { ty, mode } => self.load_constant(i, ty, mode)?,
            Opcode::Load { ty } => self.load(i, ty)?,
            Opcode::Store { ty } => self.store(i, ty)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn load_constant(&mut self, i: &MachineInst, ty: MemTy, mode: u8) -> Result<()> {
        let Some(Value::Const(constant)) = i.src.first().map(|source| source.value) else { return self.unsupported(i) };
        let Bank::Number(bank) = constant.bank else { return self.unsupported(i) };
        if mode != 0 {
            return self.unsupported(i);
        }
        let words = ty.regs();
        if let (Index::None, MemTy::B32 | MemTy::B64 | MemTy::B128) = (constant.index, ty) {
            for word in 0..words {
                let operand = InstOperand { regs: 1, ..i.src[0] };
                let (a, d) = (self.raw_word(&operand, word)?, self.dst(i, word));
                self.emit(Inst { d, a, ..lane(op1(|a: u32| a).is(Sem::Move)) });
            }
            return Ok(());
        }
        let index = match constant.index {
            Index::None => self.constant(0),
            Index::Reg(reg) => self.reg(reg),
            Index::UReg(reg) => self.ureg(reg),
        };
        if bank == 3 {
            // The offset has 32 bits and may wrap.
            let Some((start, _)) = self.constant_variables() else {
                return self.wrong("constant bank 3 is not there");
            };
            let (offset, address) = (self.temporary(), self.temporary());
            let x = constant.offset as i64 as u64;
            let run = op2x(|a: u32, _: u32, x: u64| a.wrapping_add(x as u32));
            self.emit(Inst { d: offset, a: index, b: index, x, ..lane(run) });
            let run = op2x(|a: u32, _: u32, x: u64| u64::from(a).wrapping_add(x));
            self.emit(Inst { d: address, a: offset, b: offset, x: start, ..lane(run) });
            return self.load_from(i, ty, (address, 0, GLOBAL), Slot::NONE);
        }
        // All words at once into rows of their own: the index may be one of the results.
        let first = self.temporary();
        for _ in 1..words {
            self.temporary();
        }
        let cell = match ty {
            MemTy::U8 => LaneTy::U8,
            MemTy::S8 => LaneTy::I8,
            MemTy::U16 => LaneTy::U16,
            MemTy::S16 => LaneTy::I16,
            _ => LaneTy::U32,
        };
        let x = constant.offset as i64 as u64;
        let z = u32::from(bank);
        self.emit(Inst {
            d: first,
            a: index,
            c: Slot(32),
            x,
            y: u32::from(words),
            z,
            ..blank(Operation::LoadBank(cell))
        });
        for word in 0..words {
            let d = self.dst(i, word);
            self.emit(Inst { d, a: Slot(first.0 + u32::from(word)), ..lane(op1(|a: u32| a).is(Sem::Move)) });
        }
        Ok(())
    }

    /// The address of a memory operand: a row, what is added to it, and the space.
    pub(crate) fn address(&mut self, i: &MachineInst, m: &MemOperand) -> Result<(Slot, u64, u32)> {
        let Some(space) = space_number(m.space) else { return self.unsupported(i) };
        let near = matches!(space, SHARED | LOCAL);
        let offset = m.offset as u64;
        let mut base = self.reg(m.base);
        if near {
            if m.scale != 1 {
                let d = self.temporary();
                let x = u64::from(m.scale);
                self.emit(Inst {
                    d,
                    a: base,
                    b: base,
                    x,
                    ..lane(op2x(|a: u32, _: u32, x: u64| a.wrapping_mul(x as u32)))
                });
                base = d;
            }
            if let Some(uniform) = m.ubase.filter(|uniform| !uniform.is_zero()) {
                let (d, b) = (self.temporary(), self.ureg(uniform));
                self.emit(Inst { d, a: base, b, ..lane(op2(|a: u32, b: u32| a.wrapping_add(b)).is(Sem::Add)) });
                base = d;
            }
            return Ok((base, offset, space));
        }
        if m.base64 {
            base = self.pair(&InstOperand { regs: 2, ..InstOperand::reg(m.base) })?;
        }
        if let Some(uniform) = m.ubase.filter(|uniform| !uniform.is_zero()) {
            let high = self.ureg(UReg(uniform.0 + 1));
            let low = self.ureg(uniform);
            let (b, d) = (self.joined(low, high), self.temporary());
            self.emit(Inst { d, a: base, b, ..lane(op2(|a: u64, b: u64| a.wrapping_add(b)).is(Sem::Add)) });
            base = d;
        }
        Ok((base, offset, space))
    }

    fn load(&mut self, i: &MachineInst, ty: MemTy) -> Result<()> {
        if i.dst2.is_some() || !i.pdst[0].is_true() {
            return self.unsupported(i);
        }
        let wanted = i.psrc[0];
        if wanted != PredSrc::TRUE {
            // Measured: where the predicate source is false, the result is zero.
            let guard = self.guard;
            self.under(&[PredSrc { not: !wanted.not, ..wanted }]);
            let a = self.constant(0);
            for word in 0..ty.regs() {
                let d = self.dst(i, word);
                self.emit(Inst { d, a, ..lane(op1(|a: u32| a).is(Sem::Move)) });
            }
            self.guard = guard;
            self.under(&[wanted]);
        }
        let place = self.address(i, &i.mem[0])?;
        self.load_from(i, ty, place, order_of(&i.mem[0]))
    }

    fn load_from(&mut self, i: &MachineInst, ty: MemTy, (a, x, space): (Slot, u64, u32), b: Slot) -> Result<()> {
        let (cell, count) = match ty {
            MemTy::U8 => (LaneTy::U8, 1),
            MemTy::S8 => (LaneTy::I8, 1),
            MemTy::U16 => (LaneTy::U16, 1),
            MemTy::S16 => (LaneTy::I16, 1),
            MemTy::B32 => (LaneTy::U32, 1),
            MemTy::B64 => (LaneTy::U32, 2),
            MemTy::B128 => (LaneTy::U32, 4),
            MemTy::B256 => return self.unsupported(i),
        };
        let d = self.dst(i, 0);
        let slots: Vec<Slot> = (0..count as u8).map(|word| self.dst(i, word)).collect();
        let y = if count > 1 { self.list(&slots) } else { 0 };
        self.emit(Inst { d, a, b, c: Slot(32), x, y, z: space | count << 4, ..blank(Operation::Load(cell)) });
        Ok(())
    }

    fn store(&mut self, i: &MachineInst, ty: MemTy) -> Result<()> {
        let (a, x, space) = self.address(i, &i.mem[0])?;
        let (cell, count) = match ty {
            MemTy::U8 | MemTy::S8 => (LaneTy::U8, 1),
            MemTy::U16 | MemTy::S16 => (LaneTy::U16, 1),
            MemTy::B32 => (LaneTy::U32, 1),
            MemTy::B64 => (LaneTy::U32, 2),
            MemTy::B128 => (LaneTy::U32, 4),
            MemTy::B256 => return self.unsupported(i),
        };
        let mut slots = Vec::new();
        for word in 0..count as u8 {
            slots.push(self.raw_word(&i.src[0], word)?);
        }
        let (b, y) = (slots[0], if count > 1 { self.list(&slots) } else { 0 });
        let d = order_of(&i.mem[0]);
        self.emit(Inst { d, a, b, x, y, z: space | count << 4, ..blank(Operation::Store(cell)) });
        Ok(())
    }
}
