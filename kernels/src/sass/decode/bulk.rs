//! Bulk and tensor copies, memory barriers, cluster memory, textures and surfaces.

use crate::arch::Generation::{Ampere, Hopper};
use crate::sass::decode::effects_only;
use crate::sass::decode::instruction_word::{Sign, Word, run};
use crate::sass::decode::load_store::mem_ty;
use crate::sass::inst::Inst;
use crate::sass::op::{AtomOp, AtomTy, Op};
use crate::sass::operand::{Access, File, Mem, Space};
use smallvec::smallvec;

fn at(w: &Word, lo: u32, space: Space, access: Access) -> Mem {
    Mem { ubase: Some(w.ur(lo)), ..Mem::new(space, access, 0) }
}

fn descriptor(w: &Word) -> Option<crate::sass::operand::UReg> {
    w.bit(76).then(|| w.ur(40))
}

/// UBLKCP, UBLKRED, UBLKPF. The sides of UBLKCP: bit 73 destination, bit 74 source; set means
/// shared memory of the block (or, as a destination, of the cluster), clear means global.
pub(super) fn bulk(w: &Word, i: &mut Inst) -> Option<Op> {
    i.src = smallvec![w.reg_src(64, true, 1)];
    match w.base() {
        0x1ba => {
            let side = |shared| if shared { Space::Shared } else { Space::Global };
            let (to_shared, from_shared) = (w.bit(73), w.bit(74));
            let to = at(w, 32, side(to_shared), Access::Write);
            let from = at(w, 24, side(from_shared), Access::Read);
            let desc = descriptor(w);
            i.mem = smallvec![Mem { desc: desc.filter(|_| !to_shared), ..to }, Mem { desc, ..from }];
            Some(Op::Bulk)
        }
        0x1bb => {
            let to = at(w, 32, Space::Global, Access::Atomic);
            i.mem = smallvec![Mem { desc: descriptor(w), ..to }, at(w, 24, Space::Shared, Access::Read)];
            Some(Op::Bulk)
        }
        _ => {
            i.mem = smallvec![Mem { desc: descriptor(w), ..at(w, 24, Space::Global, Access::Hint) }];
            Some(Op::BulkPrefetch)
        }
    }
}

/// UTMALDG, UTMASTG, UTMAREDG, UTMAPF, UTMACCTL: `[UR32]` starts the shared address, barrier and
/// coordinates; `[UR24]` is the address of the tensor map.
pub(super) fn tensor(w: &Word, i: &mut Inst) -> Option<Op> {
    let dims = match w.b(79, 82) {
        n @ 0..=4 => n as u8 + 1,
        _ => 0,
    };
    let map = |access| Mem { desc: descriptor(w), ..at(w, 24, Space::TensorMap, access) };
    let shared = |access| at(w, 32, Space::Shared, access);
    match w.opcode {
        0x3b4 | 0x5b4 => {
            if w.opcode == 0x3b4 {
                i.src = smallvec![w.reg_src(64, true, 1)];
            }
            i.mem = smallvec![shared(Access::Write), map(Access::Read)];
        }
        0x3b5 => i.mem = smallvec![map(Access::Write), shared(Access::Read)],
        0x3b6 => i.mem = smallvec![map(Access::Atomic), shared(Access::Read)],
        0x5b8 => {
            // The coordinates.
            i.src = smallvec![w.reg_src(32, true, 1)];
            i.mem = smallvec![map(Access::Hint)];
        }
        0x9b9 => {
            i.mem = smallvec![Mem { desc: None, ..map(Access::Hint) }];
            return Some(Op::TensorCopy { dims: 0 });
        }
        _ => return effects_only::decode(w, i),
    }
    Some(Op::TensorCopy { dims })
}

/// SYNCS, ARRIVES: barrier objects in shared memory.
pub(super) fn mbarrier(w: &Word, i: &mut Inst) -> Option<Op> {
    if w.arch < Hopper && w.opcode != 0x9b0 {
        return effects_only::decode(w, i);
    }
    let mut m = Mem::new(Space::Shared, Access::Atomic, 8);
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
            m = Mem { access: Access::Hint, bytes: 0, ..m };
            if !w.bit(91) {
                return Some(Op::Mbarrier);
            }
            m.base = w.r(24);
            m.ubase = Some(w.ur(64));
        }
        _ => return effects_only::decode(w, i),
    }
    i.mem = smallvec![m];
    Some(Op::Mbarrier)
}

/// STAS and REDAS: asynchronous store and reduction into shared memory of another block of the
/// cluster.
pub(super) fn remote_shared(w: &Word, i: &mut Inst) -> Option<Op> {
    let reduction = w.opcode == 0xdbe;
    let access = if reduction { Access::Atomic } else { Access::Write };
    let mut m = Mem::new(Space::RemoteShared, access, 0);
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
        return Some(Op::Red { op, ty: AtomTy::U64 });
    }
    let ty = mem_ty(w.b(73, 76))?;
    m.base64 = w.bit(90);
    m.ubase = Some(w.ur(64)).filter(|u| !u.is_zero() || !m.base64);
    m.bytes = ty.bytes();
    i.src = smallvec![w.reg_src(32, false, ty.regs())];
    i.mem = smallvec![m];
    Some(Op::Store { ty })
}

/// TEX, TLD, TLD4, TXD, TXQ: up to four components in two runs. The bytes read are known to the
/// handle only.
pub(super) fn texture(w: &Word, i: &mut Inst) -> Option<Op> {
    if !matches!(w.form(), 1 | 3 | 5 | 7) {
        return None;
    }
    i.dst = Some(w.dst(false, 4));
    i.dst2 = Some(run(File::R, w.r(64).0, 4));
    i.pdst[0] = w.p(81, false);
    if w.base() != 0x16f {
        handle(w, i, Access::Read);
    }
    Some(Op::Texture)
}

/// An access by handle. Form 5 names the constant that holds it, form 7 a uniform register; in the
/// others it is among registers that are not decoded.
fn handle(w: &Word, i: &mut Inst, access: Access) {
    let mut m = Mem::new(Space::Handle, access, 0);
    match w.form() {
        5 => i.src = smallvec![w.slot_x(false, 1, Sign::None)],
        7 => m.ubase = Some(w.ur(40)),
        _ => {}
    }
    i.mem = smallvec![m];
}

/// SULD, SUST, SURED.
pub(super) fn surface(w: &Word, i: &mut Inst) -> Option<Op> {
    let access = match w.base() {
        0x199 => Access::Read,
        0x19d => Access::Write,
        _ => Access::Atomic,
    };
    if w.base() == 0x199 {
        i.dst = Some(w.dst(false, 4));
        i.pdst[0] = w.p(81, false);
    }
    handle(w, i, access);
    Some(Op::Surface)
}
