//! Loops that shift a number to the right until nothing is left of it (`while (x) x >>= 2`), and
//! trees of reductions (`for (s = n / 2; s > 0; s >>= 1)`).
//!
//! Owns the bound of their iterations, read off the value graph: such a number has no affine form.
//!
//! # Why the bound holds
//!
//! Each way back to the header moves the number by at least `step` bits, so after `j` completed
//! iterations it is at most the first one shifted by `j * step`. A test that every iteration passes
//! wants the number, shifted by `by` more, to be at least `least`, which has `b` bits. It needs
//! `j * step + by <= n - b`, where `n` are the bits of the first number. The counter of completed
//! iterations is one ahead of the last iteration that passed. Signed shifts count where the test is
//! a signed comparison with a positive number: a negative number fails it at once.

use crate::ir::{BlockId, Cmp, Combine};
use crate::ranges::domain::int::Int;
use crate::ranges::eval::Eval;
use crate::ranges::eval::conditions::Branch;
use crate::ranges::eval::no_wrap::interp;
use crate::ranges::eval::recurrences::{Arms, before_the_loop};
use crate::ranges::graph::node::{Graph, Kind, NodeId, Width};

/// A test that a number is large enough: which, at least what, and whether it is compared as a
/// signed one.
#[derive(Clone, Copy)]
struct Test {
    number: NodeId,
    least: u64,
    signed: bool,
}

/// A number that was shifted to the right.
#[derive(Clone, Copy)]
struct Shifted {
    from: NodeId,
    by: u64,
    signed: bool,
}

/// How often a loop runs at most, as its counter of completed iterations; `None`: it shifts no
/// number away.
pub(super) fn most_iterations(eval: &mut Eval<'_>, l: u32) -> Option<Int> {
    let lp = &eval.cfg.loops[l as usize];
    let (header, latches) = (lp.header, lp.latches.clone());
    // On each way back some test must bound it.
    let mut most: Option<u64> = None;
    for latch in latches {
        let bound = way_back(eval, header, latch)?;
        most = Some(most.map_or(bound, |most| most.max(bound)));
    }
    most.map(|most| Int::from(most.min(u64::from(u32::MAX)) as u32))
}

/// The best bound of the tests that are passed on the way to one back edge.
fn way_back(eval: &mut Eval<'_>, header: BlockId, latch: BlockId) -> Option<u64> {
    let mut edges = vec![(latch, header)];
    let mut x = latch;
    while x != header {
        let d = eval.cfg.idom[x.0 as usize];
        if eval.cfg.loop_of_header[x.0 as usize].is_none() && eval.cfg.preds[x.0 as usize][..] == [d] {
            edges.push((d, x));
        }
        x = d;
    }
    let mut best: Option<u64> = None;
    for (from, to) in edges {
        let Some(Branch { cond, taken, fall }) = eval.branches[from.0 as usize] else { continue };
        if taken == fall {
            continue;
        }
        let mut tests = Vec::new();
        passed(eval.g, cond, taken == Some(to), &mut tests);
        for test in tests {
            if let Some(bound) = bound_of(eval, header, test) {
                best = Some(best.map_or(bound, |best| best.min(bound)));
            }
        }
    }
    best
}

/// The tests of numbers that are passed where a predicate holds, or does not.
fn passed(g: &Graph, n: NodeId, holds: bool, tests: &mut Vec<Test>) {
    let constant = |n: NodeId| match g.node(n).kind {
        Kind::Const(c) if g.node(n).width == Width::W32 => Some(c & 0xffff_ffff),
        Kind::Const(c) => Some(c),
        _ => None,
    };
    match g.node(n).kind {
        Kind::Not(p) => passed(g, p, !holds, tests),
        Kind::Combine(Combine::And, p, q) if holds => [p, q].into_iter().for_each(|p| passed(g, p, true, tests)),
        Kind::Combine(Combine::Or, p, q) if !holds => [p, q].into_iter().for_each(|p| passed(g, p, false, tests)),
        Kind::NonZero(number) if holds => tests.push(Test { number, least: 1, signed: false }),
        Kind::Cmp(cmp, signed, x, y) => {
            let cmp = if holds { cmp } else { cmp.negated() };
            let (cmp, number, than) = match (constant(x), constant(y)) {
                (None, Some(than)) => (cmp, x, than),
                (Some(than), None) => (cmp.mirrored(), y, than),
                _ => return,
            };
            let bits = g.node(number).width.bits();
            let least = match cmp {
                Cmp::Ne if than == 0 => Some((1, false)),
                Cmp::Gt => than.checked_add(1).map(|least| (least, signed)),
                Cmp::Ge => Some((than, signed)),
                _ => None,
            };
            // A negative number is not among what counts.
            let positive = |least: u64, signed: bool| least > 0 && (!signed || least >> (bits - 1) == 0);
            if let Some((least, signed)) = least.filter(|(least, signed)| positive(*least, *signed)) {
                tests.push(Test { number, least, signed });
            }
        }
        _ => {}
    }
}

/// What a number is a shift of.
fn unshifted(g: &Graph, n: NodeId) -> Shifted {
    let mut found = Shifted { from: n, by: 0, signed: false };
    while let Kind::Shr(signed, x, by) = g.node(found.from).kind
        && let Kind::Const(by) = g.node(by).kind
        && by & 0xffff_ffff < 64
    {
        found = Shifted { from: x, by: found.by + (by & 0xffff_ffff), signed: found.signed | signed };
    }
    found
}

/// The counter's bound by one test.
fn bound_of(eval: &mut Eval<'_>, header: BlockId, test: Test) -> Option<u64> {
    let tested = unshifted(eval.g, test.number);
    let node = eval.g.node(tested.from);
    let (bits, Kind::LoopPhi(outer, back)) = (node.width.bits(), &node.kind) else { return None };
    if node.home != header || back.is_empty() {
        return None;
    }
    let (mut step, mut signed) = (u64::MAX, tested.signed);
    for (_, arm) in back {
        let moved = unshifted(eval.g, *arm);
        if moved.from != tested.from {
            return None;
        }
        step = step.min(moved.by);
        signed |= moved.signed;
    }
    if step == 0 || signed && !test.signed {
        return None;
    }
    let first = bits_of_first(eval, tested.from, outer, test.signed, bits, header);
    let needed = u64::from(u64::BITS - test.least.leading_zeros()) + tested.by;
    Some(first.checked_sub(needed).map_or(0, |room| room / step + 1))
}

/// How many bits the number has when the loop begins.
fn bits_of_first(eval: &mut Eval<'_>, n: NodeId, outer: &Arms, signed: bool, bits: u32, header: BlockId) -> u64 {
    let first = before_the_loop(eval, n, outer, header);
    let first = interp(eval, &first, bits, signed, header);
    let (lo, hi) = eval.bounds(&first, header);
    let fits = |b: &u32| lo >= 0 && hi < Int::pow2(*b);
    u64::from((0..bits).find(fits).unwrap_or(bits))
}
