//! Which registers each instruction reads and writes.

use sim_exec::operations::Role;
use sim_exec::program::{Inst, Pred, Program, Slot};

/// A register of a frame: a row by its number, or a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Register {
    Row(u32),
    Pred(u32),
}

/// The registers that an instruction reads and writes.
#[derive(Debug, Default, Clone)]
pub(super) struct Effects {
    pub(crate) reads: Vec<Register>,
    pub(crate) writes: Vec<Register>,
    /// It may read every register.
    pub(crate) all: bool,
}

impl Effects {
    fn read(&mut self, slot: Slot) {
        if slot != Slot::NONE && slot.0 & Slot::CONSTANT == 0 {
            self.reads.push(Register::Row(slot.0));
        }
    }

    fn write(&mut self, slot: Slot) {
        if slot != Slot::NONE && slot.0 & Slot::CONSTANT == 0 {
            self.writes.push(Register::Row(slot.0));
        }
    }

    fn test(&mut self, pred: u32) {
        if pred & !Pred::NEGATED != Pred::ALWAYS.0 {
            self.reads.push(Register::Pred(pred & !Pred::NEGATED));
        }
    }

    fn set(&mut self, pred: u32) {
        if pred != Pred::ALWAYS.0 {
            self.writes.push(Register::Pred(pred & !Pred::NEGATED));
        }
    }
}

/// What an instruction reads and writes, its guard included.
pub(super) fn effects(program: &Program, inst: &Inst) -> Effects {
    let mut e = Effects::default();
    if inst.guard != Pred::ALWAYS {
        e.test(inst.guard.0);
    }
    // What reads everything is asked for nothing else.
    if inst.op.operands().iter().any(|operand| operand.role == Role::Any) {
        e.all = true;
        return e;
    }
    for operand in inst.op.operands() {
        let Some(registers) = operand.registers(program, inst) else {
            e.all = true;
            continue;
        };
        for register in registers {
            match operand.role {
                Role::Read => e.read(Slot(register)),
                Role::Write => e.write(Slot(register)),
                Role::Test => e.test(register),
                Role::Set => e.set(register),
                Role::Word | Role::Long | Role::Any => {}
            }
        }
    }
    e
}
