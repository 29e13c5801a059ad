//! Values of whole warps that are two rows of a block: one for each half, or growing from lane to
//! lane within it. Variables of the first half hold what is one for the pack; those of the second
//! half have values only where they differ (`Class::Halves`).

use cranelift_codegen::ir::{InstBuilder, Value};

use super::lanes::Pack;
use super::uniformity::Class;
use crate::effects::{self, Register};
use crate::values::Values;
use sim_exec::program::{Inst, Slot};

impl<'p, 'b> Pack<'p, 'b> {
    /// The same within each half: then the step.
    pub(super) fn half_step(&self, slot: Slot) -> Option<i64> {
        match self.classes.slot(slot) {
            Class::Halves(step) => Some(step),
            _ => None,
        }
    }

    /// Does something with the values of the second half.
    pub(super) fn second_half<R>(&mut self, f: impl FnOnce(&mut Values<'p, 'b>) -> R) -> R {
        let half = self.width.lanes() / 2;
        self.e.v.with_other_half(half, f)
    }

    /// The first lane's value in the second half, of what is known of the first half.
    pub(super) fn in_second_half(&mut self, register: Register) -> Option<Value> {
        let class = self.classes.of(register);
        match class {
            Class::Uniform => Some(self.e.v.get(register)),
            Class::Affine(step) => {
                let value = self.e.v.get(register);
                let far = step.wrapping_mul(self.width.lanes() as i64 / 2);
                Some(self.e.v.b.ins().iadd_imm_s(value, far))
            }
            Class::Halves(_) | Class::Unknown | Class::Varying => None,
        }
    }

    /// Keeps a register's values by halves.
    pub(super) fn halve(&mut self, register: Register) {
        if let Some(value) = self.in_second_half(register) {
            self.second_half(|v| v.put(register, value));
        }
    }

    /// An instruction that is executed once for each half of a whole warp.
    pub(super) fn by_halves(&mut self, i: &Inst, pc: u32) {
        let effects = effects::effects(self.e.v.program, i);
        let mut registers: Vec<Register> = effects.reads.iter().chain(&effects.writes).copied().collect();
        registers.sort_unstable();
        registers.dedup();
        // What is one for both halves is so in the second one's variables as well.
        let known = |register| self.in_second_half(register).map(|value| (register, value));
        let known: Vec<(Register, Value)> = registers.into_iter().filter_map(known).collect();
        let (flow, half) = (self.e.v.flow, self.width.lanes() / 2);
        self.e.instruction(flow, i, pc);
        self.e.with_other_half(half, |e| {
            known.into_iter().for_each(|(register, value)| e.v.put(register, value));
            e.instruction(flow, i, pc);
        });
    }
}
