//! Bounds of forms: from the boxes of atoms, and by greedy elimination with constraints.
//!
//! Owns the search. The head of `eval` argues why it is sound; `relevance` chooses the constraints.

use super::atoms::Atoms;
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::constraints::{ConstraintSet, Relevant};
use crate::ranges::domain::int::{INF, Int};
use smallvec::SmallVec;

/// Constraints followed from one address or comparison.
const DEPTH: u32 = 3;
/// Elimination steps for one bound.
const MAX_STEPS: u32 = 2_500;

impl Atoms {
    pub(crate) fn box_hi(&self, f: &AffineForm, strict: bool) -> Int {
        let mut hi = f.c.clamp(-INF, INF);
        for (x, c) in &f.terms {
            hi = hi.add_hi(self.term_hi(*x, *c, strict));
        }
        hi
    }

    #[inline]
    fn term_hi(&self, x: AtomId, c: Int, strict: bool) -> Int {
        let a = &self[x];
        if strict && a.opaque.is_some() {
            INF
        } else if c > 0 {
            c.mul_sat(a.hi)
        } else {
            c.mul_sat(a.lo)
        }
    }

    /// Bounds from the boxes alone.
    pub(crate) fn boxed(&self, f: &AffineForm, strict: bool) -> (Int, Int) {
        let mut lo = (-f.c).clamp(-INF, INF);
        for (x, c) in &f.terms {
            lo = lo.add_hi(self.term_hi(*x, -*c, strict));
        }
        (-lo, self.box_hi(f, strict))
    }

    fn upper(&self, f: &AffineForm, cons: &Relevant, depth: u32, strict: bool) -> Int {
        let mut best = self.box_hi(f, strict);
        self.budget.steps.set(self.budget.steps.get() + 1);
        if depth == 0 || cons.is_empty() || self.budget.steps.get() > MAX_STEPS {
            return best;
        }
        let mut ranked: SmallVec<[(Int, AtomId, Int); 8]> = SmallVec::new();
        for (x, c) in &f.terms {
            let a = &self[*x];
            let span = if strict && a.opaque.is_some() { INF } else { a.hi.add_hi(-a.lo) };
            if span > 0 {
                ranked.push((c.abs().mul_sat(span), *x, *c));
            }
        }
        ranked.sort_by_key(|r| std::cmp::Reverse(r.0));
        // Deeper levels look less far around.
        let (atoms, tries) = if depth >= DEPTH {
            (3, 8)
        } else if depth == 2 {
            (2, 6)
        } else {
            (2, 4)
        };
        for (_, x, c) in ranked.into_iter().take(atoms) {
            for (g, gx) in cons.about(x).filter(|e| (e.1 > 0) == (c > 0)).take(tries) {
                let d = c.gcd(gx);
                let (mf, mg) = (gx.abs().div_euclid(d), c.abs().div_euclid(d));
                let v = if depth == 1 {
                    // The last level needs the box only: no form is made.
                    self.budget.steps.set(self.budget.steps.get() + 1);
                    let Some(v) = self.combined_hi(f, mf, g, -mg, strict) else { continue };
                    v
                } else {
                    let Some(rest) = f.combine(mf, g, -mg) else { continue };
                    self.upper(&rest, cons, depth - 1, strict)
                };
                best = best.min(v.div_upper(mf));
            }
        }
        best
    }

    /// The upper end of the box of `kf * f + kg * g`; `None` on overflow.
    fn combined_hi(&self, f: &AffineForm, kf: Int, g: &AffineForm, kg: Int, strict: bool) -> Option<Int> {
        let mut hi = f.c.checked_mul(kf)?.checked_add(g.c.checked_mul(kg)?)?.clamp(-INF, INF);
        let (mut i, mut j) = (0, 0);
        loop {
            let (x, c) = match (f.terms.get(i), g.terms.get(j)) {
                (None, None) => return Some(hi),
                (Some(x), Some(y)) if x.0 == y.0 => {
                    i += 1;
                    j += 1;
                    (x.0, x.1.checked_mul(kf)?.checked_add(y.1.checked_mul(kg)?)?)
                }
                (Some(x), y) if y.is_none_or(|y| x.0 < y.0) => {
                    i += 1;
                    (x.0, x.1.checked_mul(kf)?)
                }
                (_, Some(y)) => {
                    j += 1;
                    (y.0, y.1.checked_mul(kg)?)
                }
                (Some(_), None) => return None,
            };
            if c != 0 {
                hi = hi.add_hi(self.term_hi(x, c, strict));
            }
        }
    }

    /// Integer bounds of a form under constraints; `strict`: opaque atoms are unbounded.
    pub(crate) fn bounds_in(&self, f: &AffineForm, ctx: &ConstraintSet, strict: bool) -> (Int, Int) {
        if let Some(c) = f.as_const() {
            return (c, c);
        }
        // A constant shifts the bounds, and saturates with them.
        if !f.c.is_infinite()
            && let Some((lo, hi)) = ctx.known(&f.terms, strict, self.epoch)
        {
            let shift = |v: Int| if v.is_infinite() { v } else { (v + f.c).clamp(-INF, INF) };
            return (shift(lo), shift(hi));
        }
        self.budget.end_search(1);
        if self.budget.exhausted() {
            return self.boxed(f, strict);
        }
        let (lo, hi) = self.search(f, ctx, strict);
        if !f.c.is_infinite() {
            let shift = |v: Int| if v.is_infinite() { v } else { v - f.c };
            ctx.learn(&f.terms, strict, self.epoch, (shift(lo), shift(hi)));
        }
        (lo, hi)
    }

    /// The same, without looking whether it was asked before.
    pub(crate) fn search(&self, f: &AffineForm, ctx: &ConstraintSet, strict: bool) -> (Int, Int) {
        let cons = self.relevant(f, ctx, strict);
        if cons.is_empty() {
            return self.boxed(f, strict);
        }
        let lo = -self.upper(&f.scale(-1), &cons, DEPTH, strict);
        self.budget.end_search(0);
        let hi = self.upper(f, &cons, DEPTH, strict);
        // The values are congruent to the constant modulo the common factor.
        let g = f.gcd();
        if g < 2 {
            return (lo, hi);
        }
        let up = if lo > -INF { lo + (f.c - lo).rem_euclid(g) } else { lo };
        let down = if hi < INF { hi - (hi - f.c).rem_euclid(g) } else { hi };
        (up, down)
    }
}
