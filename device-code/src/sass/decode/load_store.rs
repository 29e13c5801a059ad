//! Decodes loads of constants, and loads, stores and atomics on global, generic, shared and local
//! memory.

use crate::arch::Generation::{Ampere, Blackwell, Hopper, Turing};
use crate::sass::decode::instruction_word::{Word, run};
use crate::sass::inst::MachineInst;
use crate::sass::opcode::{AtomOp, AtomTy, CasKind, MemTy, Opcode};
use crate::sass::operand::{
    AddressSpace, Bank, ConstRef, File, Index, InstOperand, MemEffect, MemOperand, Strength, UReg, Value,
};
use smallvec::smallvec;

pub(super) fn mem_ty(n: u64) -> Option<MemTy> {
    Some(match n {
        0 => MemTy::U8,
        1 => MemTy::S8,
        2 => MemTy::U16,
        3 => MemTy::S16,
        4 => MemTy::B32,
        5 => MemTy::B64,
        6 => MemTy::B128,
        _ => return None,
    })
}

fn load_const(w: &Word, i: &mut MachineInst, file: File, c: ConstRef, mode: u8) -> Option<Opcode> {
    let ty = mem_ty(w.b(73, 76))?;
    i.dst = Some(w.dst(file == File::UR, ty.regs()));
    i.src = smallvec![InstOperand { value: Value::Const(c), regs: ty.regs(), neg: false, abs: false, inv: false }];
    Some(Opcode::LoadConst { ty, mode })
}

pub(super) fn ldc(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let r = w.r(24);
    let index = if r.is_zero() { Index::None } else { Index::Reg(r) };
    let bank = if w.bit(91) { return None } else { Bank::Number(w.b(54, 59) as u8) };
    load_const(w, i, File::R, ConstRef { bank, offset: w.s(38, 54) as i32, index }, w.b(78, 80) as u8)
}

pub(super) fn uldc(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let c = if w.opcode == 0xab9 && w.bit(91) {
        ConstRef { bank: Bank::Bindless(w.ur(24)), offset: w.b(38, 54) as i32, index: Index::None }
    } else {
        let u = w.ur(24);
        let index = if w.opcode == 0xabb && !u.is_zero() { Index::UReg(u) } else { Index::None };
        ConstRef { bank: Bank::Number(w.b(54, 59) as u8), offset: w.s(38, 54) as i32, index }
    };
    load_const(w, i, File::UR, c, 0)
}

pub(super) fn ldcu(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let u = w.ur(24);
    let index = if u.is_zero() { Index::None } else { Index::UReg(u) };
    let c = ConstRef { bank: Bank::Number(w.b(54, 59) as u8), offset: w.s(37, 54) as i32, index };
    load_const(w, i, File::UR, c, 0)
}

/// Where an address with a uniform register has its parts: the UR, the bit that says the register
/// is a 64-bit pair, the bit that says the UR is a descriptor.
struct Parts {
    ur: u32,
    wide: u32,
    desc: Option<u32>,
}

/// Register at 24 plus offset.
fn plain(w: &Word, mut m: MemOperand, off: (u32, u32), base64: bool) -> MemOperand {
    m.base = w.r(24);
    m.base64 = base64;
    m.offset = w.s(off.0, off.1);
    m
}

/// Register at 24, UR as an address term or a descriptor, plus offset.
fn with_ur(w: &Word, m: MemOperand, off: (u32, u32), parts: &Parts) -> MemOperand {
    let mut m = plain(w, m, off, w.bit(parts.wide));
    let u = w.ur(parts.ur);
    match parts.desc {
        Some(bit) if w.bit(bit) => m.desc = Some(u),
        _ => m.ubase = Some(u),
    }
    m
}

fn descriptor(w: &Word, bit: u32) -> Option<u32> {
    (w.arch >= Ampere).then_some(bit)
}

/// LDG, LD, STG, ST, QSPC. Form 1 has a register and a signed 24-bit offset; form 4 adds a UR.
/// Generic LD and ST with bit 91 clear have no UR and a signed 32-bit offset.
fn global_address(w: &Word, m: MemOperand, ur: u32) -> MemOperand {
    let generic = matches!(w.base(), 0x180 | 0x185);
    if generic && !w.bit(91) {
        plain(w, m, (32, 64), w.bit(72))
    } else if w.opcode < 0x800 {
        plain(w, m, (40, 64), w.bit(72))
    } else {
        with_ur(w, m, (40, 64), &Parts { ur, wide: 90, desc: descriptor(w, 76) })
    }
}

/// The order and scope at 77..81 (measured with `nvdisasm` on code for every generation).
fn strength(w: &Word) -> Strength {
    match (w.arch < Ampere, w.b(77, 81)) {
        (true, 8) | (false, 5) => Strength::Block,
        (true, 10) | (false, 7) => Strength::Device,
        (true, 11) | (false, 10 | 12) => Strength::System,
        _ => Strength::Weak,
    }
}

pub(super) fn load_global(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let generic = w.base() == 0x180;
    let ty = match w.b(73, 76) {
        // `U.128`, a cached 128-bit load.
        7 if w.arch <= Turing && !generic => MemTy::B128,
        n => mem_ty(n)?,
    };
    let space = if generic { AddressSpace::Generic } else { AddressSpace::Global };
    i.dst = Some(w.dst(false, ty.regs()));
    if !generic {
        i.pdst[0] = w.p(81, false);
    }
    i.psrc[0] = w.ps_complemented(64);
    let m = MemOperand { strength: strength(w), ..MemOperand::new(space, MemEffect::Read, ty.bytes()) };
    i.mem = smallvec![global_address(w, m, 32)];
    Some(Opcode::Load { ty })
}

pub(super) fn store_global(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let ty = mem_ty(w.b(73, 76))?;
    let space = if w.base() == 0x185 { AddressSpace::Generic } else { AddressSpace::Global };
    let data = if w.opcode == 0x385 { 64 } else { 32 };
    i.src = smallvec![w.reg_src(data, false, ty.regs())];
    let m = MemOperand { strength: strength(w), ..MemOperand::new(space, MemEffect::Write, ty.bytes()) };
    i.mem = smallvec![global_address(w, m, 64)];
    Some(Opcode::Store { ty })
}

/// 32-byte accesses: the register is always a pair, the offset counts in units of 32 bytes.
fn wide_address(w: &Word, mut m: MemOperand, ur: UReg, offset: i64) -> MemOperand {
    m.base = w.r(24);
    m.base64 = true;
    m.offset = offset * 32;
    if w.bit(76) {
        m.desc = Some(ur);
    } else {
        m.ubase = Some(ur);
    }
    m
}

pub(super) fn load_256(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    i.dst = Some(w.dst(false, 4));
    i.dst2 = Some(run(File::R, w.r(64).0, 4));
    i.psrc[0] = w.ps_complemented(87);
    let m = MemOperand::new(AddressSpace::Global, MemEffect::Read, 32);
    i.mem = smallvec![wide_address(w, m, w.ur(32), w.s(40, 57))];
    Some(Opcode::Load { ty: MemTy::B256 })
}

pub(super) fn store_256(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    i.src = smallvec![w.reg_src(32, false, 4), w.reg_src(16, false, 4)];
    let m = MemOperand::new(AddressSpace::Global, MemEffect::Write, 32);
    i.mem = smallvec![wide_address(w, m, w.ur(64), w.s(40, 59))];
    Some(Opcode::Store { ty: MemTy::B256 })
}

/// Shared and local addresses: one register, maybe scaled, maybe a UR.
fn near_address(w: &Word, mut m: MemOperand, ur: Option<u32>) -> MemOperand {
    m.base = w.r(24);
    m.offset = w.s(40, 64);
    m.ubase = ur.map(|at| w.ur(at));
    if m.space == AddressSpace::Shared {
        m.scale = [1, 4, 8, 16][w.b(78, 80) as usize];
    }
    m
}

pub(super) fn load_near(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let ty = mem_ty(w.b(73, 76))?;
    let space = if w.base() == 0x184 { AddressSpace::Shared } else { AddressSpace::Local };
    i.dst = Some(w.dst(false, ty.regs()));
    if space == AddressSpace::Shared && w.bit(87) {
        i.pdst[0] = w.p(81, false);
    }
    i.mem = smallvec![near_address(w, MemOperand::new(space, MemEffect::Read, ty.bytes()), w.bit(91).then_some(32))];
    Some(Opcode::Load { ty })
}

pub(super) fn store_near(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let ty = mem_ty(w.b(73, 76))?;
    let space = if w.base() == 0x188 { AddressSpace::Shared } else { AddressSpace::Local };
    let ur = (w.opcode > 0x800 && w.bit(91)).then_some(64);
    i.src = smallvec![w.reg_src(32, false, ty.regs())];
    i.mem = smallvec![near_address(w, MemOperand::new(space, MemEffect::Write, ty.bytes()), ur)];
    Some(Opcode::Store { ty })
}

/// Atomics on floats have opcodes of their own from sm_90 on.
fn is_float_atomic(w: &Word) -> bool {
    w.arch >= Hopper && matches!(w.base(), 0x1a2 | 0x1a3 | 0x1a6)
}

fn atom_ty(w: &Word) -> Option<AtomTy> {
    use AtomTy::*;
    let n = w.b(73, 76);
    if is_float_atomic(w) {
        let all = [F16x2, F16x4, F16x8, Bf16x2, Bf16x4, Bf16x8];
        let f32s = [F32Ftz, F32x2Ftz, F32x4Ftz, F32, F32x2, F32x4, F64];
        let n = (w.b(73, 77) | w.b(87, 88) << 4) as usize;
        return all.get(n).or_else(|| f32s.get(n.checked_sub(9)?)).copied();
    }
    let table: &[AtomTy] =
        if w.arch >= Hopper { &[U32, S32, U64, S64, B128] } else { &[U32, S32, U64, F32Ftz, F16x2, S64, F64] };
    table.get(n as usize).copied()
}

fn atom_op(w: &Word, bits: u32) -> Option<AtomOp> {
    use AtomOp::*;
    if is_float_atomic(w) {
        return [Add, Min, Max].get(w.b(88, 90) as usize).copied();
    }
    [Add, Min, Max, Inc, Dec, And, Or, Xor, Exch, SafeAdd].get(w.b(87, 87 + bits) as usize).copied()
}

/// ATOM, ATOMG and their CAS forms. The bits of the address mode moved with the 8-bit UR.
fn atomic_address(w: &Word, m: MemOperand) -> MemOperand {
    if w.opcode < 0x800 {
        plain(w, m, (40, 64), w.bit(72))
    } else if w.arch < Blackwell {
        with_ur(w, m, (40, 64), &Parts { ur: 64, wide: 70, desc: descriptor(w, 71) })
    } else {
        let desc = if is_float_atomic(w) { 90 } else { 76 };
        with_ur(w, m, (40, 63), &Parts { ur: 64, wide: 63, desc: Some(desc) })
    }
}

fn atomic_space(w: &Word) -> AddressSpace {
    if matches!(w.base(), 0x18a | 0x18b | 0x1a2) { AddressSpace::Generic } else { AddressSpace::Global }
}

pub(super) fn atom(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let float = matches!(w.opcode, 0x9a2 | 0x3a3 | 0x9a3) && w.arch >= Hopper;
    if !float && !matches!(w.opcode, 0x38a | 0x98a | 0x3a8 | 0x9a8 | 0x3a3 | 0x9a3) {
        return None;
    }
    let (ty, op) = (atom_ty(w)?, atom_op(w, 4)?);
    i.dst = Some(w.dst(false, ty.regs()));
    i.pdst[0] = w.p(81, false);
    i.src = smallvec![w.reg_src(32, false, ty.regs())];
    let m = MemOperand { strength: strength(w), ..MemOperand::new(atomic_space(w), MemEffect::Atomic, ty.bytes()) };
    i.mem = smallvec![atomic_address(w, m)];
    Some(Opcode::Atom { op, ty })
}

pub(super) fn atom_cas(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let ty = match w.b(73, 76) {
        0 => AtomTy::U32,
        1 => AtomTy::S32,
        2 => AtomTy::U64,
        4 if w.arch >= Hopper => AtomTy::B128,
        _ => return None,
    };
    let cast = match (w.base() == 0x18b && w.bit(87), w.bit(88)) {
        (false, _) => CasKind::Cas,
        (true, false) => CasKind::Cast,
        (true, true) => CasKind::CastSpin,
    };
    i.dst = Some(w.dst(false, ty.regs()));
    i.pdst[0] = w.p(81, false);
    i.src = smallvec![w.reg_src(32, false, ty.regs()), w.reg_src(64, false, ty.regs())];
    let m = MemOperand { strength: strength(w), ..MemOperand::new(atomic_space(w), MemEffect::Atomic, ty.bytes()) };
    i.mem = smallvec![atomic_address(w, m)];
    Some(Opcode::AtomCas { ty, cast })
}

pub(super) fn red(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    if w.base() == 0x1a6 && w.arch < Hopper {
        return None;
    }
    let (ty, op) = (atom_ty(w)?, atom_op(w, 3)?);
    let m =
        MemOperand { strength: strength(w), ..MemOperand::new(AddressSpace::Global, MemEffect::Atomic, ty.bytes()) };
    let desc = match w.arch {
        a if a < Ampere => None,
        a if a < Blackwell => Some(71),
        _ => Some(81),
    };
    let m = if w.bit(91) {
        with_ur(w, m, (40, 64), &Parts { ur: 64, wide: 90, desc })
    } else {
        plain(w, m, (40, 64), w.bit(72))
    };
    i.src = smallvec![w.reg_src(32, false, ty.regs())];
    i.mem = smallvec![m];
    Some(Opcode::Red { op, ty })
}

pub(super) fn atoms(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    if w.opcode == 0xf8c {
        let (op, ty) = match w.b(87, 91) {
            9 if w.arch < Hopper => (AtomOp::Arrive, AtomTy::U64),
            10 if w.arch < Hopper => (AtomOp::PopcInc, AtomTy::U32),
            _ if w.arch >= Hopper => (AtomOp::PopcInc, AtomTy::U32),
            _ => return None,
        };
        i.dst = Some(w.dst(false, ty.regs()));
        i.mem =
            smallvec![near_address(w, MemOperand::new(AddressSpace::Shared, MemEffect::Atomic, ty.bytes()), Some(64))];
        return Some(Opcode::Atom { op, ty });
    }
    let (ty, op) = (atom_ty(w)?, atom_op(w, 4)?);
    i.dst = Some(w.dst(false, ty.regs()));
    i.src = smallvec![w.reg_src(32, false, ty.regs())];
    let ur = (w.opcode == 0x98c).then_some(64);
    i.mem = smallvec![near_address(w, MemOperand::new(AddressSpace::Shared, MemEffect::Atomic, ty.bytes()), ur)];
    Some(Opcode::Atom { op, ty })
}

pub(super) fn atoms_cas(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    if w.opcode == 0x58d && w.arch < Blackwell {
        return None;
    }
    let cast = match w.b(87, 89) {
        0 | 2 => CasKind::Cas,
        1 => CasKind::Cast,
        _ => CasKind::CastSpin,
    };
    let ty = match w.b(73, 76) {
        0 => AtomTy::U32,
        1 => AtomTy::S32,
        2 => AtomTy::U64,
        _ => return None,
    };
    if w.opcode == 0x58d {
        i.pdst[0] = w.p(81, false);
    } else {
        i.dst = Some(w.dst(false, ty.regs()));
    }
    i.src = smallvec![w.reg_src(32, false, ty.regs()), w.reg_src(64, false, ty.regs())];
    i.mem = smallvec![near_address(w, MemOperand::new(AddressSpace::Shared, MemEffect::Atomic, ty.bytes()), None)];
    Some(Opcode::AtomCas { ty, cast })
}

/// LDGMC: reads every copy of a multicast object.
pub(super) fn multicast(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let (wide, desc) = if w.arch < Blackwell { (70, 71) } else { (81, 82) };
    i.dst = Some(w.dst(false, 4));
    // The width is not decoded: 16 bytes is the widest form.
    let m = MemOperand::new(AddressSpace::Global, MemEffect::Read, 16);
    i.mem = smallvec![with_ur(w, m, (40, 64), &Parts { ur: 64, wide, desc: Some(desc) })];
    Some(Opcode::LoadMulticast)
}

/// QSPC: the space asked about is at 73..75 (global, local, shared).
pub(super) fn qspc(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    i.pdst[0] = w.p(81, false);
    i.dst = Some(w.dst(false, 1));
    i.mem = smallvec![global_address(w, MemOperand::new(AddressSpace::Generic, MemEffect::Hint, 0), 32)];
    let space = match w.b(73, 75) {
        0 => AddressSpace::Global,
        1 => AddressSpace::Local,
        _ => AddressSpace::Shared,
    };
    Some(Opcode::Qspc { space })
}

pub(super) fn cctl(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let whole_cache = matches!(w.b(87, 91), 4 | 6 | 7 | 8);
    if !whole_cache {
        i.mem = smallvec![plain(w, MemOperand::new(AddressSpace::Generic, MemEffect::Hint, 0), (32, 64), w.bit(72))];
    }
    Some(Opcode::CacheCtl)
}

pub(super) fn cctl_uniform(_w: &Word, _i: &mut MachineInst) -> Option<Opcode> {
    Some(Opcode::CacheCtl)
}

/// LDSM and STSM.
pub(super) fn matrix(w: &Word, i: &mut MachineInst, store: bool) -> Option<Opcode> {
    let regs = [1, 2, 4].get(w.b(72, 74) as usize).copied()?;
    let access = if store { MemEffect::Write } else { MemEffect::Read };
    let ur = w.bit(91).then_some(if store { 64 } else { 32 });
    if store {
        i.src = smallvec![w.reg_src(32, false, regs)];
    } else {
        i.dst = Some(w.dst(false, regs));
    }
    let mut m = near_address(w, MemOperand::new(AddressSpace::Shared, access, 16), ur);
    m.scale = 1;
    i.mem = smallvec![m];
    Some(Opcode::Matrix { regs, store })
}

/// LDGSTS: shared register 16 + s20 at 44..64 (dae: + UR 64); global pair 24 + s12 at 32..44 (fae:
/// UR 64 is the descriptor or an address term; dae: the descriptor is the UR after 64's).
pub(super) fn copy_async(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    let bytes = if w.arch >= Blackwell {
        [4, 8, 16].get(w.b(74, 76) as usize).copied()?
    } else {
        match w.b(73, 76) {
            4 => 4,
            5 => 8,
            6 => 16,
            _ => return None,
        }
    };
    let shared_ur = w.opcode == 0xdae;
    let u = w.ur(64);
    let mut to = MemOperand::new(AddressSpace::Shared, MemEffect::Write, u16::from(bytes));
    to.base = w.r(16);
    to.offset = w.s(44, 64);
    let mut from = MemOperand::new(AddressSpace::Global, MemEffect::Read, u16::from(bytes));
    from.base = w.r(24);
    from.base64 = true;
    from.offset = w.s(32, 44);
    if shared_ur {
        to.ubase = Some(u);
        if w.bit(76) {
            from.desc = Some(if u.0 >= 254 { UReg::URZ } else { UReg(u.0 + 1) });
        }
    } else if w.bit(76) {
        from.desc = Some(u);
    } else if !u.is_zero() {
        from.ubase = Some(u);
    }
    i.psrc[0] = w.ps(87, false);
    i.mem = smallvec![to, from];
    Some(Opcode::CopyAsync { bytes, zfill: w.bit(82) })
}
