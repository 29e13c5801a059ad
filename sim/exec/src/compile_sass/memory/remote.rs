//! Family of asynchronous stores and reductions into shared memory of a block of the cluster: STAS
//! and REDAS (PTX ISA, "st.async", "red.async"). They are done at once, and a barrier object learns
//! how many bytes came.
//!
//! A pair of registers has the address and that of the barrier object, both with a block's rank.
//! (Fields were read off what ptxas 13.0 makes of each form of `tests/measured/hopper.txt`.)

use device_code::arch::Generation;
use device_code::sass::{AtomTy, MachineInst, MemOperand, MemTy, Opcode, Reg};

use crate::compile::function::Result;
use crate::compile_sass::control::bits;
use crate::compile_sass::memory::atomic::operation;
use crate::compile_sass::operands::SCRATCH;
use crate::compile_sass::translation::Translation;
use crate::exec::bulk::mbarrier;
use crate::exec::load_store::GENERIC;
use crate::exec::per_lane::op1;
use crate::exec::told::strength::{PLAIN, RELAXED};
use crate::machine_module::SHARED_WINDOW;
use crate::operations::build::{self, Elements};
use crate::program::{LaneTy, Slot};

const STORE: u16 = 0xdbd;
const REDUCE: u16 = 0xdbe;

/// Returns false when the instruction is of another family.
pub(in crate::compile_sass) fn remote(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    if t.generation != Generation::Hopper {
        return Ok(false);
    }
    match (i.op, i.opcode) {
        (Opcode::Store { ty }, STORE) => {
            let words = match ty {
                MemTy::B32 => 1,
                MemTy::B64 => 2,
                MemTy::B128 => 4,
                _ => return t.unsupported(i),
            };
            let [address, barrier] = places(i, t)?;
            let rows = (0..words).map(|word| t.raw_word(&i.src[0], word)).collect::<Result<Vec<_>>>()?;
            let Elements { one: value, all, count } = Elements::new(rows);
            let (ty, offset, space, strength) = (LaneTy::U32, 0, GENERIC, PLAIN);
            t.emit(build::Store { ty, address, value, all, offset, space, count, strength });
            complete(barrier, u64::from(words) * 4, t);
        }
        (Opcode::Red { op, .. }, REDUCE) => {
            let (ty, bytes) = match bits(73, 76, t) {
                0 => (AtomTy::U32, 4),
                1 => (AtomTy::S32, 4),
                2 => (AtomTy::U64, 8),
                _ => return t.unsupported(i),
            };
            let Some(update) = operation(op, ty) else { return t.unsupported(i) };
            let [address, barrier] = places(i, t)?;
            let low = t.raw_word(&i.src[0], 0)?;
            let b = match bytes {
                8 => {
                    let high = t.raw_word(&i.src[0], 1)?;
                    t.joined(low, high)
                }
                _ => low,
            };
            let (c, d, offset, space, strength) = (b, SCRATCH, 0, GENERIC, RELAXED);
            t.emit(build::Atomic { update, address, b, c, d, offset, space, strength });
            complete(barrier, bytes, t);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The generic addresses of the memory and of the barrier object.
fn places(i: &MachineInst, t: &mut Translation<'_>) -> Result<[Slot; 2]> {
    let Some(&MemOperand { base, base64: true, ubase: None, offset: 0, .. }) = i.mem.first() else {
        return t.unsupported(i);
    };
    Ok([base, Reg(base.0.saturating_add(1))].map(|register| {
        let (offset, d) = (t.reg(register), t.temporary());
        t.emit(op1(|a: u32| SHARED_WINDOW + u64::from(a)).of([offset]).to(d));
        d
    }))
}

/// Bytes arrive at the barrier object.
fn complete(address: Slot, bytes: u64, t: &mut Translation<'_>) {
    let number = t.constant(bytes);
    let (d, offset, space, what) = (SCRATCH, 0, GENERIC, mbarrier::COMPLETE);
    t.emit(build::MbarrierOperate { address, number, d, offset, space, what });
}
