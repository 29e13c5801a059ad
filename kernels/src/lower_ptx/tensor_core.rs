//! What the instructions of tensor cores and of their memory touch: fragments in global memory
//! (`wmma`), tensor memory (`tcgen05`), tensor maps that a kernel makes itself, and multicast
//! memory.

use crate::ir::{AccessKind, Addr, Class, MapStep, Mem, MemSpace, Op, Reason, Src, SrcOperand};
use crate::lower_ptx::memory_access::{Where, access, any_memory, count, each, global, is_atomic, place};
use device_code::ptx::{self, Instruction, OpcodeInfo, Type};
use smallvec::SmallVec;

use super::Lower;
use crate::lower_ptx::arithmetic::{has, last_type};

/// Bytes of a tensor map (CUDA driver API, `CUtensorMap`).
const TENSOR_MAP: u32 = 128;

/// What a fragment is in memory.
struct Fragment {
    /// Rows, or columns where those are contiguous.
    vectors: u32,
    /// Bits of each.
    bits: u32,
    /// Bits of an element.
    element: u32,
}

/// Bits of one element.
fn element(op: &OpcodeInfo) -> Option<u32> {
    Some(match op.parts.last()?.as_str() {
        "b1" => 1,
        "s4" | "u4" => 4,
        "tf32" => 32,
        name => Type::from_name(name)?.size() * 8,
    })
}

/// The fragment that a `wmma.load` or `wmma.store` moves (PTX ISA, "Warp Level Matrix Load
/// Instruction").
fn fragment_shape(op: &OpcodeInfo) -> Option<Fragment> {
    let shape = op.parts.iter().find(|p| p.starts_with('m') && p.as_bytes().get(1).is_some_and(u8::is_ascii_digit))?;
    let mut numbers = shape.split(['m', 'n', 'k']).skip(1).map(|n| n.parse::<u32>().ok());
    let (m, n, k) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let (rows, columns) = match op.parts.get(2)?.as_str() {
        "a" => (m, k),
        "b" => (k, n),
        "c" | "d" => (m, n),
        _ => return None,
    };
    let (vectors, long) = if has(op, "row") { (rows, columns) } else { (columns, rows) };
    let element = element(op)?;
    (1..=256).contains(&vectors).then_some(Fragment { vectors, element, bits: long.min(1024) * element })
}

/// Returns false when the instruction is none of these.
pub(super) fn matrix(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction) -> bool {
    match op.parts[0].as_str() {
        "wmma" if has(op, "load") || has(op, "store") => fragment(lower, op, i),
        // What lanes hold together.
        "wmma" | "mma" | "wgmma" => lower.give_up(i, Reason::CrossLane),
        // Between registers, shared memory and tensor memory, which no other kernel sees.
        "tcgen05" => {
            if op.parts[1] == "ld" {
                lower.give_up(i, Reason::Shared);
            }
        }
        "tensormap" => tensor_map(lower, op, i),
        "multimem" => multicast(lower, op, i),
        // The bytes hold anything after it, as after a store.
        "discard" => {
            let bytes = match i.operands.get(1) {
                Some(&ptx::Operand::Int(bytes)) => u32::try_from(bytes).unwrap_or(128),
                _ => 128,
            };
            let addr = global(lower, i.operands.first());
            access(lower, AccessKind::Write, bytes, addr);
        }
        _ => return false,
    }
    true
}

/// `wmma.load.a... r, [p], stride` and `wmma.store.d... [p], r, stride`: vectors a stride of
/// elements apart, all of which the warp touches.
fn fragment(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction) {
    let o = &i.operands;
    let write = has(op, "store");
    let kind = if write { AccessKind::Write } else { AccessKind::Read };
    if place(op) != Where::Shared {
        let addr = global(lower, o.get(usize::from(!write)));
        match (addr, fragment_shape(op)) {
            (Addr::Sum(mut parts, offset), Some(f)) => {
                let bytes = match o.get(2) {
                    None => f.vectors * f.bits / 8,
                    Some(stride) => {
                        let stride = lower.src(Some(stride), Class::W32);
                        let bits = u64::from(f.element);
                        // The stride in bytes, of types of less than a byte rounded up: an
                        // upper bound.
                        let (times, round, by) = if bits < 8 { (bits, 7, 3) } else { (bits / 8, 0, 0) };
                        let scaled = [stride, SrcOperand::imm(times), SrcOperand::imm(round)];
                        let mut far = lower.temporary(Class::W32, Op::Mad, &scaled);
                        if by > 0 {
                            let srcs = [far, SrcOperand::imm(by)];
                            far = lower.temporary(Class::W32, Op::Shr { signed: false }, &srcs);
                        }
                        let last = i64::from(f.vectors) - 1;
                        let which = lower.temporary(Class::W32, Op::Bounded { lo: 0, hi: last }, &[]);
                        let srcs = [which, far, SrcOperand::imm(0)];
                        parts.push(lower.temporary(Class::W64, Op::MadWide { signed: false }, &srcs));
                        f.bits.div_ceil(8)
                    }
                };
                access(lower, kind, bytes, Addr::Sum(parts, offset));
            }
            _ => access(lower, kind, 0, Addr::Unknown(Reason::Instruction)),
        }
    }
    if !write {
        lower.give_up(i, Reason::Loaded);
    }
}

/// An address with its 32-bit parts as they are.
fn in_shared(addr: Addr) -> Addr {
    let narrow = |part: SrcOperand| if let Src::Zext(var) = part.src { SrcOperand::var(var) } else { part };
    match addr {
        Addr::Sum(parts, offset) => Addr::Sum(parts.into_iter().map(narrow).collect(), offset),
        other => other,
    }
}

/// A kernel that makes a tensor map itself: in shared memory, field by field, and copies it to
/// where copies can use it.
fn tensor_map(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction) {
    let step = |lower: &mut Lower<'_>, step, addr, srcs: &[SrcOperand]| {
        lower.emit(Op::Mem(Mem { space: MemSpace::Map(step), kind: AccessKind::Write, bytes: 8, addr }), srcs, &[]);
    };
    if op.parts[1] == "replace" {
        let is_shared = place(op) == Where::Shared;
        if has(op, "global_address") {
            let (addr, tensor) = (global(lower, i.operands.first()), lower.src(i.operands.get(1), Class::W64));
            match is_shared {
                true => step(lower, MapStep::Shared, in_shared(addr), &[tensor]),
                false => step(lower, MapStep::Global, addr, &[tensor]),
            }
        }
        if is_shared {
            return;
        }
    }
    // `tensormap.cp_fenceproxy.global.shared...` names its destination first, as `replace`
    // does.
    if op.parts[1] == "cp_fenceproxy" || op.parts[1] == "replace" {
        let addr = global(lower, i.operands.first());
        let from = in_shared(global(lower, i.operands.get(1)));
        if let ("cp_fenceproxy", Addr::Sum(mut from, offset)) = (&*op.parts[1], from) {
            from.push(SrcOperand::imm(offset as u64));
            step(lower, MapStep::Copy, addr.clone(), &from);
        }
        return access(lower, AccessKind::Write, TENSOR_MAP, addr);
    }
    any_memory(lower, Reason::Instruction);
}

/// `multimem`: loads, stores and reductions in the memory of several devices at once.
fn multicast(lower: &mut Lower<'_>, op: &OpcodeInfo, i: &Instruction) {
    let bytes = last_type(op).map_or(0, Type::size) * count(op);
    let (kind, at) = match op.parts[1].as_str() {
        "ld_reduce" => (AccessKind::load(is_atomic(op)), 1),
        "st" => (AccessKind::store(is_atomic(op)), 0),
        "red" => (AccessKind::Atomic, 0),
        // Bulk forms.
        _ => return any_memory(lower, Reason::Instruction),
    };
    let addr = if bytes > 0 { global(lower, i.operands.get(at)) } else { Addr::Unknown(Reason::Instruction) };
    lower.emit(Op::Mem(Mem { space: MemSpace::Global, kind, bytes, addr }), &[], &[]);
    if !kind.writes() {
        lower.give_up(i, Reason::Loaded);
    }
}

/// The coordinates of a tile. Those of an image, and of rows that are gathered, pick otherwise.
pub(super) fn coordinates(
    lower: &mut Lower<'_>,
    op: &OpcodeInfo,
    map: Option<&ptx::Operand>,
) -> SmallVec<[SrcOperand; 5]> {
    let other = |p: &String| p.starts_with("im2col") || p.ends_with("gather4") || p.ends_with("scatter4");
    match map {
        Some(ptx::Operand::MemoryList(list)) if !op.parts.iter().any(other) => {
            let numbers = list.2.iter().flat_map(|o| each(Some(o)));
            numbers.map(|o| lower.src(Some(o), Class::W32)).collect()
        }
        _ => SmallVec::new(),
    }
}
