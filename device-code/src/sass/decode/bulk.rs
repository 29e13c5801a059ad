//! Decodes bulk and tensor copies, memory barriers, cluster memory, textures and surfaces.

use crate::arch::Generation::{Ampere, Hopper};
use crate::sass::decode::effects_only;
use crate::sass::decode::instruction_word::{Word, run};
use crate::sass::decode::load_store::mem_ty;
use crate::sass::inst::MachineInst;
use crate::sass::opcode::{AtomOp, AtomTy, Opcode};
use crate::sass::operand::{AddressSpace, File, InstOperand, MemEffect, MemOperand, Reg, Value};
use smallvec::smallvec;

fn at(w: &Word, lo: u32, space: AddressSpace, access: MemEffect) -> MemOperand {
    MemOperand { ubase: Some(w.ur(lo)), ..MemOperand::new(space, access, 0) }
}

fn descriptor(w: &Word) -> Option<crate::sass::operand::UReg> {
    w.bit(76).then(|| w.ur(40))
}

/// UBLKCP, UBLKRED, UBLKPF. The sides of UBLKCP: bit 73 destination, bit 74 source; set means
/// shared memory of the block (or, as a destination, of the cluster), clear means global.
pub(super) fn bulk(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    i.src = smallvec![w.reg_src(64, true, 1)];
    match w.base() {
        0x1ba => {
            let side = |shared| if shared { AddressSpace::Shared } else { AddressSpace::Global };
            let (to_shared, from_shared) = (w.bit(73), w.bit(74));
            let to = at(w, 32, side(to_shared), MemEffect::Write);
            let from = at(w, 24, side(from_shared), MemEffect::Read);
            let desc = descriptor(w);
            i.mem = smallvec![MemOperand { desc: desc.filter(|_| !to_shared), ..to }, MemOperand { desc, ..from }];
            Some(Opcode::Bulk)
        }
        0x1bb => {
            let to = at(w, 32, AddressSpace::Global, MemEffect::Atomic);
            i.mem =
                smallvec![MemOperand { desc: descriptor(w), ..to }, at(w, 24, AddressSpace::Shared, MemEffect::Read)];
            Some(Opcode::Bulk)
        }
        _ => {
            i.mem = smallvec![MemOperand { desc: descriptor(w), ..at(w, 24, AddressSpace::Global, MemEffect::Hint) }];
            Some(Opcode::BulkPrefetch)
        }
    }
}

/// UTMALDG, UTMASTG, UTMAREDG, UTMAPF, UTMACCTL: `[UR32]` starts the shared address, barrier and
/// coordinates; `[UR24]` is the address of the tensor map.
pub(super) fn tensor(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let dims = match w.b(79, 82) {
        n @ 0..=4 => n as u8 + 1,
        _ => 0,
    };
    let map = |access| MemOperand { desc: descriptor(w), ..at(w, 24, AddressSpace::TensorMap, access) };
    let shared = |access| at(w, 32, AddressSpace::Shared, access);
    match w.opcode {
        0x3b4 | 0x5b4 => {
            if w.opcode == 0x3b4 {
                i.src = smallvec![w.reg_src(64, true, 1)];
            }
            i.mem = smallvec![shared(MemEffect::Write), map(MemEffect::Read)];
        }
        0x3b5 => i.mem = smallvec![map(MemEffect::Write), shared(MemEffect::Read)],
        0x3b6 => i.mem = smallvec![map(MemEffect::Atomic), shared(MemEffect::Read)],
        0x5b8 => {
            // The coordinates.
            i.src = smallvec![w.reg_src(32, true, 1)];
            i.mem = smallvec![map(MemEffect::Hint)];
        }
        0x9b9 => {
            i.mem = smallvec![MemOperand { desc: None, ..map(MemEffect::Hint) }];
            return Some(Opcode::TensorCopy { dims: 0, image: false });
        }
        _ => return effects_only::decode(w, i),
    }
    Some(Opcode::TensorCopy { dims, image: w.bit(82) })
}

/// SYNCS, ARRIVES: barrier objects in shared memory.
pub(super) fn mbarrier(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    if w.arch < Hopper && w.opcode != 0x9b0 {
        return effects_only::decode(w, i);
    }
    let mut m = MemOperand::new(AddressSpace::Shared, MemEffect::Atomic, 8);
    m.offset = w.s(40, 64);
    match w.opcode {
        0x5a7 => {
            i.pdst[0] = w.p(81, false);
            i.src = smallvec![w.reg_src(32, false, 1)];
            m.base = w.r(24);
            m.ubase = Some(w.ur(64));
        }
        0x9a7 => {
            i.dst = Some(w.dst(false, 2));
            i.src = smallvec![w.reg_src(32, false, 1)];
            m.base = w.r(24);
            m.ubase = Some(w.ur(64));
        }
        0x9b0 if w.arch >= Ampere => {
            m.base = w.r(24);
            m.ubase = Some(w.ur(64));
        }
        0x5b2 => {
            i.dst = Some(w.dst(true, 2));
            i.src = smallvec![w.reg_src(32, true, 2)];
            m.ubase = Some(w.ur(24));
        }
        0x9b1 => {
            m = MemOperand { access: MemEffect::Hint, bytes: 0, ..m };
            if !w.bit(91) {
                return Some(Opcode::Mbarrier);
            }
            m.base = w.r(24);
            m.ubase = Some(w.ur(64));
        }
        _ => return effects_only::decode(w, i),
    }
    i.mem = smallvec![m];
    Some(Opcode::Mbarrier)
}

/// STAS and REDAS: asynchronous store and reduction into shared memory of another block of the
/// cluster.
pub(super) fn remote_shared(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let reduction = w.opcode == 0xdbe;
    let access = if reduction { MemEffect::Atomic } else { MemEffect::Write };
    let mut m = MemOperand::new(AddressSpace::RemoteShared, access, 0);
    m.base = w.r(24);
    m.offset = w.s(40, 64);
    if reduction {
        m.base64 = w.bit(91) && w.bit(72);
        m.ubase = w.bit(91).then(|| w.ur(64)).filter(|u| !u.is_zero() || !m.base64);
        m.bytes = 8;
        i.src = smallvec![w.reg_src(32, false, 1)];
        i.mem = smallvec![m];
        let ops = [
            AtomOp::Add,
            AtomOp::Min,
            AtomOp::Max,
            AtomOp::Inc,
            AtomOp::Dec,
            AtomOp::And,
            AtomOp::Or,
            AtomOp::Xor,
            AtomOp::Exch,
        ];
        let op = *ops.get(w.b(87, 91) as usize)?;
        return Some(Opcode::Red { op, ty: AtomTy::U64 });
    }
    let ty = mem_ty(w.b(73, 76))?;
    m.base64 = w.bit(90);
    m.ubase = Some(w.ur(64)).filter(|u| !u.is_zero() || !m.base64);
    m.bytes = ty.bytes();
    i.src = smallvec![w.reg_src(32, false, ty.regs())];
    i.mem = smallvec![m];
    Some(Opcode::Store { ty })
}

/// TEX, TLD, TLD4, TXD, TXQ: up to four components in two runs. The bytes read are known to the
/// handle only. Each has two numbers: with the handle in a constant or a uniform register, and
/// among the registers.
pub(super) fn texture(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    if !matches!(w.form(), 1 | 3 | 5 | 7) {
        return None;
    }
    i.dst = Some(w.dst(false, 4));
    i.dst2 = Some(run(File::R, w.r(64).0, 4));
    i.pdst[0] = w.p(81, false);
    let register = match w.base() {
        0x16f | 0x170 => return Some(Opcode::Texture),
        0x160 | 0x163 | 0x166 | 0x16c => None,
        0x16d => Some(w.r(24)),
        // Behind the coordinates, which are the first run; scattered ones are in both.
        _ if !w.bit(60) => Some(w.r(32)),
        _ => {
            let layers = w.b(61, 64) >> 2;
            let axes = [1, 2, 3, 3][w.b(61, 63) as usize];
            let level = w.base() != 0x164 && w.b(87, 90) > 1;
            let (at, values) = (layers + axes, layers + axes + 1 + u64::from(level));
            let first = values.div_ceil(2);
            Some(if at < first {
                Reg(w.r(24).0.wrapping_add(at as u8))
            } else {
                Reg(w.r(32).0.wrapping_add((at - first) as u8))
            })
        }
    };
    handle(w, i, MemEffect::Read, register);
    Some(Opcode::Texture)
}

/// An access by handle. Form 5 names the constant that holds it, form 7 a uniform register; in the
/// others it is in `register`.
fn handle(w: &Word, i: &mut MachineInst, access: MemEffect, register: Option<Reg>) {
    let mut m = MemOperand::new(AddressSpace::Handle, access, 0);
    match (register, w.form()) {
        (Some(register), _) => m.base = register,
        (_, 2 | 5) => i.src = smallvec![handle_constant(w)],
        (_, 7) => m.ubase = Some(w.ur(40)),
        _ => {}
    }
    i.mem = smallvec![m];
}

/// The constant that holds a handle.
fn handle_constant(w: &Word) -> InstOperand {
    let constant = w.constant();
    InstOperand { value: Value::Const(constant), regs: 1, neg: false, abs: false, inv: false }
}

/// SULD, SUST, SURED, each with the handle in a constant or in a register.
pub(super) fn surface(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let access = match w.base() {
        0x199 | 0x19a => MemEffect::Read,
        0x19b..=0x19e => MemEffect::Write,
        _ => MemEffect::Atomic,
    };
    if access == MemEffect::Read {
        i.dst = Some(w.dst(false, 4));
        i.pdst[0] = w.p(81, false);
    }
    let register = matches!(w.base(), 0x19a | 0x19c | 0x19e | 0x1a0).then(|| w.r(64));
    handle(w, i, access, register);
    Some(Opcode::Surface)
}
