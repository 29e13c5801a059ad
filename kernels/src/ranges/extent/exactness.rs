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
use crate::ranges::extent::coalesce::merge;
use smallvec::SmallVec;
use std::cell::OnceCell;

/// Terms that constraints tie together.
type Group = SmallVec<[(AtomId, Int); 4]>;
type Groups = SmallVec<[Group; 2]>;

impl Eval<'_> {
    /// Is the whole of a condition captured by constraints?
    pub(crate) fn fully(&self, c: &Cond) -> bool {
        match c {
            Cond::True | Cond::Le(_) | Cond::Eq(_) => true,
            // At the end of a range it is an inequality (see `conj`).
            Cond::Ne(f) => {
                let (lo, hi) = self.atoms.bounds_in(f, &self.none, false);
                lo == 0 || hi == 0
            }
            Cond::And(v) => v.iter().all(|c| self.fully(c)),
            _ => false,
        }
    }

    /// Are all decisions between the entry and block `b` captured by its constraints?
    pub(crate) fn path_complete(&mut self, b: BlockId) -> bool {
        if self.paths.contains(&b) {
            return true;
        }
        // A loop on the way may not have been looked at yet.
        let c = self.captured_way(b);
        if c {
            self.paths.insert(b);
        }
        c
    }

    fn captured_way(&mut self, b: BlockId) -> bool {
        if self.cfg.irreducible {
            return false;
        }
        let ctx = self.ctx(b);
        let mut x = b;
        while x.0 != 0 {
            let d = self.cfg.idom[x.0 as usize];
            if self.cfg.post_dominates(x, d) {
                // ReachedBytes whatever is decided in between (loops end).
            } else if self.cfg.outer_preds(x)[..] == [d] {
                let c = self.edge(d, x);
                if !self.fully(&c) || (self.cfg.succs[d.0 as usize].len() > 1 && self.branches[d.0 as usize].is_none())
                {
                    return false;
                }
                // A test that the block's constraints lack would let threads through that fail it.
                let facts = self.conj(&c, false);
                if facts.iter().any(|f| !ctx.iter().any(|have| have.id == f.id) && self.atoms.boxed(f, false).1 > 0) {
                    return false;
                }
            } else {
                return false;
            }
            x = d;
        }
        // Inside a loop the threads that reach iteration k are those that passed every condition
        // before: only loops whose conditions are captured in full.
        (0..self.cfg.loops.len()).all(|l| !self.cfg.loops[l].members[b.0 as usize] || self.loops.exact_trip[l])
    }

    /// Progressions that cover the form's values, which lie between these ends, and whether they
    /// are exactly those values.
    pub(crate) fn shape(&self, f: &AffineForm, cons: &ConstraintSet, ends: (Int, Int), complete: bool) -> (Dims, bool) {
        let (dims, exact) = self.grouped(f, cons, ends, complete);
        // A better cover is no reason to have none for what comes later.
        if exact || f.terms.len() < 2 || self.atoms.budget.half_spent() {
            return (dims, exact);
        }
        match self.layered(f, cons, ends) {
            Some(layers) if count(&layers) < count(&dims) => (layers, false),
            _ => (dims, false),
        }
    }

    /// The same from terms taken together as far as their sums overlap, by size: rows, columns,
    /// tiles. Each sum lies within bounds of its own, whatever ties them together. `None`: they do
    /// not end where all of them do.
    fn layered(&self, f: &AffineForm, cons: &ConstraintSet, ends: (Int, Int)) -> Option<Dims> {
        let mut terms: Group = f.terms.iter().copied().collect();
        terms.sort_by_key(|t| t.1.abs());
        let (mut from, mut to, mut dims) = (f.c, f.c, Dims::new());
        let mut part = AffineForm::default();
        for (k, t) in terms.iter().enumerate() {
            part = part.add(&AffineForm::atom(t.0), t.1);
            let (l, h) = self.atoms.bounds_in(&part, cons, true);
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
    fn grouped(&self, f: &AffineForm, cons: &ConstraintSet, (lo, hi): (Int, Int), complete: bool) -> (Dims, bool) {
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
        let groups = self.groups(&terms, cons);
        let mut dims = Dims::new();
        let (mut slo, mut shi) = (f.c, f.c);
        let mut exact = complete;
        // Looked at only while the set may be exact.
        let all = OnceCell::new();
        let all = || &all.get_or_init(|| self.all_constraints(&groups, cons))[..];
        for g in &groups {
            let part = AffineForm { terms: g.iter().copied().collect(), c: Int::new(0) };
            let (l, h) = self.atoms.bounds_in(&part, cons, true);
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
            exact = exact && self.dense(g, step) && self.reached(g, all(), (l, h), step);
        }
        if (slo, shi) != (lo, hi) {
            return (flat(whole), false);
        }
        exact = exact && self.guards_within(&groups, all());
        let dims = merge(dims);
        if dims.len() > 3 {
            return (flat(whole), false);
        }
        (dims, exact)
    }

    /// Splits the terms of a form into sets that no constraint ties together.
    fn groups(&self, terms: &[(AtomId, Int)], cons: &[ConstraintRef]) -> Groups {
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
            for c in &self.atoms[t.0].cons {
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
    fn dense(&self, g: &[(AtomId, Int)], step: Int) -> bool {
        let mut v: SmallVec<[(Int, Int); 4]> = SmallVec::new();
        for (x, c) in g {
            let a = &self.atoms[*x];
            let free = match a.kind {
                AtomKind::Index => true,
                AtomKind::Iteration(l) => self.loops.exact_trip[l as usize],
                _ => false,
            };
            // Mixed signs are no mixed radix.
            if !free || (*c > 0) != (g[0].1 > 0) {
                return false;
            }
            v.push((c.abs(), if self.is_counter(*x) { INF } else { a.hi - a.lo + 1 }));
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

    fn is_counter(&self, x: AtomId) -> bool {
        matches!(self.atoms[x].kind, AtomKind::Iteration(_))
    }

    /// The range of a dense group's sum when only its indices' boxes count (counters are unbounded
    /// above).
    fn free_range(&self, g: &[(AtomId, Int)]) -> (Int, Int) {
        let (mut lo, mut hi) = (Int::new(0), Int::new(0));
        for (x, c) in g {
            let a = &self.atoms[*x];
            let top = if self.is_counter(*x) { INF } else { a.hi };
            let (p, q) = if *c > 0 { (c.mul_sat(a.lo), c.mul_sat(top)) } else { (c.mul_sat(top), c.mul_sat(a.lo)) };
            lo = -(-lo).add_hi(-p);
            hi = hi.add_hi(q);
        }
        (lo, hi)
    }

    /// Are the bounds of a dense group really reached: is each the end of its free range, or of a
    /// constraint on this very sum?
    fn reached(&self, g: &Group, all: &[AffineForm], (l, h): (Int, Int), step: Int) -> bool {
        let (mut lo, mut hi) = self.free_range(g);
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
    fn all_constraints(&self, groups: &[Group], cons: &[ConstraintRef]) -> SmallVec<[AffineForm; 4]> {
        let own = groups.iter().flatten().flat_map(|t| &self.atoms[t.0].cons);
        cons.iter().chain(own).map(|c| self.concrete(c)).collect()
    }

    /// Is every constraint decided by the boxes, a bound on exactly one group's sum, implied by
    /// such a bound, or about one index that the address does not contain?
    fn guards_within(&self, groups: &[Group], concrete: &[AffineForm]) -> bool {
        let on_group = |c: &AffineForm| groups.iter().any(|g| proportional(c, g).is_some());
        concrete.iter().all(|c| {
            if self.atoms.boxed(c, false).1 <= 0 || on_group(c) {
                return true;
            }
            if let [(x, _)] = c.terms[..]
                && self.atoms[x].kind == AtomKind::Index
                && !groups.iter().flatten().any(|t| t.0 == x)
                && concrete.iter().all(|o| !o.has(x) || o.terms.len() == 1)
            {
                // Another coordinate is restricted, by itself: are threads left?
                let (mut lo, mut hi) = (self.atoms[x].lo, self.atoms[x].hi);
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
                        && c.combine(qx.abs(), q, -cx.abs()).is_some_and(|d| self.atoms.boxed(&d, false).1 <= 0)
                })
            })
        })
    }
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
