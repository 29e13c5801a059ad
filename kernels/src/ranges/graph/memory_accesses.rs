//! Memory instructions as accesses of the graph: their addresses, their guards, and the stores to
//! local and shared memory that loads may see.
//!
//! Owns which instructions count as accesses. Does not decide which bytes they touch (`extent`).

use super::build::Builder;
use super::node::{
    Access, Given, Graph, Kind, MadeTensor, MapStepNode, MapWords, NodeId, StoredWords, Swap, Target, Width,
};
use super::ssa::Def;
use crate::ir::{
    AccessKind, Addr, BlockId, Class, Combine, Inst, MapStep, Mem, MemSpace, Op, Prefix, Reason, Src, SrcOperand,
};
use crate::ranges::graph::cas_loops::CompareAndSwap;
use crate::ranges::graph::operations::near_address;
use smallvec::SmallVec;

pub(crate) fn access(builder: &mut Builder<'_>, b: u32, i: u32, inst: &Inst, m: &Mem) {
    if m.space != MemSpace::Global {
        return;
    }
    let mut guard = inst.guard.map(|g| builder.pred_operand(&g, b, i));
    // The predicate under which an instruction that executes touches memory at all.
    for o in inst.srcs.iter().filter(|_| m.kind == AccessKind::Read) {
        let p = builder.pred_operand(o, b, i);
        guard = Some(match guard {
            Some(g) if builder.const_of(p) != Some(0) => builder.add(Kind::Combine(Combine::And, g, p), Width::Pred, b),
            _ => p,
        });
    }
    if let Some(n) = guard
        && builder.const_of(n) == Some(0)
    {
        return;
    }
    let mut target = target_of(builder, m, b, i);
    if inst.guard.is_some() && guard.is_some_and(|n| chooses_by(builder, &target, n)) {
        target = given_guard(builder, inst, b, i, |builder| target_of(builder, m, b, i));
    }
    if m.kind == AccessKind::Atomic && !inst.srcs.is_empty() {
        builder.swaps.push(CompareAndSwap { access: builder.g.accesses.len(), block: b, inst: i });
        let mut value = |k: usize| inst.srcs.get(k).and_then(|o| given(builder, o, m.bytes, b, i));
        let (compared, stored) = (value(0), value(1));
        builder.g.swaps.push(Swap { access: builder.g.accesses.len() as u32, compared, stored });
    }
    let block = BlockId(b);
    let early = builder.ssa.f.before_wait.get(b as usize).copied().unwrap_or_default();
    builder.g.accesses.push(Access { block, kind: m.kind, bytes: m.bytes, target, guard, at: inst.at, early });
}

/// An operand of an instruction of this width, if it is a number that all threads have.
fn given(builder: &mut Builder<'_>, o: &SrcOperand, bytes: u32, b: u32, i: u32) -> Option<Given> {
    if o.prefix != Prefix::None {
        return None;
    }
    match (bytes, o.src) {
        // Words that do not pair would make a node of their own.
        (8, Src::Pair(low, high)) => {
            let halves = [low, high].map(|v| {
                let n = builder.operand32(&SrcOperand::var(v), b, i);
                Given::of(&builder.g, n)
            });
            match halves {
                [Some(Given::Number(low)), Some(Given::Number(high))] => Some(Given::Number(high << 32 | low)),
                [Some(Given::Param(low, 4)), Some(Given::Param(high, 4))] if high == low + 4 => {
                    Some(Given::Param(low, 8))
                }
                _ => None,
            }
        }
        (4, _) => {
            let n = builder.operand32(o, b, i);
            Given::of(&builder.g, n)
        }
        (8, _) => {
            let n = builder.operand64(o, b, i);
            Given::of(&builder.g, n)
        }
        _ => None,
    }
}

/// Does the address choose by predicate `p` (or its negation) somewhere?
pub(crate) fn chooses_by(builder: &Builder<'_>, t: &Target, p: NodeId) -> bool {
    let strip = |mut n: NodeId| {
        while let Kind::Not(a) = builder.g.node(n).kind {
            n = a;
        }
        n
    };
    let p = strip(p);
    let mut work = match t {
        Target::Address(n) | Target::Handle(n, _) => vec![*n],
        Target::TensorMap(n, coordinates) => std::iter::once(n).chain(coordinates).copied().collect(),
        Target::Bulk(n, m) => vec![*n, *m],
        Target::Made(_) | Target::Passed(_) | Target::Unknown(_) => return false,
    };
    let mut seen = rustc_hash::FxHashSet::default();
    while let Some(n) = work.pop() {
        if seen.insert(n) {
            if matches!(builder.g.node(n).kind, Kind::Sel(c, ..) if strip(c) == p) {
                return true;
            }
            work.extend(builder.g.operands(n));
        }
    }
    false
}

/// The steps by which a kernel makes tensor maps.
#[derive(Default)]
pub(crate) struct MapSteps {
    /// Where a map gets a tensor's address, whether that is shared memory, and the address.
    puts: Vec<(NodeId, bool, NodeId)>,
    /// Where bytes go, and where in shared memory they come from.
    copies: Vec<(NodeId, NodeId)>,
}

/// Notes where a tensor map gets an address, or where its bytes go.
pub(crate) fn map_step(builder: &mut Builder<'_>, (b, i): (u32, u32), inst: &Inst, m: &Mem, step: MapStep) {
    let Addr::Sum(parts, off) = &m.addr else { return };
    let (at, other) = given_guard(builder, inst, b, i, |builder| match (step, inst.srcs.first()) {
        (MapStep::Copy, _) => (sum64(builder, parts, *off, b, i), near_address(builder, &inst.srcs, 0, 0, b, i)),
        (_, None) => (builder.opaque(Reason::Descriptor, Width::W64, b), builder.konst(0, Width::W64)),
        (MapStep::Shared, Some(put)) => (near_address(builder, parts, *off, 0, b, i), builder.operand64(put, b, i)),
        (_, Some(put)) => (sum64(builder, parts, *off, b, i), builder.operand64(put, b, i)),
    });
    match step {
        MapStep::Copy => builder.maps.copies.push((at, other)),
        _ => builder.maps.puts.push((at, step == MapStep::Shared, other)),
    }
}

/// Most ways in which the copies of a kernel may be made by the maps that it makes.
const MAX_MADE: usize = 512;

/// For each copy by a tensor map, what tensors maps that the kernel makes may give it. They come
/// behind all other accesses.
pub(crate) fn made_tensors(builder: &mut Builder<'_>) {
    let MapSteps { puts, copies } = std::mem::take(&mut builder.maps);
    let mut made = Vec::new();
    for access in &builder.g.accesses {
        let Target::TensorMap(map, _) = access.target else { continue };
        for (at, is_shared, tensor) in &puts {
            let whole = |copy| {
                let target = Target::Made(Box::new(MadeTensor { map, put: (*at, *tensor), copy }));
                Access { target, ..access.clone() }
            };
            match is_shared {
                true => made.extend(copies.iter().map(|copy| whole(Some(*copy)))),
                false => made.push(whole(None)),
            }
        }
    }
    if made.len() <= MAX_MADE {
        builder.g.accesses.append(&mut made);
    }
}

pub(crate) fn target_of(builder: &mut Builder<'_>, m: &Mem, b: u32, i: u32) -> Target {
    match &m.addr {
        Addr::Sum(parts, off) => Target::Address(sum64(builder, parts, *off, b, i)),
        Addr::Bulk(parts, size) => {
            let a = sum64(builder, parts, 0, b, i);
            Target::Bulk(a, builder.operand32(size, b, i))
        }
        Addr::TensorMap(o, coordinates) => {
            let map = builder.operand64(o, b, i);
            Target::TensorMap(map, coordinates.iter().map(|o| builder.operand32(o, b, i)).collect())
        }
        Addr::Handle(o, s) => {
            let wide = !matches!(o.src, Src::Var(v) if builder.ssa.f.class(v) == Class::W32);
            let n = if wide { builder.operand64(o, b, i) } else { builder.operand32(o, b, i) };
            Target::Handle(n, *s)
        }
        Addr::Passed(arguments) => {
            builder.has_local = true;
            let mut node = |o: &SrcOperand| match o.src {
                Src::Var(v) if builder.ssa.f.class(v) == Class::W32 => builder.operand32(o, b, i),
                _ => builder.operand64(o, b, i),
            };
            Target::Passed(arguments.iter().map(&mut node).collect())
        }
        Addr::Unknown(r) => Target::Unknown(*r),
    }
}

pub(crate) fn sum64(builder: &mut Builder<'_>, parts: &[SrcOperand], off: i64, b: u32, i: u32) -> NodeId {
    let t: SmallVec<[(NodeId, i64); 3]> = parts.iter().map(|o| (builder.operand64(o, b, i), 1)).collect();
    builder.lin(&t, off, Width::W64, b)
}

/// The stores that loads from local and shared memory may see.
pub(crate) fn stores(builder: &mut Builder<'_>) {
    if builder.has_local {
        builder.g.local_stores = stores_to(builder, MemSpace::Local);
    }
    // The stored words may be loaded from there in turn.
    if builder.has_shared {
        builder.g.shared_stores = stores_to(builder, MemSpace::Shared);
    }
}

/// What an instruction stores, and where.
fn stored(builder: &mut Builder<'_>, inst: &Inst, m: &Mem, b: u32, i: u32) -> StoredWords {
    let addr = match &m.addr {
        Addr::Sum(a, off) => near_address(builder, a, *off, 0, b, i),
        _ => builder.opaque(Reason::Local, Width::W32, b),
    };
    let words = inst.srcs.iter().map(|s| builder.operand32(s, b, i)).collect();
    let pairs = inst
        .srcs
        .chunks_exact(2)
        .map(|c| {
            let l = builder.ssa.source(c[0].src, b, i);
            let h = builder.ssa.source(c[1].src, b, i);
            builder.node64(l, h)
        })
        .collect();
    StoredWords { addr, words, block: BlockId(b), pairs, bytes: m.bytes }
}

/// Builds with the guard of an instruction known to be true: definitions under the same
/// predicate happened.
fn given_guard<T>(
    builder: &mut Builder<'_>,
    inst: &Inst,
    b: u32,
    i: u32,
    build: impl FnOnce(&mut Builder<'_>) -> T,
) -> T {
    let Some(g) = inst.guard else { return build(builder) };
    let d = builder.ssa.source(g.src, b, i);
    if matches!(d, Def::Leaf(_) | Def::Undef { .. }) {
        return build(builder);
    }
    builder.given = Some((d, g.prefix == Prefix::Not));
    builder.base = std::mem::take(&mut builder.memo);
    let built = build(builder);
    builder.memo = std::mem::take(&mut builder.base);
    builder.given = None;
    built
}

/// The 64-bit address of an access that was built already.
fn access_at(builder: &Builder<'_>, block: BlockId, at: u32, kind: AccessKind) -> Option<NodeId> {
    let found = builder.g.accesses.iter().find(|a| a.block == block && a.at == at && a.kind == kind)?;
    match found.target {
        Target::Address(n) => Some(n),
        _ => None,
    }
}

fn stores_to(builder: &mut Builder<'_>, space: MemSpace) -> Vec<StoredWords> {
    let (f, cfg) = (builder.ssa.f, builder.ssa.cfg);
    let mut stores = Vec::new();
    for blk in &cfg.rpo {
        for (i, inst) in f.blocks[blk.0 as usize].insts.iter().enumerate() {
            let Op::Mem(m) = &inst.op else { continue };
            let generic = space == MemSpace::Shared && m.space == MemSpace::Generic;
            if (m.space != space && !generic) || !m.kind.writes() {
                continue;
            }
            let (b, i) = (blk.0, i as u32);
            let mut store = match space {
                MemSpace::Shared => given_guard(builder, inst, b, i, |builder| stored(builder, inst, m, b, i)),
                _ => stored(builder, inst, m, b, i),
            };
            if generic {
                // As the access knows it.
                store.addr = match access_at(builder, *blk, inst.at, m.kind) {
                    Some(n) => n,
                    None => builder.opaque(Reason::Shared, Width::W64, b),
                };
            }
            stores.push(store);
        }
    }
    stores
}

/// A term that is a multiple of the address of a parameter as that, and what is added to it.
pub(super) fn address_of_parameter(g: &Graph, n: NodeId, k: i64) -> (NodeId, i64, i64) {
    match &g.node(n).kind {
        Kind::Lin(terms, c) => match terms[..] {
            [(address, times)] if matches!(g.node(address).kind, Kind::ParamAddress(_)) => {
                (address, times.wrapping_mul(k), c.wrapping_mul(k))
            }
            _ => (n, k, 0),
        },
        _ => (n, k, 0),
    }
}

/// Takes out addresses of two parameters that are subtracted from each other: how far they are
/// apart is known.
pub(super) fn between_parameters(g: &Graph, terms: &mut SmallVec<[(NodeId, i64); 3]>) -> i64 {
    let place = |t: &(NodeId, i64)| match g.node(t.0).kind {
        Kind::ParamAddress(p) => Some(i64::from(p)),
        _ => None,
    };
    for i in 0..terms.len() {
        for j in 0..i {
            if let (Some(p), Some(q)) = (place(&terms[i]), place(&terms[j]))
                && terms[i].1.checked_neg() == Some(terms[j].1)
            {
                let distance = terms[i].1.wrapping_mul(p - q);
                terms.remove(i);
                terms.remove(j);
                return distance;
            }
        }
    }
    0
}

/// Adds a step that makes words of a map to the graph, if it is one of those that are followed.
pub(crate) fn map_words(builder: &mut Builder<'_>, (b, i): (u32, u32), inst: &Inst, m: &Mem, kind: MapStep) {
    if !builder.words.has((b, i)) {
        return;
    }
    let Addr::Sum(parts, off) = &m.addr else { return };
    let guard = inst.guard.map(|g| builder.pred_operand(&g, b, i));
    let step = given_guard(builder, inst, b, i, |builder| match kind {
        MapStep::Word => {
            let addr = sum64(builder, parts, *off, b, i);
            MapStepNode::Word { addr, word: builder.operand32(&inst.srcs[0], b, i), at: inst.at }
        }
        MapStep::Load => MapStepNode::Load { addr: near_address(builder, parts, *off, 0, b, i), words: Vec::new() },
        _ => {
            let addr = near_address(builder, parts, *off, 0, b, i);
            let words = inst.srcs.iter().map(|s| builder.operand32(s, b, i)).collect();
            let pair = |builder: &mut Builder<'_>, c: &[SrcOperand]| {
                let [low, high] = [&c[0], &c[1]].map(|s| builder.ssa.source(s.src, b, i));
                let is_plain = c.iter().all(|s| s.prefix == Prefix::None);
                if is_plain { builder.node64(low, high) } else { builder.opaque(Reason::Pairing, Width::W64, b) }
            };
            let pairs = inst.srcs.chunks_exact(2).map(|c| pair(builder, c)).collect();
            MapStepNode::Store { addr, words, pairs, bytes: m.bytes }
        }
    });
    builder.g.map_words.push(MapWords { block: BlockId(b), inst: i, guard, step });
}

/// Gives the loads among these steps their values, which are made as they are asked for.
pub(crate) fn loaded_words(builder: &mut Builder<'_>) {
    for (at, part, n) in builder.words.take_loaded() {
        let found = builder.g.map_words.iter().position(|s| (s.block.0, s.inst) == at);
        let Some(k) = found else { continue };
        if let MapStepNode::Load { words, .. } = &mut builder.g.map_words[k].step {
            words.push((n, part));
            builder.g.map_loads.insert(n);
        }
    }
}
