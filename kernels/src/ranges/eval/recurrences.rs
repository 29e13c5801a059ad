//! Recurrences of loops: the value at a loop header after a number of iterations, and what changes
//! from one iteration to the next.
//!
//! Owns the phis of loop headers. The counter `k` of a loop counts completed iterations
//! (`trip_counts` bounds it). A header phi is solved by putting a symbol in its place, evaluating
//! the value of the back edges, and looking for "symbol + c": then the phi is `init + c*k`. What
//! has no such shape stays within a range (`carried_ranges`), or is opaque.

use crate::ir::{BlockId, Reason};
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::{Atom, AtomKey, AtomKind};
use crate::ranges::domain::constraints::ConstraintSet;
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::eval::carried_ranges::{carried_range, half_of_carried, half_of_unsolved, rests_on_nothing};
use crate::ranges::eval::conditions::arm_facts;
use crate::ranges::eval::joins::{arm_values, join};
use crate::ranges::eval::state::atoms::Atoms;
use crate::ranges::eval::state::scope::CLEAN;
use crate::ranges::eval::trip_counts::{iteration_counter, solve_trip_count};
use crate::ranges::graph::node::NodeId;
use crate::ranges::graph::provenance::data_in;
use smallvec::SmallVec;

/// A value for each of several predecessors.
pub(crate) type Arms = SmallVec<[(BlockId, NodeId); 2]>;

/// How a header phi changes on one back edge.
enum Step {
    /// By a form whose bounds are known.
    Add(AffineForm, (Int, Int)),
    /// It is overwritten by something that does not depend on it.
    Copy(AffineForm),
    Other(Option<Reason>),
}

/// Value of a loop header's phi.
pub(crate) fn loop_phi(eval: &mut Eval<'_>, n: NodeId, outer: &Arms, back: &Arms, b: BlockId) -> AffineForm {
    let bits = eval.g.node(n).width.bits();
    if let Some(s) = eval.scope.symbol(n) {
        return AffineForm::atom(s);
    }
    let Some(l) = eval.cfg.loop_of_header[b.0 as usize] else {
        return eval.opaque(AtomKey::Node(n, 43), Reason::Irreducible, bits, b);
    };
    solve_trip_count(eval, l);
    // An enclosing loop's phi on the way is being solved by now, or will be: this ends there.
    let init = before_the_loop(eval, n, outer, b);
    let k = iteration_counter(eval, l);
    if eval.atoms[k].hi == 0 {
        return init;
    }
    let s = eval.atoms.new_atom(-INF, INF, None, b);
    eval.atoms[s].kind = AtomKind::Unsolved;
    let mark = eval.scope.unsolved(n, s);
    let (steps, touched) = eval.tracked(|eval| back_edge_steps(eval, s, back, b));
    eval.scope.solved(n, mark);
    let touched = if touched.phi > eval.scope.depth { CLEAN } else { touched.phi };
    let found = recurrence(eval, n, &init, k, &steps, bits, b);
    let opaque = |f: &AffineForm| f.terms.iter().any(|t| eval.atoms[t.0].opaque == Some(Reason::Loop));
    // Where something else than a loop without a rule is in the way, it stays there.
    let hopeless = |s: &Step| match s {
        Step::Other(why) => why.is_some_and(|why| why != Reason::Loop),
        Step::Add(f, _) | Step::Copy(f) => eval.atoms.why(f).is_some_and(|why| why != Reason::Loop),
    };
    if found.as_ref().is_none_or(opaque) && !steps.iter().any(hopeless) {
        let unbounded = rests_on_nothing(eval, touched);
        let half = if unbounded && !half_of_unsolved(eval, n) { None } else { half_of_carried(eval, n, b) };
        if let Some(f) = half {
            return f;
        }
        if !unbounded && let Some(f) = carried_range(eval, n, &init, (outer, back), touched, b) {
            return f;
        }
    }
    if let Some(f) = found {
        return f;
    }
    let why = steps.iter().find_map(|s| match s {
        Step::Other(r) => *r,
        Step::Add(f, _) | Step::Copy(f) => eval.atoms.why(f),
    });
    // A search whose next step hangs on what it finds is no loop without a rule.
    let why = why.filter(|why| *why != Reason::Loop).or_else(|| {
        let back: SmallVec<[NodeId; 2]> = back.iter().map(|arm| arm.1).collect();
        data_in(eval.g, &back, Some(n))
    });
    eval.opaque(AtomKey::Node(n, 46), why.unwrap_or(Reason::Loop), bits, b)
}

/// The value of a header's phi when the loop begins.
pub(crate) fn before_the_loop(eval: &mut Eval<'_>, n: NodeId, outer: &Arms, b: BlockId) -> AffineForm {
    let mut arms = arm_values(eval, outer, b);
    if arms.len() == 1 { arms.swap_remove(0).0 } else { join(eval, arms, n, 2, b) }
}

/// How each back edge changes the value that a symbol stands for.
fn back_edge_steps(eval: &mut Eval<'_>, s: AtomId, back: &Arms, b: BlockId) -> Vec<Step> {
    let mut steps = Vec::with_capacity(back.len());
    for (p, v) in back {
        let f = eval.ev(*v);
        let step = if f.coef(s) == 1 {
            let e = f.without(s);
            if supported_by(&eval.atoms, &e, s) {
                Step::Other(None)
            } else {
                // (What holds on the way back is not asked without need: the test of a loop
                // compares its counter, which is what is looked for here.)
                let z = match e.as_const() {
                    Some(c) => (c, c),
                    None => {
                        let cons = ConstraintSet::new(arm_facts(eval, *p, b));
                        eval.atoms.bounds_in(&e, &cons, false)
                    }
                };
                Step::Add(e, z)
            }
        } else if f.has(s) || supported_by(&eval.atoms, &f, s) {
            Step::Other(eval.atoms.why(&f))
        } else {
            Step::Copy(f)
        };
        steps.push(step);
    }
    steps
}

/// The value that these steps make; `None`: it has no form.
fn recurrence(
    eval: &mut Eval<'_>,
    n: NodeId,
    init: &AffineForm,
    k: AtomId,
    steps: &[Step],
    bits: u32,
    b: BlockId,
) -> Option<AffineForm> {
    if steps.iter().all(|s| matches!(s, Step::Add(..))) {
        let (mut lo, mut hi, mut g, mut why) = (INF, -INF, Int::new(0), None);
        for s in steps {
            if let Step::Add(e, z) = s {
                lo = lo.min(z.0);
                hi = hi.max(z.1);
                g = g.gcd(e.gcd()).gcd(e.c);
                why = why.or_else(|| eval.atoms.why(e));
            }
        }
        if lo == hi {
            return Some(init.add(&AffineForm::atom(k), lo));
        }
        if lo > -INF && hi < INF && why.is_none() {
            let g = g.max(1);
            let t = eval.keyed(AtomKey::Step(n, init.clone(), lo, hi), |eval| {
                let t = eval.atoms.new_atom(
                    if lo < 0 { -INF } else { Int::new(0) },
                    if hi > 0 { INF } else { Int::new(0) },
                    None,
                    b,
                );
                let one = AffineForm::atom(t).scale(g);
                let kf = AffineForm::atom(k);
                eval.atoms[t].cons =
                    vec![eval.atoms.con(one.add(&kf, -hi)), eval.atoms.con(kf.scale(lo).add(&one, -1))];
                eval.atoms[t].deps = SmallVec::from_slice(&[k]);
                let z = eval.atoms.search(&AffineForm::atom(t), &eval.none, false);
                // The atom is not in use yet, so its box may change.
                let a = &mut eval.atoms[t];
                a.lo = a.lo.max(z.0);
                a.hi = a.hi.min(z.1);
                t
            });
            return Some(init.add(&AffineForm::atom(t), g));
        }
        let o = eval.opaque(AtomKey::Node(n, 45), why.unwrap_or(Reason::Loop), bits, b);
        return Some(init.add(&o, 1));
    }
    let copies =
        steps.iter().all(|s| matches!(s, Step::Copy(_)) || matches!(s, Step::Add(_, (lo, hi)) if *lo == 0 && *hi == 0));
    if copies {
        let mut arms = vec![(init.clone(), Vec::new())];
        for s in steps {
            if let Step::Copy(f) = s {
                arms.push((f.clone(), Vec::new()));
            }
        }
        // Values of an earlier iteration: their atoms must not be confused with this
        // iteration's.
        let header_loop = eval.cfg.loop_of_header[b.0 as usize];
        if arms.len() == 2 && arms[0].0 == arms[1].0 {
            return Some(arms.swap_remove(0).0);
        }
        let clean = arms[1..].iter().all(|a| {
            header_loop.is_some_and(|l| {
                a.0.terms.iter().all(|t| {
                    !matches!(eval.atoms[t.0].kind, AtomKind::Param(_)) && eval.atoms[t.0].alts.is_none()
                        || !varying(eval, t.0, l)
                })
            })
        });
        // A pointer among the alternatives would keep the forms themselves: only when they do
        // not vary.
        let fixed =
            arms[1..].iter().all(|a| header_loop.is_some_and(|l| a.0.terms.iter().all(|t| !varying(eval, t.0, l))));
        let pointers = arms.iter().any(|a| {
            a.0.terms.iter().any(|t| {
                eval.atoms[t.0].alts.is_some()
                    || matches!(
                        eval.atoms[t.0].kind,
                        AtomKind::Param(_) | AtomKind::Symbol(_) | AtomKind::ParamAddress(_) | AtomKind::Local
                    )
            })
        });
        if fixed || (clean && !pointers) {
            return Some(join(eval, arms, n, 3, b));
        }
    }
    None
}

/// All atoms that an atom's meaning rests on.
pub(crate) fn support_of(atoms: &Atoms, x: AtomId) -> SmallVec<[AtomId; 16]> {
    let mut out: SmallVec<[AtomId; 16]> = SmallVec::new();
    let mut work: SmallVec<[AtomId; 16]> = SmallVec::from_slice(&[x]);
    while let Some(a) = work.pop() {
        if out.contains(&a) {
            continue;
        }
        out.push(a);
        let Atom { deps, alts, .. } = &atoms[a];
        work.extend(deps.iter().copied());
        if let Some(v) = alts {
            v.iter().for_each(|f| work.extend(f.terms.iter().map(|t| t.0)));
        }
    }
    out
}

pub(crate) fn supported_by(atoms: &Atoms, f: &AffineForm, s: AtomId) -> bool {
    f.terms.iter().any(|t| support_of(atoms, t.0).contains(&s))
}

/// May an atom have different values in different iterations of loop `l`?
pub(crate) fn varying(eval: &Eval<'_>, x: AtomId, l: u32) -> bool {
    let lp = &eval.cfg.loops[l as usize];
    support_of(&eval.atoms, x).iter().any(|a| {
        let atom = &eval.atoms[*a];
        let inside = lp.members[atom.home.0 as usize];
        match atom.kind {
            AtomKind::Index
            | AtomKind::Param(_)
            | AtomKind::Symbol(_)
            | AtomKind::ParamAddress(_)
            | AtomKind::Local => false,
            AtomKind::Iteration(_) | AtomKind::Unsolved => inside,
            // An atom over others varies with them; one over nothing is whatever its block
            // computed.
            AtomKind::Plain => inside && (atom.opaque.is_some() || atom.deps.is_empty() || atom.choice),
        }
    })
}

/// Does a form vary in any loop around a block?
pub(crate) fn varies_around(eval: &Eval<'_>, f: &AffineForm, b: BlockId) -> bool {
    (0..eval.cfg.loops.len() as u32)
        .filter(|l| eval.cfg.loops[*l as usize].members[b.0 as usize])
        .any(|l| f.terms.iter().any(|t| varying(eval, t.0, l)))
}
