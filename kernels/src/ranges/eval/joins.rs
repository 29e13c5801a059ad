//! Joins: one of several values, each with the constraints that hold when it is chosen.
//!
//! Owns joins that head no loop. Headers of loops are in `loops`, which uses [`join`]
//! for values that a loop overwrites.

use crate::ir::{BlockId, Reason};
use crate::ranges::domain::affine::AffineForm;
use crate::ranges::domain::atom::{AtomKey, AtomKind};
use crate::ranges::domain::condition::Cond;
use crate::ranges::domain::constraints::{ConstraintRef, ConstraintSet};
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::eval::conditions::{arm_facts, edge_condition};
use crate::ranges::eval::irreducible::{in_irreducible, irreducible_phi};
use crate::ranges::eval::recurrences::{Arms, support_of};
use crate::ranges::eval::trip_counts::reason_behind;
use crate::ranges::eval::value::alternatives;
use crate::ranges::graph::node::NodeId;
use smallvec::SmallVec;

/// One of several values, each with constraints that hold when it is chosen.
pub(crate) fn join(
    eval: &mut Eval<'_>,
    mut arms: Vec<(AffineForm, Vec<ConstraintRef>)>,
    n: NodeId,
    tag: u8,
    b: BlockId,
) -> AffineForm {
    let undefined =
        |e: &Eval<'_>, f: &AffineForm| f.terms.iter().any(|t| e.atoms[t.0].opaque == Some(Reason::Undefined));
    if arms.iter().any(|a| !undefined(eval, &a.0)) {
        arms.retain(|a| !undefined(eval, &a.0));
    }
    let bits = eval.g.node(n).width.bits();
    if arms.is_empty() {
        return eval.opaque(AtomKey::Node(n, 40), Reason::Undefined, bits, b);
    }
    if arms.iter().all(|a| a.0 == arms[0].0) {
        return arms.swap_remove(0).0;
    }
    let pointers = |e: &Eval<'_>, f: &AffineForm| -> AffineForm {
        AffineForm {
            terms: f
                .terms
                .iter()
                .filter(|t| {
                    let a = &e.atoms[t.0];
                    a.alts.is_some()
                        || matches!(
                            a.kind,
                            AtomKind::Param(_) | AtomKind::Symbol(_) | AtomKind::ParamAddress(_) | AtomKind::Local
                        )
                })
                .copied()
                .collect(),
            c: Int::new(0),
        }
    };
    let base_ptr = pointers(eval, &arms[0].0);
    if arms[1..].iter().any(|a| pointers(eval, &a.0) != base_ptr) {
        let mut forms: Vec<AffineForm> = Vec::new();
        for a in &arms {
            if !forms.contains(&a.0) {
                forms.push(a.0.clone());
            }
        }
        if forms.len() > 64 {
            return eval.opaque(AtomKey::Node(n, 41), Reason::Budget, bits, b);
        }
        return alternatives(eval, forms, AtomKey::Alts(n), None, b);
    }
    let base = base_of(eval, &arms, tag, b).unwrap_or_else(|| base_ptr.clone());
    let ctx = eval.ctx(b);
    let (mut lo, mut hi, mut step) = (INF, -INF, Int::new(0));
    let (mut vlo, mut vhi) = (INF, -INF);
    let mut why = None;
    for (f, c) in &arms {
        let cons = ctx.and(c);
        let d = f.add(&base, -1);
        let (dl, dh) = eval.atoms.bounds_in(&d, &cons, false);
        let (sl, sh) = eval.atoms.bounds_in(&d, &cons, true);
        if dl <= -INF || dh >= INF {
            why = why.or_else(|| Some(reason_behind(eval, &d, eval.atoms.why(&d).unwrap_or(Reason::Loop))));
        } else if sl <= -INF || sh >= INF {
            why = why.or_else(|| eval.atoms.why(&d));
        }
        lo = lo.min(dl);
        hi = hi.max(dh);
        step = step.gcd(d.gcd()).gcd(d.c);
        let v = f.add(&base_ptr, -1);
        // Opaque boxes must not become constraints.
        let z = eval.atoms.bounds_in(&v, &cons, true);
        vlo = vlo.min(z.0);
        vhi = vhi.max(z.1);
    }
    if lo > hi {
        // No arm seems possible: nothing is concluded from that.
        (lo, hi, vlo, vhi) = (-INF, INF, -INF, INF);
        why = why.or(Some(Reason::Loop));
    }
    let step = step.max(1);
    let key = AtomKey::Join(n, tag, std::iter::once(&base).chain(arms.iter().map(|a| &a.0)).cloned().collect());
    let rest = base.add(&base_ptr, -1);
    let t = eval.keyed(key, |eval| {
        let l = if lo <= -INF { -INF } else { lo.div_euclid(step) };
        let h = if hi >= INF { INF } else { hi.div_euclid(step) };
        let t = eval.atoms.new_atom(l, h, why, b);
        let v = rest.add(&AffineForm::atom(t), step);
        // An opaque difference may still leave the value itself bounded, as a join with known
        // ends.
        let deps = eval.atoms.depends(&[&rest]);
        let mut cons = Vec::new();
        if vhi < INF {
            cons.push(eval.atoms.con(v.plus(-vhi)));
        }
        if vlo > -INF {
            cons.push(eval.atoms.con(v.scale(-1).plus(vlo)));
        }
        let a = &mut eval.atoms[t];
        a.deps = deps;
        a.choice = true;
        a.cons = cons;
        t
    });
    base.add(&AffineForm::atom(t), step)
}

/// The arm to which the others are compared. Its atoms must mean something whichever arm is
/// taken: the count of a loop that this path did not run through has constraints that hold
/// nowhere on it. Of two arms, the one that the other is closer to where that one is chosen:
/// `i + 1 < n ? 8 * (i + 1) : m` is `8 * (i + 1)` and little less, but may be far from `m`.
fn base_of(eval: &mut Eval<'_>, arms: &[(AffineForm, Vec<ConstraintRef>)], tag: u8, b: BlockId) -> Option<AffineForm> {
    // What an earlier iteration left stands for no value of this one: only what came from
    // outside.
    let arms = if tag == 3 { &arms[..1] } else { arms };
    let mut fit = arms.iter().filter(|a| holds_at(eval, &a.0, b));
    let first = fit.next()?;
    let Some(second) = fit.next().filter(|_| arms.len() == 2) else { return Some(first.0.clone()) };
    if first.0.is_const() && second.0.is_const() {
        return Some(first.0.clone());
    }
    let ctx = eval.ctx(b);
    let d = second.0.add(&first.0, -1);
    let span = |cons: &[ConstraintRef]| {
        let (lo, hi) = eval.atoms.bounds_in(&d, &ctx.and(cons), false);
        if lo <= -INF || hi >= INF { INF } else { hi - lo }
    };
    Some(if span(&first.1) < span(&second.1) { second.0.clone() } else { first.0.clone() })
}

/// Were all atoms that a form rests on computed on every way to block `b`?
fn holds_at(eval: &Eval<'_>, f: &AffineForm, b: BlockId) -> bool {
    f.terms.iter().flat_map(|t| support_of(&eval.atoms, t.0)).all(|a| {
        let atom = &eval.atoms[a];
        !matches!(atom.kind, AtomKind::Iteration(_) | AtomKind::Plain) || eval.cfg.dominates(atom.home, b)
    })
}

/// Join at a block that heads no loop.
pub(crate) fn join_phi(eval: &mut Eval<'_>, n: NodeId, arms: &Arms, b: BlockId) -> AffineForm {
    if in_irreducible(eval.cfg, b) {
        return irreducible_phi(eval, n, b);
    }
    let r = arm_values(eval, arms, b);
    let mut out = Vec::new();
    for (f, c) in r {
        let c = ConstraintSet::new(c);
        let f = pinned(eval, &f, &c);
        out.push((f, c.to_vec()));
    }
    if out.len() == 1 { out.swap_remove(0).0 } else { join(eval, out, n, 1, b) }
}

/// Values and constraints of the live predecessors.
pub(crate) fn arm_values(eval: &mut Eval<'_>, arms: &Arms, b: BlockId) -> Vec<(AffineForm, Vec<ConstraintRef>)> {
    let mut live: Arms = SmallVec::new();
    if arms.len() > 1 {
        for (p, v) in arms {
            if eval.reachable(*p) && edge_condition(eval, *p, b) != Cond::False {
                live.push((*p, *v));
            }
        }
    }
    if live.is_empty() {
        live = arms.clone();
    }
    live.iter()
        .map(|(p, v)| {
            let f = eval.ev(*v);
            (f, arm_facts(eval, *p, b))
        })
        .collect()
}

/// Replaces iteration counters that the path fixes (leaving a loop of known length).
fn pinned(eval: &mut Eval<'_>, f: &AffineForm, cons: &ConstraintSet) -> AffineForm {
    let mut f = f.clone();
    for (x, c) in f.terms.clone() {
        if matches!(eval.atoms[x].kind, AtomKind::Iteration(_)) && eval.atoms[x].hi < INF {
            let (lo, hi) = eval.atoms.bounds_in(&AffineForm::atom(x), cons, false);
            if lo == hi {
                f = f.without(x).plus(c.wrapping_mul(lo));
            }
        }
    }
    f
}
