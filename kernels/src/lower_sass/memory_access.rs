//! What SASS memory instructions touch, which local slots are plain variables, and whether stores
//! to shared memory are told from each other.
//!
//! Owns addresses and local memory. Assumption: local memory is not reached through generic stores
//! from elsewhere. (The compiler would have to have made a generic address of it, and then it is
//! not only addressed through R1.)

use super::made_maps::{any_word, load_words};
use super::{Code, LocalMemory, Lower, P};
use crate::ir::{AccessKind, Addr, Callees, Class, Mem, MemSpace, Op, ProxyStep, Reason, Src, SrcOperand, Var, Window};
use device_code::arch::Generation;
use device_code::sass::{self, Bank, Flow, MachineInst, MemEffect, MemTy, Strength, Value};
use smallvec::SmallVec;

/// Registers that hold arguments of a call, and its results.
const ARGUMENTS: std::ops::Range<u32> = 4..16;

/// How local memory is reached. Where a call is not followed, it may be given the address of
/// anything there.
pub(super) fn local_memory(code: &Code<'_>) -> LocalMemory {
    let not_by_r1 =
        |m: &sass::MemOperand| m.space == sass::AddressSpace::Local && (m.base != sass::Reg::SP || m.ubase.is_some());
    let not_followed =
        |i: &MachineInst| matches!(i.flow(), Flow::Call(_)) && code.target(i).is_none() && code.known_call(i).is_none();
    if code.insts.iter().any(|i| i.mem.iter().any(not_by_r1) || not_followed(i)) {
        return LocalMemory::Unknown;
    }
    let (mut sets, mut moves, mut escapes) = (0, 0, false);
    for i in code.insts {
        let sets_r1 = !matches!(i.op, sass::Opcode::Call { .. }) && i.may_write(sass::File::R, 1);
        match sets_r1.then(|| stack_move(code, i)) {
            Some(None) => return LocalMemory::Unknown,
            Some(Some(StackMove::Start)) => sets += 1,
            Some(Some(StackMove::By(_))) => moves += 1,
            // Where it ends is compared with the end of the memory.
            None if matches!(i.op, sass::Opcode::Isetp { .. }) => {}
            None => escapes |= i.src.iter().any(|s| s.value == Value::Reg(sass::Reg::SP)),
        }
    }
    match (sets, moves) {
        (0 | 1, 0 | 1) => LocalMemory::OneFrame,
        // Frames lie below each other, and one function may get a pointer to another one's.
        _ if escapes => LocalMemory::Unknown,
        _ => LocalMemory::Frames,
    }
}

/// What an instruction does to R1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StackMove {
    /// It sets it to the driver's word.
    Start,
    /// It adds a constant, if it is one.
    By(Option<i64>),
}

/// What an instruction that sets R1 does to it. `None`: something else.
pub(super) fn stack_move(code: &Code<'_>, i: &MachineInst) -> Option<StackMove> {
    let is_driver = |s: &sass::InstOperand| match s.value {
        Value::Const(c) => {
            c.bank == Bank::Number(0)
                && u32::try_from(c.offset) == Ok(code.generation.bank0().stack_pointer)
                && c.index == sass::Index::None
        }
        _ => false,
    };
    let is_r1 = |s: &sass::InstOperand| s.value == Value::Reg(sass::Reg::SP);
    if !i.guard.always() {
        return None;
    }
    if i.src.iter().any(is_driver) {
        return Some(StackMove::Start);
    }
    let adds = matches!(i.op, sass::Opcode::Viadd { .. } | sass::Opcode::Iadd3 { .. } | sass::Opcode::Iadd { .. });
    if !adds || !i.src.iter().any(is_r1) {
        return None;
    }
    let mut by = Some(0);
    for s in i.src.iter().filter(|s| !is_r1(s)) {
        let constant = match s.value {
            Value::Reg(r) if r.is_zero() => Some(0),
            Value::Imm(v) if !s.neg && !s.inv => Some(i64::from(v as i32)),
            _ => None,
        };
        by = by.zip(constant).map(|(sum, more)| sum + more);
    }
    Some(StackMove::By(by.filter(|_| i.src.iter().filter(|s| is_r1(s)).count() == 1)))
}

/// Is some word of shared memory loaded from a constant address, and is every store to shared
/// memory an instruction with an address and a size of its own?
///
/// Not from Hopper on: blocks of a cluster store into each other's memory, engines do, and the
/// address holds the block's place in the cluster.
pub(super) fn shared_is_simple(code: &Code<'_>) -> bool {
    use sass::AddressSpace::{RemoteShared, Shared, Tensor, TensorMap};
    let stores = |m: &sass::MemOperand| matches!(m.access, MemEffect::Write | MemEffect::Atomic);
    let unclear = |m: &sass::MemOperand| match m.space {
        Shared => stores(m) && m.bytes == 0,
        RemoteShared | Tensor | TensorMap => true,
        _ => false,
    };
    code.generation < Generation::Hopper
        && code.insts.iter().any(|i| i.mem.first().is_some_and(|m| is_shared_word(i, m)))
        && !code.insts.iter().any(|i| i.mem.iter().any(unclear))
}

/// FENCE.VIEW.ASYNC.
const PROXY_FENCE: u16 = 0x3c6;

/// What an instruction does about the two proxies of shared memory. Generic stores (ST) are left
/// out: they mostly go to global memory. So are barrier objects: no copy has them for its source.
pub(super) fn proxy_step(i: &MachineInst) -> Option<ProxyStep> {
    use sass::AddressSpace::Shared;
    use sass::Opcode as S;
    let shared = |access| i.mem.iter().any(|m| m.space == Shared && m.access == access);
    match i.op {
        _ if i.opcode == PROXY_FENCE => Some(ProxyStep::Fence),
        S::Bulk | S::TensorCopy { .. } if shared(MemEffect::Read) => Some(ProxyStep::Bulk),
        S::Store { .. } | S::Matrix { store: true, .. } | S::CopyAsync { .. } if shared(MemEffect::Write) => {
            Some(ProxyStep::Store)
        }
        S::Atom { .. } | S::AtomCas { .. } | S::Red { .. } if shared(MemEffect::Atomic) => Some(ProxyStep::Store),
        _ => None,
    }
}

/// The registers of an address in shared memory, and behind them its constant.
pub(super) fn shared_place(i: &MachineInst) -> SmallVec<[SrcOperand; 2]> {
    let m = i.mem.iter().find(|m| m.space == sass::AddressSpace::Shared);
    let registers = m.map(|m| [Lower::reg(m.base.0), m.ubase.and_then(|u| Lower::ureg(u.0))]);
    let constant = SrcOperand::imm(m.map_or(0, |m| m.offset as u64));
    registers.into_iter().flatten().flatten().map(SrcOperand::var).chain([constant]).collect()
}

/// Is this a load of whole words from a constant address of shared memory?
fn is_shared_word(i: &MachineInst, m: &sass::MemOperand) -> bool {
    m.space == sass::AddressSpace::Shared
        && matches!(i.op, sass::Opcode::Load { ty } if ty.bytes() >= 4)
        && m.base.is_zero()
        && m.ubase.is_none_or(sass::UReg::is_zero)
}

/// What an operand does, as other kernels see it.
fn kinds(m: &sass::MemOperand) -> &'static [AccessKind] {
    match (m.access, m.strength) {
        (MemEffect::Read, Strength::Device | Strength::System) => &[AccessKind::AtomicRead],
        (MemEffect::Read, _) => &[AccessKind::Read],
        (MemEffect::Write, Strength::Device | Strength::System) => &[AccessKind::AtomicWrite],
        (MemEffect::Write, _) => &[AccessKind::Write],
        (MemEffect::Atomic, Strength::Block) => &[AccessKind::Read, AccessKind::Write],
        (MemEffect::Atomic, _) => &[AccessKind::Atomic],
        (MemEffect::Hint, _) => &[],
    }
}

/// Lowers an instruction with memory operands.
pub(super) fn memory(lower: &mut Lower<'_>, i: &MachineInst) {
    use sass::Opcode as S;
    if let S::Qspc { space } = i.op {
        let window = match space {
            sass::AddressSpace::Local => Window::Local,
            sass::AddressSpace::Shared => Window::Shared,
            _ => Window::Neither,
        };
        return lies_in(lower, i, window);
    }
    if let S::Load { ty } = i.op
        && i.mem[0].space == sass::AddressSpace::Local
    {
        local_load(lower, i, ty);
        return;
    }
    if let S::Store { ty } = i.op
        && i.mem[0].space == sass::AddressSpace::Local
    {
        local_store(lower, i, ty);
        return;
    }
    if lower.shared_ok && is_shared_word(i, &i.mem[0]) {
        let m = &i.mem[0];
        let words: SmallVec<[Var; 4]> = (0..i.mem[0].bytes / 4).map(|k| lower.dst(i, k as u8)).collect();
        let addr = Addr::Sum(SmallVec::new(), m.offset);
        let m = Mem { space: MemSpace::Shared, kind: AccessKind::Read, bytes: u32::from(m.bytes), addr };
        lower.emit(i, Op::Mem(m), &[], &words);
        return;
    }
    if lower.follows_words && load_words(lower, i) {
        return;
    }
    let mut results: SmallVec<[Var; 2]> = SmallVec::new();
    for r in i.defs() {
        results.extend(Lower::run(r));
    }
    let asks = matches!(i.op, S::Atom { .. } | S::AtomCas { .. }) && i.mem[0].space == sass::AddressSpace::Generic;
    if !asks {
        results.extend(i.pdst.map(Lower::pred_var).into_iter().filter(|p| *p != Var::NONE));
    }
    let mut why = Reason::Loaded;
    // The results belong to the last access emitted, so that none of the addresses reads them.
    let mut accesses: SmallVec<[Mem; 2]> = SmallVec::new();
    for (m, &kind) in i.mem.iter().flat_map(|m| kinds(m).iter().map(move |kind| (m, kind))) {
        match m.space {
            sass::AddressSpace::Global | sass::AddressSpace::Generic => {
                let addr = global_address(lower, i, m);
                if lower.shared_ok && m.space == sass::AddressSpace::Generic && kind.writes() {
                    let (space, bytes) = (MemSpace::Generic, u32::from(m.bytes));
                    lower.emit(i, Op::Mem(Mem { space, kind, bytes, addr: addr.clone() }), &[], &[]);
                }
                // The lower bits of the address say how much is zeros, and do not count: the
                // bytes lie before it, in part.
                if let (S::CopyAsync { zfill: true, .. }, Addr::Sum(parts, offset)) = (&i.op, &addr) {
                    let addr = Addr::Sum(parts.clone(), offset - i64::from(m.bytes));
                    accesses.push(Mem { space: MemSpace::Global, kind, bytes: u32::from(m.bytes), addr });
                }
                accesses.push(Mem { space: MemSpace::Global, kind, bytes: u32::from(m.bytes), addr });
            }
            sass::AddressSpace::TensorMap => {
                let o = match m.ubase {
                    Some(u) => lower.src(i, &sass::InstOperand { regs: 2, ..sass::InstOperand::ureg(u) }),
                    None => lower.unknown(i, Class::W64, Reason::Descriptor),
                };
                let addr = Addr::TensorMap(o, coordinates(lower, i));
                accesses.push(Mem { space: MemSpace::Global, kind, bytes: 0, addr });
            }
            sass::AddressSpace::Handle => {
                let o = handle(lower, i, m);
                let surface = matches!(i.op, S::Surface);
                accesses.push(Mem { space: MemSpace::Global, kind, bytes: 0, addr: Addr::Handle(o, surface) });
            }
            sass::AddressSpace::Shared | sass::AddressSpace::RemoteShared => {
                why = Reason::Shared;
                if lower.shared_ok && kind.writes() {
                    shared_store(lower, i, m);
                }
            }
            sass::AddressSpace::Local => why = Reason::Local,
            sass::AddressSpace::Tensor => why = Reason::Float,
        }
    }
    if i.mem.iter().any(|m| m.access == MemEffect::Atomic) {
        why = Reason::AtomicResult;
    }
    // LDGSTS reads nothing when its predicate is false. What the predicate of other loads does
    // is not known: they may not happen.
    let only_if: SmallVec<[SrcOperand; 2]> = match i.op {
        S::CopyAsync { zfill: true, .. } => SmallVec::from_slice(&[lower.unknown(i, Class::Pred, Reason::Instruction)]),
        S::CopyAsync { .. } if !i.psrc[0].always() => SmallVec::from_slice(&[Lower::pred(i.psrc[0])]),
        // What is compared comes first, then what is stored.
        S::AtomCas { .. } if i.mem[0].strength != Strength::Block && i.src.first().is_some_and(|s| s.regs <= 2) => {
            i.src.iter().take(2).map(|operand| lower.src(i, operand)).collect()
        }
        S::Load { .. } if !i.psrc[0].always() => {
            SmallVec::from_slice(&[lower.unknown(i, Class::Pred, Reason::Instruction)])
        }
        _ => SmallVec::new(),
    };
    // 64-bit atomics on generic addresses say whether they were carried out: not in shared and
    // local memory, for which loads and stores follow (seen in code of `nvcc` for sm_75 on).
    if asks {
        lies_in(lower, i, Window::Neither);
    }
    for m in accesses {
        lower.emit(i, Op::Mem(m), &only_if, &[]);
    }
    let narrow = match i.op {
        S::Load { ty: MemTy::U8 } => Some((0, 0xff)),
        S::Load { ty: MemTy::S8 } => Some((-0x80, 0x7f)),
        S::Load { ty: MemTy::U16 } => Some((0, 0xffff)),
        S::Load { ty: MemTy::S16 } => Some((-0x8000, 0x7fff)),
        _ => None,
    };
    // Addresses that come out of memory: tables of pointers can be followed.
    if let (S::Load { ty: MemTy::B64 | MemTy::B128 }, [m], Reason::Loaded) = (&i.op, &i.mem[..], why)
        && matches!(m.space, sass::AddressSpace::Global | sass::AddressSpace::Generic)
        && let Addr::Sum(parts, off) = global_address(lower, i, m)
    {
        lower.emit(i, Op::Loaded(off), &parts, &results);
        return;
    }
    match (narrow, &results[..]) {
        (_, []) => {}
        (Some((lo, hi)), [d]) => lower.emit(i, Op::Bounded { lo, hi }, &[], &[*d]),
        _ => lower.emit(i, Op::Unknown(why), &[], &results),
    }
}

pub(super) fn global_address(lower: &mut Lower<'_>, i: &MachineInst, m: &sass::MemOperand) -> Addr {
    let mut parts: SmallVec<[SrcOperand; 2]> = SmallVec::new();
    if !m.base.is_zero() {
        let regs = if m.base64 { 2 } else { 1 };
        let mut o = lower.src(i, &sass::InstOperand { regs, ..sass::InstOperand::reg(m.base) });
        if let (Src::Var(v), false) = (o.src, m.base64) {
            o = SrcOperand::new(Src::Zext(v));
        }
        parts.push(o);
    }
    if let Some(u) = m.ubase.filter(|u| !u.is_zero()) {
        parts.push(lower.src(i, &sass::InstOperand { regs: 2, ..sass::InstOperand::ureg(u) }));
    }
    if matches!(i.op, sass::Opcode::Bulk) {
        // The register counts units of 16 bytes (UBLKCP, UBLKRED: nvcc of CUDA 13 shifts the
        // bytes right by 4 for 9.0, 10.0 and 12.0).
        let units = lower.arg(i, 0);
        let bytes = lower.f.var(Class::W32);
        lower.emit_always(i, Op::Shl, &[units, SrcOperand::imm(4)], &[bytes]);
        return Addr::Bulk(parts, SrcOperand::new(Src::Var(bytes)));
    }
    Addr::Sum(parts, m.offset)
}

/// The predicate result: whether the generic address lies there.
pub(super) fn lies_in(lower: &mut Lower<'_>, i: &MachineInst, window: Window) {
    let p = Lower::pred_var(i.pdst[0]);
    if p == Var::NONE {
        return;
    }
    match global_address(lower, i, &i.mem[0]) {
        Addr::Sum(parts, off) => lower.emit(i, Op::LiesIn { window, off }, &parts, &[p]),
        _ => lower.emit(i, Op::Unknown(Reason::Window), &[], &[p]),
    }
}

/// The coordinates of a tile, in the uniform registers behind the address in shared memory, and
/// behind the barrier of a load (seen in code of `nvcc` and Triton for 9.0). Of an image the
/// registers mean something else, and on later devices, which gather rows, they may.
fn coordinates(lower: &mut Lower<'_>, i: &MachineInst) -> SmallVec<[SrcOperand; 5]> {
    let (sass::Opcode::TensorCopy { dims, image: false }, Generation::Hopper) = (i.op, lower.code.generation) else {
        return SmallVec::new();
    };
    let Some(shared) = i.mem.iter().find(|m| m.space == sass::AddressSpace::Shared) else { return SmallVec::new() };
    let Some(first) = shared.ubase.filter(|u| !u.is_zero()) else { return SmallVec::new() };
    let skip = if shared.access == MemEffect::Write { 2 } else { 1 };
    let registers = (0..dims).map(|k| sass::UReg(first.0 + skip + k));
    registers.map(|u| lower.src(i, &sass::InstOperand::ureg(u))).collect()
}

fn handle(lower: &mut Lower<'_>, i: &MachineInst, m: &sass::MemOperand) -> SrcOperand {
    if let Some(c) = i.src.iter().find(|s| matches!(s.value, Value::Const(_))) {
        let s = sass::InstOperand { regs: 1, ..*c };
        return lower.src(i, &s);
    }
    match m.ubase {
        Some(u) => lower.src(i, &sass::InstOperand::ureg(u)),
        None if !m.base.is_zero() => lower.src(i, &sass::InstOperand::reg(m.base)),
        None => lower.unknown(i, Class::W32, Reason::Descriptor),
    }
}

/// The variable of the local word at this offset from R1.
fn slot(lower: &mut Lower<'_>, off: i64) -> Var {
    let off = off + lower.stack;
    if let Some(v) = lower.slots.get(&off) {
        return *v;
    }
    let v = lower.f.var(Class::W32);
    lower.slots.insert(off, v);
    v
}

fn local_address(i: &MachineInst) -> Addr {
    let m = &i.mem[0];
    let mut parts: SmallVec<[SrcOperand; 2]> = SmallVec::new();
    if let Some(v) = Lower::reg(m.base.0) {
        parts.push(SrcOperand::var(v));
    }
    if let Some(v) = m.ubase.and_then(|u| Lower::ureg(u.0)) {
        parts.push(SrcOperand::var(v));
    }
    Addr::Sum(parts, m.offset)
}

fn local_load(lower: &mut Lower<'_>, i: &MachineInst, ty: MemTy) {
    let off = i.mem[0].offset;
    let words = ty.regs();
    let d: SmallVec<[Var; 4]> = (0..words).map(|k| lower.dst(i, k)).collect();
    if ty.bytes() < 4 || (lower.local.is_slots() && off % 4 != 0) {
        lower.give_up(i, Reason::Local);
    } else if lower.local.is_slots() {
        let s: SmallVec<[SrcOperand; 4]> =
            (0..words).map(|k| SrcOperand::var(slot(lower, off + 4 * i64::from(k)))).collect();
        lower.emit(i, Op::Mov, &s, &d);
    } else {
        let addr = local_address(i);
        let m = Mem { space: MemSpace::Local, kind: AccessKind::Read, bytes: u32::from(ty.bytes()), addr };
        lower.emit(i, Op::Mem(m), &[], &d);
    }
}

fn local_store(lower: &mut Lower<'_>, i: &MachineInst, ty: MemTy) {
    let off = i.mem[0].offset;
    let words = ty.regs();
    if lower.local.is_slots() {
        if ty.bytes() < 4 || off % 4 != 0 {
            let d: SmallVec<[Var; 2]> = (off.div_euclid(4)..=(off + i64::from(ty.bytes()) - 1).div_euclid(4))
                .map(|w| slot(lower, 4 * w))
                .collect();
            lower.emit(i, Op::Unknown(Reason::Local), &[], &d);
            return;
        }
        let s = i.src[0];
        let src: SmallVec<[SrcOperand; 4]> = (0..words).map(|k| lower.word(i, &s, k)).collect();
        let d: SmallVec<[Var; 4]> = (0..words).map(|k| slot(lower, off + 4 * i64::from(k))).collect();
        lower.emit(i, Op::Mov, &src, &d);
        return;
    }
    let s = i.src[0];
    let src: SmallVec<[SrcOperand; 4]> = (0..words).map(|k| lower.word(i, &s, k)).collect();
    let addr = local_address(i);
    let m = Mem { space: MemSpace::Local, kind: AccessKind::Write, bytes: u32::from(ty.bytes()), addr };
    lower.emit(i, Op::Mem(m), &src, &[]);
}

/// A store to shared memory, with its words if it is an ordinary one.
fn shared_store(lower: &mut Lower<'_>, i: &MachineInst, m: &sass::MemOperand) {
    let mut parts: SmallVec<[SrcOperand; 2]> = SmallVec::new();
    if let Some(v) = Lower::reg(m.base.0) {
        let base = lower.f.var(Class::W32);
        let shift = SrcOperand::imm(u64::from(m.scale.trailing_zeros()));
        lower.emit_always(i, Op::Shl, &[SrcOperand::var(v), shift], &[base]);
        parts.push(SrcOperand::var(base));
    }
    if let Some(v) = m.ubase.and_then(|u| Lower::ureg(u.0)) {
        parts.push(SrcOperand::var(v));
    }
    let words: SmallVec<[SrcOperand; 4]> = match i.op {
        sass::Opcode::Store { ty } if ty.bytes() >= 4 => (0..ty.regs()).map(|k| lower.word(i, &i.src[0], k)).collect(),
        _ => SmallVec::new(),
    };
    let addr = Addr::Sum(parts, m.offset);
    let mem = Mem { space: MemSpace::Shared, kind: AccessKind::Write, bytes: u32::from(m.bytes), addr };
    lower.emit(i, Op::Mem(mem), &words, &[]);
}

/// An instruction that may touch any memory.
pub(super) fn any_memory(lower: &mut Lower<'_>, i: &MachineInst, why: Reason) {
    let by_pointer = why == Reason::Call && i.flow() == Flow::Call(None);
    let kinds = [AccessKind::Read, AccessKind::Write, AccessKind::Atomic];
    let kinds = match if by_pointer { lower.code.links.callees } else { Callees::Unknown } {
        Callees::Unknown => &kinds[..],
        Callees::NoUpdates => &kinds[..2],
        Callees::NoAccesses => return,
    };
    for kind in kinds.iter().copied() {
        let m = Mem { space: MemSpace::Global, kind, bytes: 0, addr: Addr::Unknown(why) };
        lower.emit(i, Op::Mem(m), &[], &[]);
    }
    if lower.follows_words {
        any_word(lower, i);
    }
    if lower.shared_ok {
        let addr = Addr::Unknown(why);
        let m = Mem { space: MemSpace::Shared, kind: AccessKind::Write, bytes: u32::MAX, addr };
        lower.emit(i, Op::Mem(m), &[], &[]);
    }
}

/// A call that is not followed is given what the registers for arguments hold (seen in code of
/// `nvcc` for sm_75 to sm_120). What does not fit into them is in local memory.
pub(super) fn passes_registers(lower: &mut Lower<'_>, i: &MachineInst) {
    let arguments: SmallVec<[SrcOperand; 2]> = ARGUMENTS.map(|n| SrcOperand::var(Var(n))).collect();
    // It may write to local memory, too.
    let addr = Addr::Unknown(Reason::Local);
    let local = Mem { space: MemSpace::Local, kind: AccessKind::Write, bytes: 1, addr };
    lower.emit(i, Op::Mem(local), &[], &[]);
    for kind in [AccessKind::Read, AccessKind::Write] {
        let addr = Addr::Passed(arguments.clone());
        lower.emit(i, Op::Mem(Mem { space: MemSpace::Global, kind, bytes: 0, addr }), &[], &[]);
    }
}

/// A call that is not followed. `Some(false)`: it does not return.
pub(super) fn opaque_call(lower: &mut Lower<'_>, i: &MachineInst) -> bool {
    let known = lower.code.known_call(i);
    if known.is_none() {
        let externals = &lower.code.links.externals;
        let why = match lower.code.links.calls.get(&i.pc) {
            Some(name) => Reason::of_call(name),
            None if externals.iter().any(|name| Reason::of_call(name) == Reason::Launches) => Reason::Launches,
            None => Reason::Call,
        };
        any_memory(lower, i, why);
        let computes = i.flow() == Flow::Call(None) && lower.code.links.callees == Callees::NoAccesses;
        if why == Reason::Call && !computes {
            passes_registers(lower, i);
        }
    }
    match known {
        // What the caller reads behind the call is either a result or kept by the callee: else
        // the compiler would not read it. Results of these functions are in R4 and R5 (seen in
        // code of `nvcc` for sm_75 to sm_120); R4 to R15 hold arguments.
        Some(true) => {
            let results: SmallVec<[Var; 12]> = ARGUMENTS.map(Var).collect();
            lower.emit(i, Op::Unknown(Reason::Call), &[], &results);
            let predicates: SmallVec<[Var; 12]> = (0..7).map(|n| Var(P + n)).collect();
            lower.emit(i, Op::Unknown(Reason::Call), &[], &predicates);
        }
        Some(false) => {}
        None => lower.emit(i, Op::ClobberAll, &[], &[]),
    }
    known != Some(false)
}
