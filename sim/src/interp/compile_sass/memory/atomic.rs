//! Family of atomic operations on memory.

use kernels::ptx::Type;
use kernels::sass::{AtomOp, AtomTy, CasKind, InstOperand, MachineInst, Opcode};

use crate::interp::compile::blank;
use crate::interp::compile::load_store::atomic_by_name;
use crate::interp::compile_sass::operands::SCRATCH;
use crate::interp::compile_sass::{Result, Translation};
use crate::interp::exec::control;
use crate::interp::exec::per_lane::op2;
use crate::interp::exec_sass::memory;
use crate::interp::program::{Inst, InstFn, Pred, Slot};

/// The same type in PTX.
fn ptx_type(ty: AtomTy) -> Option<Type> {
    Some(match ty {
        AtomTy::U32 => Type::U32,
        AtomTy::S32 => Type::S32,
        AtomTy::U64 => Type::U64,
        AtomTy::S64 => Type::S64,
        AtomTy::F32 | AtomTy::F32Ftz => Type::F32,
        AtomTy::F64 => Type::F64,
        AtomTy::F16x2 => Type::F16x2,
        AtomTy::Bf16x2 => Type::Bf16x2,
        _ => return None,
    })
}

/// The execution of an operation, as PTX has it.
fn operation(op: AtomOp, ty: AtomTy) -> Option<InstFn> {
    let name = match op {
        AtomOp::Add | AtomOp::PopcInc => "add",
        AtomOp::Min => "min",
        AtomOp::Max => "max",
        AtomOp::Inc => "inc",
        AtomOp::Dec => "dec",
        AtomOp::And => "and",
        AtomOp::Or => "or",
        AtomOp::Xor => "xor",
        AtomOp::Exch => "exch",
        AtomOp::SafeAdd | AtomOp::Arrive => return None,
    };
    atomic_by_name(name, ptx_type(ty)?).map(|(scalar, _)| scalar)
}

impl Translation<'_> {
    /// Returns false when the instruction is of another family.
    pub(in crate::interp::compile_sass) fn atomic(&mut self, i: &MachineInst) -> Result<bool> {
        match i.op {
            Opcode::Atom { op: AtomOp::PopcInc, ty: AtomTy::U32 } => {
                // Each active lane adds one.
                let one = self.constant(1);
                self.update(i, AtomOp::Add, AtomTy::U32, [one, one])?;
            }
            Opcode::Atom { op, ty } | Opcode::Red { op, ty } => {
                let b = self.atom_operand(&i.src[0], ty)?;
                self.update(i, op, ty, [b, b])?;
            }
            Opcode::AtomCas { ty, cast } => self.compare_and_swap(i, ty, cast)?,
            Opcode::Qspc => {
                let d = self.pdst(i, 0);
                if i.dst.is_some_and(|run| !run.is_dropped()) || d == Pred::ALWAYS {
                    return self.unsupported(i);
                }
                let (a, x, _) = self.address(i, &i.mem[0])?;
                // The space asked about, at 73..75: global, local, shared.
                let y = self.bits(73, 75);
                self.emit(Inst { d: Slot(d.0), a, x, y, ..blank(memory::is_in_space) });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn atom_operand(&mut self, operand: &InstOperand, ty: AtomTy) -> Result<Slot> {
        if ty.regs() == 2 { self.pair(operand) } else { self.raw_word(operand, 0) }
    }

    fn update(&mut self, i: &MachineInst, op: AtomOp, ty: AtomTy, [b, c]: [Slot; 2]) -> Result<()> {
        let Some(run) = operation(op, ty) else { return self.unsupported(i) };
        let (a, x, space) = self.address(i, &i.mem[0])?;
        let returns = i.dst.is_some_and(|run| !run.is_dropped());
        let d = match (returns, ty.regs()) {
            (false, _) => SCRATCH,
            (true, 1) => self.dst(i, 0),
            (true, _) => self.temporary(),
        };
        self.emit(Inst { d, a, b, c, x, z: space | 1 << 4, ..blank(run) });
        if returns && ty.regs() == 2 {
            self.split(i, d);
        }
        self.done(i);
        Ok(())
    }

    /// The predicate that says that the operation was carried out: always.
    fn done(&mut self, i: &MachineInst) {
        let d = self.pdst(i, 0);
        if d != Pred::ALWAYS {
            let a = Slot(Pred::ALWAYS.0);
            self.emit(Inst { d: Slot(d.0), a, b: a, y: 0, ..blank(control::predicate) });
        }
    }

    fn compare_and_swap(&mut self, i: &MachineInst, ty: AtomTy, cast: CasKind) -> Result<()> {
        let wide = ty.regs() == 2;
        let kind = if wide { Type::U64 } else { Type::U32 };
        let Some((run, _)) = atomic_by_name("cas", kind) else { return self.unsupported(i) };
        let (b, c) = (self.atom_operand(&i.src[0], ty)?, self.atom_operand(&i.src[1], ty)?);
        let (a, x, space) = self.address(i, &i.mem[0])?;
        let old = self.temporary();
        self.emit(Inst { d: old, a, b, c, x, z: space | 1 << 4, ..blank(run) });
        let result = if cast == CasKind::Cas {
            old
        } else {
            // A step of a retry loop asks only whether the swap was done.
            let d = self.temporary();
            self.emit(Inst { d, a: old, b, ..blank(op2(|a: u64, b: u64| u64::from(a == b))) });
            d
        };
        self.split(i, result);
        self.done(i);
        Ok(())
    }
}
