//! How often a loop runs: constraints on the number of its completed iterations.
//!
//! Owns the counter `k` of a loop and its bounds, and the reason that is given when it has none.
//!
//! Every condition `F(k) <= 0` on the way to the back edge held one iteration earlier, so `F(k-1)
//! <= 0` for `k >= 1`. `F(k-1) <= max(0, bound of F(-1))` holds for all `k >= 0` without a case
//! split. Meanwhile the forms are taken for numbers without proof. What was assumed is verified
//! afterwards with the bound that was found; if that fails, `k` stays unbounded.

mod shrinking;

use crate::ir::{BlockId, Reason};
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::AtomKind;
use crate::ranges::domain::condition::{Cond, Fact};
use crate::ranges::domain::constraints::{ConstraintRef, ConstraintSet};
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::eval::conditions::{edge_condition, implied_facts};
use crate::ranges::eval::recurrences::{support_of, varying};
use crate::ranges::eval::state::loop_table::LoopState;
use crate::ranges::graph::provenance::data_in;
use shrinking::most_iterations;

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
        for c in &conds {
            let mut facts = Vec::new();
            implied_facts(eval, c, &mut facts);
            exact &= captured(c);
            for f in facts {
                let (found, same) = each_iteration(eval, &f, k, l, &pre);
                exact &= same;
                for g in found {
                    if !got.contains(&g) {
                        got.push(g);
                    }
                }
            }
        }
        per.push(got);
    }
    let Some(first) = per.first() else { return (vec![eval.atoms.con(AffineForm::atom(k))], true, true) };
    exact &= leaves_only_from(eval, l, &deciding);
    let keep =
        first.iter().filter(|g| per[1..].iter().all(|o| o.contains(g))).map(|g| eval.atoms.con(g.clone())).collect();
    (keep, false, exact)
}

/// Do all edges out of a loop start at the given blocks, with a condition?
fn leaves_only_from(eval: &Eval<'_>, l: u32, deciding: &[BlockId]) -> bool {
    let lp = &eval.cfg.loops[l as usize];
    lp.members.iter().enumerate().filter(|m| *m.1).all(|(b, _)| {
        let b = BlockId(b as u32);
        let inside = eval.cfg.succs[b.0 as usize].iter().all(|s| lp.members[s.0 as usize]);
        let exits = match eval.branches[b.0 as usize] {
            Some(br) => br.taken.is_none() || br.fall.is_none(),
            None => eval.cfg.succs[b.0 as usize].is_empty(),
        };
        (inside && !exits) || (deciding.contains(&b) && eval.branches[b.0 as usize].is_some())
    })
}

/// The constraints for every k >= 0 that follow from a fact that held at iteration k-1 (for
/// k >= 1), and whether they say exactly as much as the fact.
pub(crate) fn each_iteration(
    eval: &mut Eval<'_>,
    f: &Fact,
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
        // A step that divides the distance cannot jump over zero; one that does not is assumed
        // to end.
        let (lo, hi) = eval.atoms.bounds_in(&rest, pre, false);
        let divides = rest.terms.iter().all(|t| t.1.divides(ck)) && rest.c.divides(ck);
        return match ck {
            c if c < 0 && (lo >= 0 || divides) => (vec![whole.scale(-1)], divides && lo >= 0),
            c if c > 0 && (hi <= 0 || divides) => (vec![whole], divides && hi <= 0),
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
