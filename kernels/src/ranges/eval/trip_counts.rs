//! How often a loop runs: constraints on the number of its completed iterations.
//!
//! Owns the counter `k` of a loop and its bounds.
//!
//! Every condition `F(k) <= 0` on the way to the back edge held one iteration earlier, so `F(k-1)
//! <= 0` for `k >= 1`. `F(k-1) <= max(0, bound of F(-1))` holds for all `k >= 0` without a case
//! split. Meanwhile the forms are taken for numbers without proof. What was assumed is verified
//! afterwards with the bound that was found; if that fails, `k` stays unbounded.

use crate::ir::BlockId;
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::AtomKind;
use crate::ranges::domain::condition::{Cond, Fact};
use crate::ranges::domain::constraints::{ConstraintRef, ConstraintSet};
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::eval::state::loop_table::LoopState;

impl Eval<'_> {
    pub(crate) fn iteration(&mut self, l: u32) -> AtomId {
        if let Some(k) = self.loops.counters[l as usize] {
            return k;
        }
        let home = self.cfg.loops[l as usize].header;
        let k = self.atoms.new_atom(0, INF, None, home);
        self.atoms[k].kind = AtomKind::Iteration(l);
        self.loops.counters[l as usize] = Some(k);
        k
    }

    /// Finds the constraints on a loop's iteration counter.
    pub(crate) fn trip(&mut self, l: u32) {
        if self.loops.states[l as usize] != LoopState::New {
            return;
        }
        // Outermost first.
        let header = self.cfg.loops[l as usize].header;
        let mut outer: Vec<u32> = (0..self.cfg.loops.len() as u32)
            .filter(|o| *o != l && self.cfg.loops[*o as usize].members[header.0 as usize])
            .collect();
        outer.sort_by_key(|o| std::cmp::Reverse(self.cfg.loops[*o as usize].size));
        for o in outer {
            self.trip(o);
        }
        if self.loops.states[l as usize] != LoopState::New {
            return;
        }
        let before = self.loops.states.clone();
        self.loops.states[l as usize] = LoopState::Solving;
        let k = self.iteration(l);
        // A world of its own: unproved numbers, a fresh memo.
        let outer_scope = self.scope.enter();
        let assumed = self.assumed.replace(Vec::new());
        let log = self.atoms.key_log.replace(Vec::new());
        let (keep, never, exact) = self.back_conditions(l, k);
        let mine = std::mem::replace(&mut self.assumed, assumed).unwrap_or_default();
        let keys = std::mem::replace(&mut self.atoms.key_log, log).unwrap_or_default();
        self.scope.forget_all();
        let pre = self.ctx(header);
        self.atoms.change(k, |a| a.cons = keep.clone());
        let hi = if never { Int::new(0) } else { self.atoms.bounds_in(&AffineForm::atom(k), &pre, false).1 };
        let mut ok = true;
        if hi < INF {
            self.atoms.change(k, |a| a.hi = hi);
            for (f, tlo, thi) in &mine {
                ok &= self.proved(f, *tlo, *thi, &pre);
            }
        }
        if !ok {
            self.atoms.change(k, |a| {
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
                    used.extend(self.support(t.0));
                }
            }
        }
        for key in keys {
            if let Some(a) = self.atoms.keys.get(&key)
                && !used.contains(a)
            {
                self.atoms.keys.remove(&key);
            }
        }
        self.scope.leave(outer_scope);
        // Inner loops saw this one unbounded: they are solved again.
        self.count_again(&before, Some(l));
        self.loops.exact_trip[l as usize] = ok && (never || (hi < INF && exact));
        self.loops.states[l as usize] = LoopState::Done;
    }

    /// Forgets the trips that were counted since then, but for those of one loop.
    pub(crate) fn count_again(&mut self, before: &[LoopState], except: Option<u32>) {
        for (o, s) in before.iter().enumerate() {
            if Some(o as u32) != except && *s == LoopState::New && self.loops.states[o] != LoopState::New {
                self.loops.states[o] = LoopState::New;
                if let Some(k) = self.loops.counters[o] {
                    self.atoms.change(k, |a| {
                        a.hi = INF;
                        a.cons.clear();
                    });
                }
            }
        }
    }

    /// Is a form within its type's range, for all iterations?
    fn proved(&mut self, f: &AffineForm, tlo: Int, thi: Int, pre: &ConstraintSet) -> bool {
        let (lo, hi) = self.atoms.bounds_in(f, pre, false);
        tlo <= lo && hi <= thi
    }

    /// Constraints on `k` from the conditions under which the back edges are taken; first flag:
    /// never; second flag: a back edge is taken exactly when they hold.
    fn back_conditions(&mut self, l: u32, k: AtomId) -> (Vec<ConstraintRef>, bool, bool) {
        let lp = &self.cfg.loops[l as usize];
        let header = lp.header;
        let latches = lp.latches.clone();
        let pre = self.ctx(header);
        let mut per: Vec<Vec<AffineForm>> = Vec::new();
        let mut exact = latches.len() == 1;
        // Blocks whose decision to stay in the loop is among the conditions.
        let mut deciding: Vec<BlockId> = Vec::new();
        for p in latches {
            deciding.push(p);
            let mut conds = vec![self.edge(p, header)];
            let mut x = p;
            while x != header {
                let d = self.cfg.idom[x.0 as usize];
                if self.cfg.loop_of_header[x.0 as usize].is_none() && self.cfg.preds[x.0 as usize][..] == [d] {
                    conds.push(self.edge(d, x));
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
                self.facts(c, &mut facts);
                exact &= captured(c);
                for f in facts {
                    let (found, same) = self.each_iteration(&f, k, l, &pre);
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
        let Some(first) = per.first() else { return (vec![self.atoms.con(AffineForm::atom(k))], true, true) };
        exact &= self.leaves_only_from(l, &deciding);
        let keep = first
            .iter()
            .filter(|g| per[1..].iter().all(|o| o.contains(g)))
            .map(|g| self.atoms.con(g.clone()))
            .collect();
        (keep, false, exact)
    }

    /// Do all edges out of a loop start at the given blocks, with a condition?
    fn leaves_only_from(&self, l: u32, deciding: &[BlockId]) -> bool {
        let lp = &self.cfg.loops[l as usize];
        lp.members.iter().enumerate().filter(|m| *m.1).all(|(b, _)| {
            let b = BlockId(b as u32);
            let inside = self.cfg.succs[b.0 as usize].iter().all(|s| lp.members[s.0 as usize]);
            let exits = match self.branches[b.0 as usize] {
                Some(br) => br.taken.is_none() || br.fall.is_none(),
                None => self.cfg.succs[b.0 as usize].is_empty(),
            };
            (inside && !exits) || (deciding.contains(&b) && self.branches[b.0 as usize].is_some())
        })
    }

    /// The constraints for every k >= 0 that follow from a fact that held at iteration k-1 (for
    /// k >= 1), and whether they say exactly as much as the fact.
    pub(crate) fn each_iteration(
        &mut self,
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
            if !self.varying(*x, l) {
                rest = rest.add(&AffineForm::atom(*x), *c);
                continue;
            }
            let a = &self.atoms[*x];
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
            let (lo, hi) = self.atoms.bounds_in(&rest, pre, false);
            let divides = rest.terms.iter().all(|t| t.1.divides(ck)) && rest.c.divides(ck);
            return match ck {
                c if c < 0 && (lo >= 0 || divides) => (vec![whole.scale(-1)], divides && lo >= 0),
                c if c > 0 && (hi <= 0 || divides) => (vec![whole], divides && hi <= 0),
                _ => none,
            };
        }
        // Does not hold in the first iteration: the back edge is never taken.
        if self.atoms.bounds_in(&rest, pre, false).0 > 0 {
            return (vec![AffineForm::atom(k)], true);
        }
        let earlier = whole.plus(-ck);
        let first = self.atoms.bounds_in(&rest.plus(-ck), pre, false).1;
        if first <= 0 {
            (vec![earlier], !weakened && ck > 0)
        } else if first < INF {
            (vec![earlier.plus(-first)], false)
        } else {
            none
        }
    }
}

/// Is the whole of a back edge's condition in its facts?
fn captured(c: &Cond) -> bool {
    match c {
        Cond::True | Cond::Le(_) | Cond::Ne(_) => true,
        Cond::And(v) => v.iter().all(captured),
        _ => false,
    }
}
