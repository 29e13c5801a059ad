//! Predicates as nodes: comparisons of words and of pairs of words, logic, and guarded definitions.
//!
//! Owns how predicate nodes are made. What they mean in a launch is decided by
//! `eval/conditions.rs`.

use super::build::Builder;
use super::node::{Kind, NodeId, Target, WarpDecision, Width};
use super::provenance::origins;
use super::ssa::{Def, END};
use crate::ir::{Class, Cmp, Combine, Op, Prefix, Reason, Src, SrcOperand, Var, Window};
use crate::ranges::graph::guards::settled;
use crate::ranges::graph::memory_accesses::sum64;
use crate::ranges::graph::operations::{body, note};

/// Predicate of a definition.
pub(crate) fn pred(builder: &mut Builder<'_>, d: Def) -> NodeId {
    let d = builder.ssa.strip(d);
    if let Some((p, not)) = builder.given
        && p == d
        && !matches!(d, Def::Leaf(_) | Def::Undef { .. })
    {
        return builder.konst(u64::from(!not), Width::Pred);
    }
    if let Some(n) = builder.memo.pred.get(&d) {
        return *n;
    }
    if let Some(n) = builder.across_iterations(d, |builder| pred(builder, d)) {
        return n;
    }
    let n = builder.deeper(Width::Pred, |builder| pred_new(builder, d));
    builder.memo.pred.insert(d, n);
    n
}

pub(crate) fn pred_new(builder: &mut Builder<'_>, d: Def) -> NodeId {
    match d {
        Def::Undef { why, b, .. } => builder.undefined(d, why, Width::Pred, b),
        Def::Leaf(Src::Imm(v)) => builder.konst(u64::from(v != 0), Width::Pred),
        Def::Leaf(_) => builder.opaque(Reason::Instruction, Width::Pred, 0),
        Def::Phi { var, b } => builder.phi(d, b, Width::Pred, |builder, p| {
            let x = builder.ssa.read(var, p, END);
            pred(builder, x)
        }),
        Def::Inst { .. } => {
            if let Some(n) = settled(builder, d, Width::Pred, pred) {
                return n;
            }
            let n = pred_body(builder, d);
            note(builder, d, n);
            n
        }
    }
}

pub(crate) fn pred_body(builder: &mut Builder<'_>, d: Def) -> NodeId {
    let Def::Inst { b, i, part, .. } = d else { return builder.opaque(Reason::Instruction, Width::Pred, 0) };
    let Some(inst) = builder.ssa.inst(d) else { return builder.opaque(Reason::Instruction, Width::Pred, b) };
    let s = &inst.srcs;
    match inst.op {
        Op::Mov => builder.pred_operand(&s[part as usize], b, i),
        Op::Cmp { cmp, signed, wide, combine } => {
            let w = if wide { Width::W64 } else { Width::W32 };
            let x = builder.operand_w(&s[0], w, b, i);
            let y = builder.operand_w(&s[1], w, b, i);
            compared(builder, cmp, signed, x, y, combine, &s[2], part, b, i)
        }
        Op::FloatCmp { cmp, wide, flush, combine } => {
            let w = if wide { Width::W64 } else { Width::W32 };
            let x = builder.operand_w(&s[0], w, b, i);
            let y = builder.operand_w(&s[1], w, b, i);
            let c = builder.add(Kind::FloatCmp(cmp, flush, x, y), Width::Pred, b);
            combined(builder, c, combine, &s[2], part, b, i)
        }
        Op::CmpX { cmp, signed, combine } => match wide_compare(builder, cmp, &s[0], &s[1], &s[3], b, i) {
            Some((x, y)) => compared(builder, cmp, signed, x, y, combine, &s[2], part, b, i),
            None => builder.opaque(Reason::Pairing, Width::Pred, b),
        },
        Op::PLut { lut0, lut1 } => {
            let a = [0, 1, 2].map(|k| match s.get(k) {
                Some(o) => builder.pred_operand(o, b, i),
                None => builder.konst(0, Width::Pred),
            });
            builder.add(Kind::PLut(if part == 0 { lut0 } else { lut1 }, a), Width::Pred, b)
        }
        Op::Lop3 { .. } if part == 1 => {
            let lo = Def::Inst { b, i, part: 0, raw: true };
            let w = if inst.dsts[0] != Var::NONE && builder.ssa.f.class(inst.dsts[0]) == Class::W64 {
                Width::W64
            } else {
                Width::W32
            };
            let n = body(builder, lo, w);
            builder.add(Kind::NonZero(n), Width::Pred, b)
        }
        Op::Sel => {
            let p = builder.pred_operand(&s[2], b, i);
            let x = builder.pred_operand(&s[0], b, i);
            let y = builder.pred_operand(&s[1], b, i);
            builder.add(Kind::Sel(p, x, y), Width::Pred, b)
        }
        Op::LiesIn { window, off } => {
            let s = s.clone();
            let address = sum64(builder, &s, off, b, i);
            lies_in(builder, window, address, b)
        }
        // No form: who is elected, and what others answer, is asked when threads are followed.
        Op::Elect => warp_decision(builder, WarpDecision::Elects, b),
        Op::Vote { all } => {
            let p = builder.pred_operand(&s[0], b, i);
            warp_decision(builder, WarpDecision::Votes { all, p }, b)
        }
        Op::Unknown(r) => builder.opaque(r, Width::Pred, b),
        Op::Mem(_) => builder.opaque(Reason::Loaded, Width::Pred, b),
        _ => builder.opaque(Reason::Instruction, Width::Pred, b),
    }
}

fn warp_decision(builder: &mut Builder<'_>, decision: WarpDecision, b: u32) -> NodeId {
    let n = builder.opaque(Reason::CrossLane, Width::Pred, b);
    builder.g.decisions.insert(n, decision);
    n
}

/// What is passed to a kernel and the address of a variable point into global memory: nobody
/// else has an address in the shared or local memory of the thread that asks. (Compilers ask
/// because atomics on 64 bits, and libcu++ because those on local variables, need another way
/// there.)
fn lies_in(builder: &mut Builder<'_>, window: Window, address: NodeId, b: u32) -> NodeId {
    let from = origins(&builder.g, &builder.ssa.f.params, &Target::Address(address));
    if from.has_base() && from.unknown.is_none() && !from.window {
        builder.konst(u64::from(window == Window::Neither), Width::Pred)
    } else {
        builder.opaque(Reason::Window, Width::Pred, b)
    }
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn compared(
    builder: &mut Builder<'_>,
    cmp: Cmp,
    signed: bool,
    x: NodeId,
    y: NodeId,
    how: Combine,
    with: &SrcOperand,
    part: u8,
    b: u32,
    i: u32,
) -> NodeId {
    let c = builder.add(Kind::Cmp(cmp, signed, x, y), Width::Pred, b);
    combined(builder, c, how, with, part, b, i)
}

/// A comparison (or, as second result, its opposite) combined with another predicate.
fn combined(
    builder: &mut Builder<'_>,
    mut c: NodeId,
    how: Combine,
    with: &SrcOperand,
    part: u8,
    b: u32,
    i: u32,
) -> NodeId {
    if part == 1 {
        c = builder.not(c, b);
    }
    let p = builder.pred_operand(with, b, i);
    match (how, builder.const_of(p)) {
        (Combine::And, Some(1)) | (Combine::Or | Combine::Xor, Some(0)) => c,
        (Combine::And, Some(_)) => builder.konst(0, Width::Pred),
        (Combine::Or, Some(_)) => builder.konst(1, Width::Pred),
        (Combine::Xor, Some(_)) => builder.not(c, b),
        (_, None) => builder.add(Kind::Combine(how, c, p), Width::Pred, b),
    }
}

/// Operands of a 64-bit comparison whose low words were compared by the instruction that
/// defined `low`.
pub(crate) fn wide_compare(
    builder: &mut Builder<'_>,
    high: Cmp,
    x: &SrcOperand,
    y: &SrcOperand,
    low: &SrcOperand,
    b: u32,
    i: u32,
) -> Option<(NodeId, NodeId)> {
    if low.prefix != Prefix::None {
        return None;
    }
    let d = builder.ssa.source(low.src, b, i);
    let Def::Inst { b: lb, i: li, part: 0, .. } = d else { return None };
    if builder.ssa.guard(d).is_some() {
        return None;
    }
    let inst = builder.ssa.inst(d)?;
    let Op::Cmp { cmp, signed: false, wide: false, combine: Combine::And } = inst.op else { return None };
    if !inst.srcs.get(2).is_none_or(|with| with.src == Src::Imm(1) && with.prefix == Prefix::None) {
        return None;
    }
    // `y <= x` of the low words may stand below `x >= y` of the high ones: the compiler swaps
    // as it likes.
    let swapped = match () {
        () if cmp == high => false,
        () if cmp == high.mirrored() => true,
        () => return None,
    };
    let mut out = [NodeId(0); 2];
    for (k, hi) in [x, y].into_iter().enumerate() {
        let lo = inst.srcs[if swapped { 1 - k } else { k }];
        if lo.prefix != Prefix::None || hi.prefix != Prefix::None {
            return None;
        }
        let l = builder.ssa.source(lo.src, lb, li);
        let h = builder.ssa.source(hi.src, b, i);
        out[k] = builder.node64(l, h);
    }
    Some((out[0], out[1]))
}
