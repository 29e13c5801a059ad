//! Values of whole warps that are two rows of a block: one for each half, or growing from lane to
//! lane within it. Variables of the first half hold what is one for the pack; those of the second
//! half have values only where they differ (`Class::Halves`).

use cranelift_codegen::ir::{InstBuilder, Value};

use super::lanes::Pack;
use super::uniformity::Class;
use crate::effects::{self, Register};
use sim_exec::program::Inst;

/// The first lane's value in the second half, of what is known of the first half.
fn in_second_half(register: Register, p: &mut Pack<'_, '_>) -> Option<Value> {
    let class = p.classes.of(register);
    match class {
        Class::Uniform => Some(p.e.v.get(register)),
        Class::Affine(step) => {
            let value = p.e.v.get(register);
            let far = step.wrapping_mul(p.width.lanes() as i64 / 2);
            Some(p.e.v.b.ins().iadd_imm_s(value, far))
        }
        Class::Halves(_) | Class::Unknown | Class::Varying => None,
    }
}

/// Keeps a register's values by halves.
pub(super) fn halve(register: Register, p: &mut Pack<'_, '_>) {
    if let Some(value) = in_second_half(register, p) {
        p.second_half(|v| v.put(register, value));
    }
}

/// An instruction that is executed once for each half of a whole warp.
pub(super) fn by_halves(i: &Inst, pc: u32, p: &mut Pack<'_, '_>) {
    let effects = effects::effects(p.e.v.program, i);
    let mut registers: Vec<Register> = effects.reads.iter().chain(&effects.writes).copied().collect();
    registers.sort_unstable();
    registers.dedup();
    // What is one for both halves is so in the second one's variables as well.
    let known = |register| in_second_half(register, p).map(|value| (register, value));
    let known: Vec<(Register, Value)> = registers.into_iter().filter_map(known).collect();
    let (flow, half) = (p.e.v.flow, p.width.lanes() / 2);
    p.e.instruction(flow, i, pc);
    p.e.with_other_half(half, |e| {
        known.into_iter().for_each(|(register, value)| e.v.put(register, value));
        e.instruction(flow, i, pc);
    });
}
