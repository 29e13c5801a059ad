//! How often a loop runs: constraints on the number of its completed iterations.
//!
//! Owns the counter `k` of a loop and its bounds, and the reason that is given when it has none.
//!
//! Every condition `F(k) <= 0` on the way to the back edge held one iteration earlier, so `F(k-1)
//! <= 0` for `k >= 1`. `F(k-1) <= max(0, bound of F(-1))` holds for all `k >= 0` without a case
//! split. Meanwhile the forms are taken for numbers without proof. What was assumed is verified
//! afterwards with the bound that was found; if that fails, `k` stays unbounded.
//!
//! # Numbers that are shifted away
//!
//! Loops that shift a number to the right until nothing is left of it (`while (x) x >>= 2`), and
//! trees of reductions (`for (s = n / 2; s > 0; s >>= 1)`).
//!
//! Owns the bound of their iterations, read off the value graph: such a number has no affine form.
//!
//! Each way back to the header moves the number by at least `step` bits, so after `j` completed
//! iterations it is at most the first one shifted by `j * step`. A test that every iteration passes
//! wants the number, shifted by `by` more, to be at least `least`, which has `b` bits. It needs
//! `j * step + by <= n - b`, where `n` are the bits of the first number. The counter of completed
//! iterations is one ahead of the last iteration that passed. Signed shifts count where the test is
//! a signed comparison with a positive number: a negative number fails it at once.

use crate::ir::{BlockId, Cmp, Combine, Reason};
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::AtomKind;
use crate::ranges::domain::condition::{Cond, Fact};
use crate::ranges::domain::constraints::{ConstraintRef, ConstraintSet};
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::eval::conditions::{Branch, edge_condition, implied_facts};
use crate::ranges::eval::no_wrap::interp;
use crate::ranges::eval::recurrences::{Arms, before_the_loop, support_of, varying};
use crate::ranges::eval::state::loop_table::LoopState;
use crate::ranges::graph::node::{Graph, Kind, NodeId, Width};
use crate::ranges::graph::provenance::data_in;

pub(crate) fn iteration_counter(eval: &mut Eval<'_>, l: u32) -> AtomId {
    if let Some(k) = eval.loops.counters[l as usize] {
        return k;
    }
    let home = eval.cfg.loops[l as usize].header;
    let k = eval.atoms.new_atom(0, INF, None, home);
    eval.atoms[k].kind = AtomKind::Iteration(l);
    eval.loops.counters[l as usize] = Some(k);
    k
}

/// Finds the constraints on a loop's iteration counter.
pub(crate) fn solve_trip_count(eval: &mut Eval<'_>, l: u32) {
    if eval.loops.states[l as usize] != LoopState::New {
        return;
    }
    // Outermost first.
    let header = eval.cfg.loops[l as usize].header;
    let mut outer: Vec<u32> = (0..eval.cfg.loops.len() as u32)
        .filter(|o| *o != l && eval.cfg.loops[*o as usize].members[header.0 as usize])
        .collect();
    outer.sort_by_key(|o| std::cmp::Reverse(eval.cfg.loops[*o as usize].size));
    for o in outer {
        solve_trip_count(eval, o);
    }
    if eval.loops.states[l as usize] != LoopState::New {
        return;
    }
    let before = eval.loops.states.clone();
    eval.loops.states[l as usize] = LoopState::Solving;
    let k = iteration_counter(eval, l);
    // A world of its own: unproved numbers, a fresh memo.
    let outer_scope = eval.scope.enter();
    let assumed = eval.assumed.replace(Vec::new());
    let log = eval.atoms.key_log.replace(Vec::new());
    let (mut keep, never, exact) = back_conditions(eval, l, k);
    if let Some(most) = most_iterations(eval, l) {
        let bound = eval.atoms.con(AffineForm::atom(k).plus(-most));
        keep.push(bound);
    }
    let mine = std::mem::replace(&mut eval.assumed, assumed).unwrap_or_default();
    let keys = std::mem::replace(&mut eval.atoms.key_log, log).unwrap_or_default();
    eval.scope.forget_all();
    let pre = eval.ctx(header);
    eval.atoms.change(k, |a| a.cons = keep.clone());
    let hi = if never { Int::new(0) } else { eval.atoms.bounds_in(&AffineForm::atom(k), &pre, false).1 };
    let mut ok = true;
    if hi < INF {
        eval.atoms.change(k, |a| a.hi = hi);
        for (f, tlo, thi) in &mine {
            ok &= proved(eval, f, *tlo, *thi, &pre);
        }
    }
    if !ok {
        eval.atoms.change(k, |a| {
            a.cons = Vec::new();
            a.hi = INF;
        });
    }
    // Atoms made meanwhile are too wide or rest on assumptions: forgotten, unless the
    // constraints name them.
    let mut used: Vec<AtomId> = Vec::new();
    if ok {
        for c in &keep {
            for t in &c.terms {
                used.extend(support_of(&eval.atoms, t.0));
            }
        }
    }
    for key in keys {
        if let Some(a) = eval.atoms.keys.get(&key)
            && !used.contains(a)
        {
            eval.atoms.keys.remove(&key);
        }
    }
    eval.scope.leave(outer_scope);
    // Inner loops saw this one unbounded: they are solved again.
    count_again(eval, &before, Some(l));
    eval.loops.exact_trip[l as usize] = ok && (never || (hi < INF && exact));
    eval.loops.states[l as usize] = LoopState::Done;
}

/// Forgets the trips that were counted since then, but for those of one loop.
pub(crate) fn count_again(eval: &mut Eval<'_>, before: &[LoopState], except: Option<u32>) {
    for (o, s) in before.iter().enumerate() {
        if Some(o as u32) != except && *s == LoopState::New && eval.loops.states[o] != LoopState::New {
            eval.loops.states[o] = LoopState::New;
            if let Some(k) = eval.loops.counters[o] {
                eval.atoms.change(k, |a| {
                    a.hi = INF;
                    a.cons.clear();
                });
            }
        }
    }
}

/// Is a form within its type's range, for all iterations?
fn proved(eval: &mut Eval<'_>, f: &AffineForm, tlo: Int, thi: Int, pre: &ConstraintSet) -> bool {
    let (lo, hi) = eval.atoms.bounds_in(f, pre, false);
    tlo <= lo && hi <= thi
}

/// Constraints on `k` from the conditions under which the back edges are taken; first flag:
/// never; second flag: a back edge is taken exactly when they hold.
fn back_conditions(eval: &mut Eval<'_>, l: u32, k: AtomId) -> (Vec<ConstraintRef>, bool, bool) {
    let lp = &eval.cfg.loops[l as usize];
    let header = lp.header;
    let latches = lp.latches.clone();
    let pre = eval.ctx(header);
    let mut per: Vec<Vec<AffineForm>> = Vec::new();
    let mut exact = latches.len() == 1;
    // Blocks whose decision to stay in the loop is among the conditions.
    let mut deciding: Vec<BlockId> = Vec::new();
    let out = ways_out(eval, l);
    let one_way_out = exact && out.len() == 1;
    for p in latches {
        deciding.push(p);
        let mut conds = vec![edge_condition(eval, p, header)];
        let mut x = p;
        while x != header {
            let d = eval.cfg.idom[x.0 as usize];
            if eval.cfg.loop_of_header[x.0 as usize].is_none() && eval.cfg.preds[x.0 as usize][..] == [d] {
                conds.push(edge_condition(eval, d, x));
                deciding.push(d);
            }
            x = d;
        }
        if conds.contains(&Cond::False) {
            continue;
        }
        let mut got: Vec<AffineForm> = Vec::new();
        let mut facts = Vec::new();
        for c in &conds {
            implied_facts(eval, c, &mut facts);
            exact &= captured(c);
        }
        let is_only = one_way_out && facts.len() == 1 && conds.iter().all(captured);
        for f in facts {
            let (found, same) = each_iteration(eval, (&f, is_only), k, l, &pre);
            exact &= same;
            for g in found {
                if !got.contains(&g) {
                    got.push(g);
                }
            }
        }
        per.push(got);
    }
    let Some(first) = per.first() else { return (vec![eval.atoms.con(AffineForm::atom(k))], true, true) };
    // A way out that the conditions do not know ends the loop, too.
    exact &= out.iter().all(|b| deciding.contains(b) && eval.branches[b.0 as usize].is_some());
    let keep =
        first.iter().filter(|g| per[1..].iter().all(|o| o.contains(g))).map(|g| eval.atoms.con(g.clone())).collect();
    (keep, false, exact)
}

/// The blocks from which threads leave a loop, or in which they end: one for each such edge.
fn ways_out(eval: &Eval<'_>, l: u32) -> Vec<BlockId> {
    let members = &eval.cfg.loops[l as usize].members;
    let mut found = Vec::new();
    for b in (0..members.len()).filter(|b| members[*b]) {
        let leaving = eval.cfg.succs[b].iter().filter(|s| !members[s.0 as usize]).count();
        let ends = match eval.branches[b] {
            Some(branch) => branch.taken.is_none() || branch.fall.is_none(),
            None => eval.cfg.succs[b].is_empty(),
        };
        found.extend(std::iter::repeat_n(BlockId(b as u32), leaving + usize::from(ends)));
    }
    found
}

/// The constraints for every k >= 0 that follow from a fact that held at iteration k-1 (for
/// k >= 1), and whether they say exactly as much as the fact. With the fact: whether the loop goes
/// on as long as it holds, and no longer.
pub(crate) fn each_iteration(
    eval: &mut Eval<'_>,
    (f, is_only): (&Fact, bool),
    k: AtomId,
    l: u32,
    pre: &ConstraintSet,
) -> (Vec<AffineForm>, bool) {
    let (f, ne) = match f {
        Fact::Le(c) => ((**c).clone(), false),
        Fact::Ne(f) => (f.clone(), true),
    };
    let none = (Vec::new(), false);
    let ck = f.coef(k);
    if ck == 0 {
        return none;
    }
    let mut weakened = false;
    let mut rest = AffineForm::konst(f.c);
    for (x, c) in &f.terms {
        if *x == k {
            continue;
        }
        if !varying(eval, *x, l) {
            rest = rest.add(&AffineForm::atom(*x), *c);
            continue;
        }
        let a = &eval.atoms[*x];
        let weakest = if *c > 0 { a.lo } else { a.hi };
        if ne || a.opaque.is_some() || weakest.is_infinite() {
            return none;
        }
        weakened = true;
        rest = rest.plus(c.wrapping_mul(weakest));
    }
    let whole = rest.add(&AffineForm::atom(k), ck);
    if ne {
        // A step that divides the distance cannot jump over zero. A loop that would is assumed to
        // end, and so is one that goes away from zero, if nothing else ends it.
        let (lo, hi) = eval.atoms.bounds_in(&rest, pre, false);
        let divides = rest.terms.iter().all(|t| t.1.divides(ck)) && rest.c.divides(ck);
        let (is_towards, bound) = if ck < 0 { (lo >= 0, whole.scale(-1)) } else { (hi <= 0, whole) };
        return match (is_towards, divides) {
            (true, true) => (vec![bound], true),
            (true, false) | (false, true) if is_only => (vec![bound], false),
            _ => none,
        };
    }
    // Does not hold in the first iteration: the back edge is never taken.
    if eval.atoms.bounds_in(&rest, pre, false).0 > 0 {
        return (vec![AffineForm::atom(k)], true);
    }
    let earlier = whole.plus(-ck);
    let first = eval.atoms.bounds_in(&rest.plus(-ck), pre, false).1;
    if first <= 0 {
        (vec![earlier], !weakened && ck > 0)
    } else if first < INF {
        (vec![earlier.plus(-first)], false)
    } else {
        none
    }
}

/// The reason why a form has no bounds. `known`: what its parts say. A loop that ends when a loaded
/// value says so is not a loop that the analysis failed at.
pub(crate) fn reason_behind(eval: &Eval<'_>, f: &AffineForm, known: Reason) -> Reason {
    if known != Reason::Loop {
        return known;
    }
    let unbounded = |x| {
        let atom = &eval.atoms[x];
        match atom.kind {
            AtomKind::Iteration(l) if atom.hi >= INF => data_ends(eval, l),
            _ => None,
        }
    };
    let mut atoms = f.terms.iter().flat_map(|t| support_of(&eval.atoms, t.0));
    atoms.find_map(unbounded).unwrap_or(known)
}

/// The data that decide how often a loop runs. `None`: some of its ends are decided by
/// something else.
fn data_ends(eval: &Eval<'_>, l: u32) -> Option<Reason> {
    let members = &eval.cfg.loops[l as usize].members;
    let leaves = |at: &usize| members[*at] && eval.cfg.succs[*at].iter().any(|to| !members[to.0 as usize]);
    let mut found = None;
    for at in (0..members.len()).filter(leaves) {
        let reason = data_in(eval.g, &[eval.g.conds[at]?], None)?;
        found = found.or(Some(reason));
    }
    found
}

/// Is the whole of a back edge's condition in its facts?
fn captured(c: &Cond) -> bool {
    match c {
        Cond::True | Cond::Le(_) | Cond::Ne(_) => true,
        Cond::And(v) => v.iter().all(captured),
        _ => false,
    }
}

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
