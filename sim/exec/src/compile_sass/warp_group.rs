//! Family of the products of warp groups: HGMMA, IGMMA, QGMMA, BGMMA, and WARPGROUP, which lets
//! them begin and waits for them. They become the operations of PTX's `wgmma`.
//!
//! A group ends with the product that counts a scoreboard (`gsb0`), where PTX has a
//! `wgmma.commit_group`; WARPGROUP.DEPBAR waits until at most so many groups are open. A group
//! without a product, as behind a loop, ends with one that has neither a result nor a descriptor.

use device_code::sass::{Arithmetic, MachineInst, MatrixTy, Opcode, PredSrc};

use super::tensor::element;
use super::translation::Translation;
use crate::compile::function::Result;
use crate::compile_sass::control::bits;
use crate::exec::matrix::Element;
use crate::exec::matrix::group_product::{GroupFactor, GroupForm};
use crate::operations::build;
use crate::program::Slot;

const WARPGROUP: u16 = 0x9c5;
const PRODUCT: u16 = 0x9f0;
/// RZ as the result, URZ as the descriptor.
const NOTHING: u32 = 0x3fff;

/// Returns false when the instruction is of another family.
pub(super) fn warp_group(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    match i.op {
        Opcode::Arithmetic(op @ Arithmetic::GroupMma { .. }) => product(i, op, t)?,
        // HGMMA RZ, gdesc[URZ], RZ, !UPT, gsb0.
        _ if i.opcode == PRODUCT && bits(16, 30, t) == NOTHING && bits(84, 87, t) == 0 => {
            t.emit(build::CommitProducts {});
        }
        // WARPGROUP.ARRIVE (`wgmma.fence`): what came before is there at once.
        _ if i.opcode == WARPGROUP && bits(80, 81, t) == 0 => t.emit(build::Nothing {}),
        // WARPGROUP.DEPBAR.LE gsb0.
        _ if i.opcode == WARPGROUP && bits(47, 48, t) == 1 && bits(84, 87, t) == 0 => {
            let pending = bits(72, 75, t);
            t.emit(build::AwaitProducts { pending });
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn factor(ty: MatrixTy) -> Option<GroupFactor> {
    match ty {
        MatrixTy::E4m3 => Some(GroupFactor::Eight(3)),
        MatrixTy::E5m2 => Some(GroupFactor::Eight(2)),
        MatrixTy::B1 => Some(GroupFactor::Bits),
        ty => element(ty).map(GroupFactor::Whole),
    }
}

fn product(i: &MachineInst, op: Arithmetic, t: &mut Translation<'_>) -> Result<()> {
    let Arithmetic::GroupMma { n, a, b, single, sat, transposed, sparse, ends_group } = op else { return Ok(()) };
    let (Some(factor_a), Some(factor_b), Some(run)) = (factor(a), factor(b), i.dst) else { return t.unsupported(i) };
    let sum = match a {
        MatrixTy::S8 | MatrixTy::U8 | MatrixTy::B1 => Element::S32,
        _ if single => Element::F32,
        _ => Element::F16,
    };
    let (first, second, before) = (i.src[0], i.src[1], i.src[2]);
    let registers = matches!(first.value, device_code::sass::Value::Reg(_));
    let form = GroupForm {
        factors: [factor_a, factor_b],
        sum,
        n: n.into(),
        registers,
        negate: [first.neg, second.neg],
        transpose: transposed,
        saturate: sat,
        sparse: sparse.map(usize::from),
    };
    // Sums of before are in the registers of the result, or are zero, which is to add none.
    let kept = match before.value {
        _ if before.is_zero() => PredSrc { not: true, ..PredSrc::TRUE },
        device_code::sass::Value::Reg(reg) if reg.0 == run.first => i.psrc[0],
        _ => return t.unsupported(i),
    };
    if sparse.is_some() && form.metadata().is_none() {
        return t.unsupported(i);
    }
    let mut slots: Vec<Slot> = (0..run.count).map(|at| t.dst(i, at)).collect();
    if registers {
        for at in 0..first.regs {
            slots.push(t.raw_word(&first, at)?);
        }
    } else {
        slots.push(t.pair(&first)?);
    }
    slots.push(t.pair(&second)?);
    if let Some(metadata) = i.src.get(3) {
        slots.push(t.raw_word(metadata, 0)?);
    }
    let (keep, slots) = (t.psrc(kept), t.list(&slots));
    t.emit(build::MultiplyGroup { keep, slots, form: form.pack() });
    if ends_group {
        t.emit(build::CommitProducts {});
    }
    Ok(())
}
