//! Which progressions cover the values of a form, and whether they are exactly those values.
//!
//! Owns the claim that a byte set is exact: that the set of addresses is the image of the threads
//! that execute the access. The claim is made only under four conditions. The form splits into
//! groups of atoms that are independent of each other. Each group is dense: its values form one
//! progression without gaps. Every guard on the way is a bound on the value of exactly one group.
//! Every guard on the way is known.

use crate::ir::BlockId;
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::AtomKind;
use crate::ranges::domain::byte_set::Dims;
use crate::ranges::domain::condition::Cond;
use crate::ranges::domain::constraints::{ConstraintRef, ConstraintSet};
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::eval::conditions::{edge_condition, implied_constraints};
use crate::ranges::eval::no_wrap::concrete;
use crate::ranges::eval::state::atoms::Atoms;
use crate::ranges::extent::coalesce::merge;
use smallvec::SmallVec;
use std::cell::OnceCell;

/// Blocks that are looked at between one block and another.
const MAX_BLOCKS: usize = 256;

/// Terms that constraints tie together.
type Group = SmallVec<[(AtomId, Int); 4]>;
type Groups = SmallVec<[Group; 2]>;

/// Is the whole of a condition captured by constraints?
pub(crate) fn fully(eval: &Eval<'_>, c: &Cond) -> bool {
    match c {
        Cond::True | Cond::Le(_) | Cond::Eq(_) => true,
        // At the end of a range it is an inequality (see `conj`).
        Cond::Ne(f) => {
            let (lo, hi) = eval.atoms.bounds_in(f, &eval.none, false);
            lo == 0 || hi == 0
        }
        Cond::And(v) => v.iter().all(|c| fully(eval, c)),
        _ => false,
    }
}

/// Are all decisions between the entry and block `b` captured by its constraints?
pub(crate) fn path_complete(eval: &mut Eval<'_>, b: BlockId) -> bool {
    if eval.paths.contains(&b) {
        return true;
    }
    // A loop on the way may not have been looked at yet.
    let c = captured_way(eval, b);
    if c {
        eval.paths.insert(b);
    }
    c
}

fn captured_way(eval: &mut Eval<'_>, b: BlockId) -> bool {
    if eval.cfg.irreducible {
        return false;
    }
    let ctx = eval.ctx(b);
    let mut x = b;
    while x.0 != 0 {
        let d = eval.cfg.idom[x.0 as usize];
        if eval.cfg.post_dominates(x, d) {
            // ReachedBytes whatever is decided in between (loops end).
        } else if eval.cfg.outer_preds(x)[..] == [d] {
            let c = edge_condition(eval, d, x);
            if !fully(eval, &c) || (eval.cfg.succs[d.0 as usize].len() > 1 && eval.branches[d.0 as usize].is_none()) {
                return false;
            }
            // A test that the block's constraints lack would let threads through that fail it.
            let facts = implied_constraints(eval, &c);
            if facts.iter().any(|f| !ctx.iter().any(|have| have.id == f.id) && eval.atoms.boxed(f, false).1 > 0) {
                return false;
            }
        } else if !always_reached(eval, d, x) {
            return false;
        }
        x = d;
    }
    // Inside a loop the threads that reach iteration k are those that passed every condition
    // before: only loops whose conditions are captured in full.
    (0..eval.cfg.loops.len()).all(|l| !eval.cfg.loops[l].members[b.0 as usize] || eval.loops.exact_trip[l])
}

/// Do all ways lead from a block to one that it dominates, when those are left out that no thread
/// of the launch takes? (Loops end. A switch over a type that is a parameter has one way, and not
/// the one to an assertion.)
fn always_reached(eval: &mut Eval<'_>, from: BlockId, to: BlockId) -> bool {
    let (mut seen, mut work) = (vec![from], vec![from]);
    while let Some(b) = work.pop() {
        if seen.len() > MAX_BLOCKS {
            return false;
        }
        for next in taken_ways(eval, b) {
            match next {
                Some(s) if s == to => {}
                // What `from` does not dominate lies behind another turn of a loop around both.
                Some(s) if s != from && eval.cfg.dominates(from, s) => {
                    if !seen.contains(&s) {
                        seen.push(s);
                        work.push(s);
                    }
                }
                _ => return false,
            }
        }
    }
    true
}

/// Where threads of the launch may go from a block; `None`: they end there.
fn taken_ways(eval: &mut Eval<'_>, b: BlockId) -> SmallVec<[Option<BlockId>; 2]> {
    let Some(branch) = eval.branches[b.0 as usize].filter(|branch| branch.taken != branch.fall) else {
        let next = &eval.cfg.succs[b.0 as usize];
        return if next.is_empty() { SmallVec::from_slice(&[None]) } else { next.iter().map(|s| Some(*s)).collect() };
    };
    match eval.ev_pred(branch.cond).known() {
        Some(true) => SmallVec::from_slice(&[branch.taken]),
        Some(false) => SmallVec::from_slice(&[branch.fall]),
        None => SmallVec::from_slice(&[branch.taken, branch.fall]),
    }
}

/// Progressions that cover the form's values, which lie between these ends, and whether they
/// are exactly those values.
pub(crate) fn shape(
    eval: &Eval<'_>,
    f: &AffineForm,
    cons: &ConstraintSet,
    ends: (Int, Int),
    complete: bool,
) -> (Dims, bool) {
    let (dims, exact) = grouped(eval, f, cons, ends, complete);
    // A better cover is no reason to have none for what comes later.
    if exact || f.terms.len() < 2 || eval.atoms.budget.half_spent() {
        return (dims, exact);
    }
    match layered(&eval.atoms, f, cons, ends) {
        Some(layers) if count(&layers) < count(&dims) => (layers, false),
        _ => (dims, false),
    }
}

/// The same from terms taken together as far as their sums overlap, by size: rows, columns,
/// tiles. Each sum lies within bounds of its own, whatever ties them together. `None`: they do
/// not end where all of them do.
fn layered(atoms: &Atoms, f: &AffineForm, cons: &ConstraintSet, ends: (Int, Int)) -> Option<Dims> {
    let mut terms: Group = f.terms.iter().copied().collect();
    terms.sort_by_key(|t| t.1.abs());
    let (mut from, mut to, mut dims) = (f.c, f.c, Dims::new());
    let mut part = AffineForm::default();
    for (k, t) in terms.iter().enumerate() {
        part = part.add(&AffineForm::atom(t.0), t.1);
        let (l, h) = atoms.bounds_in(&part, cons, true);
        if l <= -INF || h >= INF || l > h {
            return None;
        }
        if terms.get(k + 1).is_none_or(|next| h - l < next.1.abs()) {
            (from, to) = (from + l, to + h);
            if h > l {
                let step = part.gcd();
                dims.push((step, (h - l).div_euclid(step) + 1));
            }
            part = AffineForm::default();
        }
    }
    let dims = merge(dims);
    (dims.len() <= 3 && (from, to) == ends).then_some(dims)
}

/// Progressions of terms that are independent of each other.
fn grouped(
    eval: &Eval<'_>,
    f: &AffineForm,
    cons: &ConstraintSet,
    (lo, hi): (Int, Int),
    complete: bool,
) -> (Dims, bool) {
    let terms: SmallVec<[(AtomId, Int); 6]> = f.terms.iter().copied().collect();
    let whole = gcd_of(&terms);
    let flat = |step: Int| -> Dims {
        let mut v = SmallVec::new();
        if hi > lo && step > 0 {
            v.push((step, (hi - lo).div_euclid(step) + 1));
        }
        v
    };
    if terms.is_empty() {
        let exact = complete && cons.is_empty();
        return (SmallVec::new(), exact);
    }
    let groups = groups(&eval.atoms, &terms, cons);
    let mut dims = Dims::new();
    let (mut slo, mut shi) = (f.c, f.c);
    let mut exact = complete;
    // Looked at only while the set may be exact.
    let all = OnceCell::new();
    let all = || &all.get_or_init(|| all_constraints(&eval.atoms, &groups, cons))[..];
    for g in &groups {
        let part = AffineForm { terms: g.iter().copied().collect(), c: Int::new(0) };
        let (l, h) = eval.atoms.bounds_in(&part, cons, true);
        if l <= -INF || h >= INF {
            return (flat(whole), false);
        }
        if l > h {
            return (flat(whole), false);
        }
        slo += l;
        shi += h;
        let step = gcd_of(g);
        if h > l {
            dims.push((step, (h - l).div_euclid(step) + 1));
        }
        exact = exact && dense(eval, g, step) && reached(&eval.atoms, g, all(), (l, h), step);
    }
    if (slo, shi) != (lo, hi) {
        return (flat(whole), false);
    }
    exact = exact && guards_within(&eval.atoms, &groups, all());
    let dims = merge(dims);
    if dims.len() > 3 {
        return (flat(whole), false);
    }
    (dims, exact)
}

/// Splits the terms of a form into sets that no constraint ties together.
fn groups(atoms: &Atoms, terms: &[(AtomId, Int)], cons: &[ConstraintRef]) -> Groups {
    let n = terms.len();
    let mut set: SmallVec<[usize; 8]> = (0..n).collect();
    let tie = |c: &AffineForm, set: &mut SmallVec<[usize; 8]>| {
        let mut first = None;
        for (k, t) in terms.iter().enumerate() {
            if c.has(t.0) {
                match first {
                    None => first = Some(set[k]),
                    Some(s) => {
                        let old = set[k];
                        set.iter_mut().filter(|x| **x == old).for_each(|x| *x = s);
                    }
                }
            }
        }
    };
    for c in cons {
        tie(c, &mut set);
    }
    for t in terms {
        for c in &atoms[t.0].cons {
            tie(c, &mut set);
        }
    }
    let mut out: Groups = SmallVec::new();
    let mut seen: SmallVec<[usize; 8]> = SmallVec::new();
    for k in 0..n {
        match seen.iter().position(|s| *s == set[k]) {
            Some(p) => out[p].push(terms[k]),
            None => {
                seen.push(set[k]);
                out.push(SmallVec::from_slice(&[terms[k]]));
            }
        }
    }
    out
}

/// Do the values of a group form a progression without gaps? Its atoms must be indices or
/// counters whose ranges, ordered by coefficient, each reach to the next (mixed radix).
fn dense(eval: &Eval<'_>, g: &[(AtomId, Int)], step: Int) -> bool {
    let mut v: SmallVec<[(Int, Int); 4]> = SmallVec::new();
    for (x, c) in g {
        let a = &eval.atoms[*x];
        let free = match a.kind {
            AtomKind::Index => true,
            AtomKind::Iteration(l) => eval.loops.exact_trip[l as usize],
            _ => false,
        };
        // Mixed signs are no mixed radix.
        if !free || (*c > 0) != (g[0].1 > 0) {
            return false;
        }
        v.push((c.abs(), if is_counter(&eval.atoms, *x) { INF } else { a.hi - a.lo + 1 }));
    }
    v.sort_unstable();
    let mut reach = step;
    for (c, count) in &v {
        if !c.divides(step) || *c > reach {
            return false;
        }
        reach = if *count >= INF { INF } else { reach.add_hi(c.mul_sat(*count - 1)) };
    }
    true
}

fn is_counter(atoms: &Atoms, x: AtomId) -> bool {
    matches!(atoms[x].kind, AtomKind::Iteration(_))
}

/// The range of a dense group's sum when only its indices' boxes count (counters are unbounded
/// above).
fn free_range(atoms: &Atoms, g: &[(AtomId, Int)]) -> (Int, Int) {
    let (mut lo, mut hi) = (Int::new(0), Int::new(0));
    for (x, c) in g {
        let a = &atoms[*x];
        let top = if is_counter(atoms, *x) { INF } else { a.hi };
        let (p, q) = if *c > 0 { (c.mul_sat(a.lo), c.mul_sat(top)) } else { (c.mul_sat(top), c.mul_sat(a.lo)) };
        lo = -(-lo).add_hi(-p);
        hi = hi.add_hi(q);
    }
    (lo, hi)
}

/// Are the bounds of a dense group really reached: is each the end of its free range, or of a
/// constraint on this very sum?
fn reached(atoms: &Atoms, g: &Group, all: &[AffineForm], (l, h): (Int, Int), step: Int) -> bool {
    let (mut lo, mut hi) = free_range(atoms, g);
    // Values are congruent to any of the free ends modulo the step.
    let origin = if lo > -INF { lo } else { hi };
    for c in all {
        let Some((k0, c0)) = proportional(c, g) else { continue };
        // c = (k0/c0) * sum + c.c <= 0
        let bound = -c.c * c0;
        if (k0 > 0) == (c0 > 0) {
            let b = bound.floor_div(k0);
            hi = hi.min(b - (b - origin).rem_euclid(step));
        } else {
            let b = -(-bound).floor_div(k0);
            lo = lo.max(b + (origin - b).rem_euclid(step));
        }
    }
    (lo, hi) == (l, h)
}

/// Constraints of the guards and of the atoms, with numbers for parameters.
fn all_constraints(atoms: &Atoms, groups: &[Group], cons: &[ConstraintRef]) -> SmallVec<[AffineForm; 4]> {
    let own = groups.iter().flatten().flat_map(|t| &atoms[t.0].cons);
    cons.iter().chain(own).map(|c| concrete(atoms, c)).collect()
}

/// Is every constraint decided by the boxes, a bound on exactly one group's sum, implied by
/// such a bound, or about one index that the address does not contain?
fn guards_within(atoms: &Atoms, groups: &[Group], concrete: &[AffineForm]) -> bool {
    let on_group = |c: &AffineForm| groups.iter().any(|g| proportional(c, g).is_some());
    concrete.iter().all(|c| {
        if atoms.boxed(c, false).1 <= 0 || on_group(c) {
            return true;
        }
        if let [(x, _)] = c.terms[..]
            && atoms[x].kind == AtomKind::Index
            && !groups.iter().flatten().any(|t| t.0 == x)
            && concrete.iter().all(|o| !o.has(x) || o.terms.len() == 1)
        {
            // Another coordinate is restricted, by itself: are threads left?
            let (mut lo, mut hi) = (atoms[x].lo, atoms[x].hi);
            for o in concrete.iter().filter(|o| o.has(x)) {
                let k = o.coef(x);
                if k > 0 {
                    hi = hi.min((-o.c).floor_div(k));
                } else {
                    lo = lo.max(-(-o.c).floor_div(-k));
                }
            }
            return lo <= hi;
        }
        // Implied: c <= r*q for a bound q <= 0.
        concrete.iter().filter(|q| on_group(q)).any(|q| {
            c.terms.iter().any(|(x, cx)| {
                let qx = q.coef(*x);
                qx != 0
                    && (qx > 0) == (*cx > 0)
                    && c.combine(qx.abs(), q, -cx.abs()).is_some_and(|d| atoms.boxed(&d, false).1 <= 0)
            })
        })
    })
}

/// When a constraint is about a group's sum alone: its coefficient and the sum's, of one atom.
fn proportional(c: &AffineForm, g: &[(AtomId, Int)]) -> Option<(Int, Int)> {
    let (x0, c0) = *g.first()?;
    let k0 = c.coef(x0);
    let fits = c.terms.len() == g.len() && k0 != 0 && g.iter().all(|(x, cx)| c.coef(*x) * c0 == k0 * *cx);
    fits.then_some((k0, c0))
}

/// Elements of progressions.
fn count(dims: &Dims) -> Int {
    dims.iter().fold(Int::new(1), |n, d| n.mul_sat(d.1))
}

fn gcd_of(t: &[(AtomId, Int)]) -> Int {
    t.iter().fold(Int::new(0), |g, t| g.gcd(t.1))
}
