//! What PTX memory instructions touch.
//!
//! Owns addresses and local memory. Assumption, as for machine code: where a kernel makes no
//! generic stores, calls or atomics, nothing but its local stores writes its local memory.

use smallvec::SmallVec;

use crate::ir::{AccessKind, Addr, Class, Mem, MemSpace, Op, Reason, Src, SrcOperand, Sync, Var};
use crate::lower_ptx::control_flow::word;
use crate::lower_ptx::tensor_core::{coordinates, matrix};
use device_code::ptx::{self, AddressBase, Body, Instruction, Module, OpcodeInfo, Type};

use super::{Lower, class};
use crate::lower_ptx::arithmetic::{has, last_type};

/// Which memory an opcode names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    Global,
    Generic,
    Shared,
    Local,
    Param,
}

pub(super) fn place(op: &OpcodeInfo) -> Where {
    for part in &op.parts[1..] {
        match part.as_str() {
            "global" | "const" => return Where::Global,
            "shared" | "shared::cta" | "shared::cluster" => return Where::Shared,
            "local" => return Where::Local,
            "param" | "param::entry" | "param::func" => return Where::Param,
            _ => {}
        }
    }
    Where::Generic
}

/// Whether a load, store or read-modify-write is atomic towards other kernels.
///
/// `.volatile` has the semantics of `.relaxed.sys` (PTX ISA, "ld.volatile"), and machine code does
/// not tell the two apart. A read-modify-write without a scope has that of the device.
pub(super) fn is_atomic(op: &OpcodeInfo) -> bool {
    if has(op, "cta") || has(op, "cluster") {
        return false;
    }
    let rmw = matches!(op.parts[0].as_str(), "atom" | "red");
    rmw || ["relaxed", "acquire", "release", "volatile"].iter().any(|order| has(op, order))
}

/// The order of an atomic access that is more than relaxed, as what it orders by itself: before it,
/// and behind it.
fn orders(op: &OpcodeInfo) -> (bool, bool) {
    let both = has(op, "acq_rel");
    let atomic = is_atomic(op);
    (atomic && (both || has(op, "release")), atomic && (both || has(op, "acquire")))
}

/// An access with what it orders.
fn ordered(lower: &mut Lower<'_>, op: &OpcodeInfo, access: impl FnOnce(&mut Lower<'_>)) {
    let (releases, acquires) = orders(op);
    if releases {
        lower.emit(Op::Sync(Sync::Release), &[], &[]);
    }
    access(lower);
    if acquires {
        lower.emit(Op::Sync(Sync::Acquire), &[], &[]);
    }
}

/// Elements of a vector access.
pub(super) fn count(op: &OpcodeInfo) -> u32 {
    ["v8", "v4", "v2"].iter().zip([8, 4, 2]).find(|(name, _)| has(op, name)).map_or(1, |(_, n)| n)
}

/// Offset and bytes of each element of an access to a variable.
pub(super) fn elements(op: &OpcodeInfo, offset: i64) -> Vec<(i64, u32)> {
    let size = last_type(op).map_or(4, Type::size);
    (0..count(op)).map(|at| (offset + i64::from(at * size), size)).collect()
}

/// True when nothing but local stores can write local memory.
pub(super) fn local_is_simple(module: &Module, body: &Body) -> bool {
    body.code.iter().all(|instruction| {
        let op = module.opcode(instruction.opcode);
        match op.parts[0].as_str() {
            "st" | "atom" | "red" => place(op) != Where::Generic,
            "call" | "cp" => false,
            _ => true,
        }
    })
}

/// Whether an instruction stores words to what may be local memory.
pub(super) fn keeps_locally(op: &OpcodeInfo) -> bool {
    op.parts[0] == "st" && matches!(place(op), Where::Local | Where::Generic)
}

/// An instruction that may touch any memory.
pub(super) fn any_memory(lower: &mut Lower<'_>, why: Reason) {
    for kind in [AccessKind::Read, AccessKind::Write, AccessKind::Atomic] {
        access(lower, kind, 0, Addr::Unknown(why));
    }
}

pub(super) fn access(lower: &mut Lower<'_>, kind: AccessKind, bytes: u32, addr: Addr) {
    lower.emit(Op::Mem(Mem { space: MemSpace::Global, kind, bytes, addr }), &[], &[]);
}

/// Returns false when the instruction is not one of memory.
pub(super) fn memory(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction) -> bool {
    let o = &i.operands;
    match op.parts[0].as_str() {
        "ld" | "ldu" => load(lower, op, i),
        "st" if has(op, "async") || has(op, "bulk") => {}
        "st" => store(lower, op, i),
        "atom" | "red" => {
            let address = o.get(usize::from(op.parts[0] == "atom"));
            if matches!(place(op), Where::Global | Where::Generic) && !has(op, "async") {
                let bytes = last_type(op).map_or(0, Type::size) * count(op);
                let addr = global(lower, address);
                if !is_atomic(op) {
                    access(lower, AccessKind::Read, bytes, addr.clone());
                    access(lower, AccessKind::Write, bytes, addr);
                    if op.parts[0] == "atom" {
                        lower.give_up(i, Reason::AtomicResult);
                    }
                    return true;
                }
                let mem = Mem { space: MemSpace::Global, kind: AccessKind::Atomic, bytes, addr };
                // What a compare-and-swap compares, and what it stores.
                let compared = last_type(op).filter(|ty| has(op, "cas") && ty.size() <= 8);
                let values: SmallVec<[SrcOperand; 2]> = match compared {
                    Some(ty) => [2, 3].map(|k| lower.src(o.get(k), class(ty))).into(),
                    None => SmallVec::new(),
                };
                ordered(lower, op, |lower| lower.emit(Op::Mem(mem), &values, &[]));
            }
            if op.parts[0] == "atom" {
                lower.give_up(i, Reason::AtomicResult);
            }
        }
        "tex" | "tld4" | "suld" => {
            let addr = handle(lower, o.get(1), op.parts[0] == "suld");
            access(lower, AccessKind::Read, 0, addr);
            lower.give_up(i, Reason::Loaded);
        }
        "sust" | "sured" => {
            let addr = handle(lower, o.first(), true);
            let kind = if op.parts[0] == "sust" { AccessKind::Write } else { AccessKind::Atomic };
            access(lower, kind, 0, addr);
        }
        "txq" | "suq" => lower.give_up(i, Reason::Descriptor),
        "cp" => copy(lower, op, i),
        "prefetch" | "prefetchu" | "applypriority" | "ldmatrix" | "stmatrix" => {
            if op.parts[0] == "ldmatrix" {
                lower.give_up(i, Reason::Shared);
            }
        }
        "mbarrier" => {
            if has(op, "try_wait") || has(op, "test_wait") {
                lower.emit(Op::Sync(Sync::PhaseWait), &[], &[]);
            }
            lower.give_up(i, Reason::Shared);
        }
        _ => return matrix(lower, op, i),
    }
    true
}

/// The address of a memory operand as parts and offset; `None` when it has none.
fn parts(lower: &mut Lower<'_>, operand: Option<&ptx::Operand>) -> Option<(SmallVec<[SrcOperand; 2]>, i64)> {
    let (base, offset) = match operand {
        Some(&ptx::Operand::Memory(base, offset)) => (base, offset),
        Some(ptx::Operand::MemoryList(list)) => (list.0, list.1),
        _ => return None,
    };
    let part = match base {
        AddressBase::Register(register) => lower.src(Some(&ptx::Operand::Register(register)), Class::W64),
        AddressBase::Symbol(name) => lower.symbol_address(name, 0, Class::W64),
        AddressBase::Local(local) => lower.variable_address(local, 0, Class::W64),
        AddressBase::Zero => return Some((SmallVec::new(), offset)),
    };
    Some((SmallVec::from_slice(&[part]), offset))
}

/// The address of a memory operand.
pub(super) fn global(lower: &mut Lower<'_>, operand: Option<&ptx::Operand>) -> Addr {
    match parts(lower, operand) {
        Some((parts, offset)) => Addr::Sum(parts, offset),
        None => Addr::Unknown(Reason::Instruction),
    }
}

fn handle(lower: &mut Lower<'_>, operand: Option<&ptx::Operand>, surface: bool) -> Addr {
    match parts(lower, operand) {
        Some((parts, 0)) if parts.len() == 1 => Addr::Handle(parts[0], surface),
        _ => Addr::Unknown(Reason::Descriptor),
    }
}

fn load(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction) {
    let o = &i.operands;
    let bytes = last_type(op).map_or(0, Type::size);
    match place(op) {
        Where::Shared => lower.give_up(i, Reason::Shared),
        Where::Local => load_local(lower, op, i),
        Where::Param => load_param(lower, op, i),
        Where::Global | Where::Generic => {
            let addr = global(lower, o.get(1));
            let loaded = addr.clone();
            ordered(lower, op, |lower| access(lower, AccessKind::load(is_atomic(op)), bytes * count(op), loaded));
            match addr {
                // Addresses that come out of memory: tables of pointers can be followed.
                Addr::Sum(parts, off) if bytes == 8 => {
                    let mut dsts: SmallVec<[Var; 4]> = SmallVec::new();
                    if let Some(operand) = o.first() {
                        lower.registers_of(operand, &mut dsts);
                    }
                    if dsts.iter().all(|d| *d == Var::NONE || lower.f.class(*d) == Class::W64) {
                        lower.emit(Op::Loaded(off), &parts, &dsts);
                    } else {
                        lower.give_up(i, Reason::Loaded);
                    }
                }
                _ => lower.give_up(i, Reason::Loaded),
            }
        }
    }
}

fn store(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction) {
    let o = &i.operands;
    let bytes = last_type(op).map_or(0, Type::size);
    match place(op) {
        Where::Shared => {}
        Where::Local => store_local(lower, op, i),
        Where::Param => store_param(lower, op, i),
        Where::Global | Where::Generic => {
            let addr = global(lower, o.first());
            ordered(lower, op, |lower| access(lower, AccessKind::store(is_atomic(op)), bytes * count(op), addr));
        }
    }
}

/// The elements of a vector operand, or the operand itself.
pub(super) fn each(operand: Option<&ptx::Operand>) -> SmallVec<[&ptx::Operand; 4]> {
    match operand {
        Some(ptx::Operand::Vector(list)) => list.iter().collect(),
        Some(operand) => SmallVec::from_slice(&[operand]),
        None => SmallVec::new(),
    }
}

fn load_param(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction) {
    let o = &i.operands;
    let ty = last_type(op).unwrap_or(Type::B32);
    let instance = lower.at;
    let Some(&ptx::Operand::Memory(base, offset)) = o.get(1) else { return lower.give_up(i, Reason::Constant) };
    let targets = each(o.first());
    let signed = matches!(ty, Type::S8 | Type::S16 | Type::S32);
    for (&target, (at, bytes)) in targets.iter().zip(elements(op, offset)) {
        let d = lower.dst(Some(target));
        if d == Var::NONE {
            continue;
        }
        let register = lower.operand_type(Some(target)).map_or(4, Type::size);
        match base {
            AddressBase::Local(local) if lower.here().caller.is_none() && lower.params.contains_key(&local) => {
                let off = u16::try_from(i64::from(lower.params[&local]) + at);
                match off {
                    Ok(off) if bytes <= 8 => {
                        let value = SrcOperand::new(Src::Param { off, bytes: bytes as u8 });
                        widened(lower, value, bytes, signed, register, d);
                    }
                    _ => lower.emit(Op::Unknown(Reason::Constant), &[], &[d]),
                }
            }
            AddressBase::Local(local) => {
                // Words that other instructions cut differently are not followed.
                let mixed = lower.here().words.keys().any(|&(other, start, size)| {
                    other == local
                        && (start, size) != (at, bytes)
                        && start < at + i64::from(bytes)
                        && at < start + i64::from(size)
                });
                if mixed || bytes > 8 {
                    lower.emit(Op::Unknown(Reason::Call), &[], &[d]);
                } else {
                    let word = SrcOperand::var(word(lower, instance, local, at, bytes));
                    widened(lower, word, bytes, signed, register, d);
                }
            }
            AddressBase::Register(_) if bytes <= 8 && lower.here().caller.is_none() => {
                // An index into a by-value struct: what the address is beyond the start of the
                // parameters.
                let AddressBase::Register(register_base) = base else { continue };
                let address = lower.src(Some(&ptx::Operand::Register(register_base)), Class::W64);
                let minus = SrcOperand::neg(Src::ParamAddress(0));
                let distance = lower.temporary(Class::W64, Op::Add, &[address, minus]);
                let index = lower.temporary(Class::W32, Op::Ext { bits: 32, signed: false }, &[distance]);
                let off = i32::try_from(at).unwrap_or(0);
                if i64::from(off) == at {
                    let inner = lower.f.var(if bytes == 8 { Class::W64 } else { Class::W32 });
                    lower.emit_always(Op::ParamIndexed { off, bytes: bytes as u8, signed: false }, &[index], &[inner]);
                    widened(lower, SrcOperand::var(inner), bytes, signed, register, d);
                } else {
                    lower.emit(Op::Unknown(Reason::Constant), &[], &[d]);
                }
            }
            _ => lower.emit(Op::Unknown(Reason::Constant), &[], &[d]),
        }
    }
}

/// Moves a value of that many bytes into a register, extended by its sign if it has one.
fn widened(lower: &mut Lower<'_>, value: SrcOperand, bytes: u32, signed: bool, register: u32, d: Var) {
    let wide = lower.f.class(d);
    if bytes == 8 && wide == Class::W64 {
        return lower.emit(Op::Mov, &[value], &[d]);
    }
    if signed && register > bytes {
        let extended = lower.temporary(wide, Op::Ext { bits: (bytes * 8) as u8, signed: true }, &[value]);
        return lower.emit(Op::Ext { bits: (register * 8) as u8, signed: false }, &[extended], &[d]);
    }
    if bytes >= 4 && wide == Class::W32 {
        return lower.emit(Op::Mov, &[value], &[d]);
    }
    lower.emit(Op::Ext { bits: (bytes * 8) as u8, signed: false }, &[value], &[d]);
}

fn store_param(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction) {
    let o = &i.operands;
    let instance = lower.at;
    let Some(&ptx::Operand::Memory(AddressBase::Local(local), offset)) = o.first() else {
        return lower.emit(Op::ClobberAll, &[], &[]);
    };
    for (&source, (at, bytes)) in each(o.get(1)).iter().zip(elements(op, offset)) {
        if bytes > 8 {
            continue;
        }
        let wide = if bytes == 8 { Class::W64 } else { Class::W32 };
        let value = lower.src(Some(source), wide);
        let word = word(lower, instance, local, at, bytes);
        if bytes < 4 {
            lower.emit(Op::Ext { bits: (bytes * 8) as u8, signed: false }, &[value], &[word]);
        } else {
            lower.emit(Op::Mov, &[value], &[word]);
        }
    }
}

fn local_address(lower: &mut Lower<'_>, operand: Option<&ptx::Operand>) -> Option<Addr> {
    let (base, offset) = match operand {
        Some(&ptx::Operand::Memory(base, offset)) => (base, offset),
        _ => return None,
    };
    let part = match base {
        AddressBase::Register(register) => lower.src(Some(&ptx::Operand::Register(register)), Class::W32),
        AddressBase::Local(local) => lower.variable_address(local, 0, Class::W32),
        _ => return None,
    };
    Some(Addr::Sum(SmallVec::from_slice(&[part]), offset))
}

fn load_local(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction) {
    let o = &i.operands;
    let ty = last_type(op).unwrap_or(Type::B32);
    let address = if lower.local_ok && matches!(ty.size(), 4 | 8) { local_address(lower, o.get(1)) } else { None };
    let Some(Addr::Sum(parts, offset)) = address else { return lower.give_up(i, Reason::Local) };
    for (&target, (at, bytes)) in each(o.first()).iter().zip(elements(op, offset)) {
        let d = lower.dst(Some(target));
        let addr = Addr::Sum(parts.clone(), at);
        let mem = Mem { space: MemSpace::Local, kind: AccessKind::Read, bytes, addr };
        if d == Var::NONE {
            continue;
        }
        if bytes == 4 && lower.f.class(d) == Class::W32 {
            lower.emit(Op::Mem(mem), &[], &[d]);
        } else if bytes == 8 && lower.f.class(d) == Class::W64 {
            let (low, high) = (lower.f.var(Class::W32), lower.f.var(Class::W32));
            lower.emit_always(Op::Mem(mem), &[], &[low, high]);
            lower.emit(Op::Pack, &[SrcOperand::var(low), SrcOperand::var(high)], &[d]);
        } else {
            lower.emit(Op::Unknown(Reason::Local), &[], &[d]);
        }
    }
}

fn store_local(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction) {
    if !lower.local_ok {
        return;
    }
    let o = &i.operands;
    let ty = last_type(op).unwrap_or(Type::B32);
    let Some(Addr::Sum(parts, offset)) = local_address(lower, o.first()) else {
        // Somewhere in local memory: no load knows what it gets.
        let mem = Mem { space: MemSpace::Local, kind: AccessKind::Write, bytes: 1, addr: Addr::Unknown(Reason::Local) };
        return lower.emit(Op::Mem(mem), &[], &[]);
    };
    for (&source, (at, bytes)) in each(o.get(1)).iter().zip(elements(op, offset)) {
        let value = lower.src(Some(source), class(ty));
        let mem = Mem { space: MemSpace::Local, kind: AccessKind::Write, bytes, addr: Addr::Sum(parts.clone(), at) };
        if bytes == 8 {
            let (low, high) = (lower.f.var(Class::W32), lower.f.var(Class::W32));
            lower.emit_always(Op::Unpack, &[value], &[low, high]);
            lower.emit(Op::Mem(mem), &[SrcOperand::var(low), SrcOperand::var(high)], &[]);
        } else {
            lower.emit(Op::Mem(mem), &[value], &[]);
        }
    }
}

/// `cp.async` and its bulk and tensor forms.
fn copy(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction) {
    let o = &i.operands;
    if has(op, "commit_group") || has(op, "wait_group") || has(op, "wait_all") || has(op, "arrive") {
        return;
    }
    // (A prefetch is no access.)
    if has(op, "prefetch") {
        return;
    }
    let reduces = op.parts[1] == "reduce";
    // What comes first names the destination, what comes last the source.
    let spaces: Vec<&str> =
        op.parts[1..].iter().map(String::as_str).filter(|p| p.starts_with("shared") || *p == "global").collect();
    let writes = spaces.first() == Some(&"global");
    let kind = match (writes, reduces) {
        (true, true) => AccessKind::Atomic,
        (true, false) => AccessKind::Write,
        _ => AccessKind::Read,
    };
    if has(op, "tensor") {
        let at = usize::from(!writes);
        let addr = match parts(lower, o.get(at)) {
            Some((parts, 0)) if parts.len() == 1 => Addr::TensorMap(parts[0], coordinates(lower, op, o.get(at))),
            _ => Addr::Unknown(Reason::Descriptor),
        };
        return access(lower, kind, 0, addr);
    }
    let at = usize::from(!writes);
    let addr = global(lower, o.get(at));
    if has(op, "bulk") {
        let size = lower.src(o.get(2), Class::W32);
        let addr = match addr {
            Addr::Sum(mut parts, offset) => {
                if offset != 0 {
                    parts.push(SrcOperand::imm(offset as u64));
                }
                Addr::Bulk(parts, size)
            }
            other => other,
        };
        return access(lower, kind, 0, addr);
    }
    // `cp.async`: a constant size; then perhaps how much of it is read, or a predicate under
    // which nothing is; then perhaps a policy.
    let Some(&ptx::Operand::Int(size)) = o.get(2) else { return any_memory(lower, Reason::Instruction) };
    let policy = op.parts.iter().any(|p| p.ends_with("cache_hint"));
    let mem = |addr, bytes| Op::Mem(Mem { space: MemSpace::Global, kind: AccessKind::Read, bytes, addr });
    match o.get(3).filter(|_| !policy || o.len() > 4) {
        None => access(lower, AccessKind::Read, size as u32, addr),
        Some(&ptx::Operand::Int(read)) => {
            lower.f.partial_copies |= read < size;
            access(lower, AccessKind::Read, size.min(read) as u32, addr);
        }
        Some(&ptx::Operand::Register(r)) if lower.f.class(lower.here().registers[r.index()]) != Class::Pred => {
            lower.f.partial_copies = true;
            let read = lower.src(o.get(3), Class::W32);
            let smaller = [read, SrcOperand::imm(size), SrcOperand::imm(1)];
            let read = lower.temporary(Class::W32, Op::MinMax { signed: false }, &smaller);
            match addr {
                Addr::Sum(mut parts, offset) => {
                    if offset != 0 {
                        parts.push(SrcOperand::imm(offset as u64));
                    }
                    access(lower, AccessKind::Read, 0, Addr::Bulk(parts, read));
                }
                other => access(lower, AccessKind::Read, 0, other),
            }
        }
        Some(&ptx::Operand::Register(r)) => {
            let ignored = SrcOperand::pred(lower.here().registers[r.index()], true);
            lower.emit(mem(addr, size as u32), &[ignored], &[]);
        }
        // `!p`
        Some(&ptx::Operand::Not(r)) => {
            let ignored = SrcOperand::pred(lower.here().registers[r.index()], false);
            lower.emit(mem(addr, size as u32), &[ignored], &[]);
        }
        Some(_) => {
            let perhaps = lower.unknown(Class::Pred, Reason::Instruction);
            lower.emit(mem(addr, size as u32), &[perhaps], &[]);
        }
    }
}
