//! Bounds of forms: from the boxes of atoms, and by greedy elimination with constraints.
//!
//! Owns the search; what is sound about it is said at the head of `eval`.

use super::eval::{Atom, AtomKind, Con, Eval};
use super::form::{AtomId, Form, INF, Int, add_hi, div_bound, gcd, mul_sat};
use crate::ir::BlockId;
use smallvec::SmallVec;

/// Constraints followed from one address or comparison.
const DEPTH: u32 = 3;
/// Elimination steps for one bound.
const MAX_STEPS: u32 = 2_500;

impl Eval<'_> {
    pub(super) fn mark(&self, a: &Atom) {
        if let AtomKind::Param(p) = a.kind {
            let mut u = self.used.borrow_mut();
            u.insert(usize::from(p));
            u.insert(usize::from(p) + 4);
        }
    }

    pub(super) fn box_hi(&self, f: &Form, strict: bool) -> Int {
        let mut hi = f.c.clamp(-INF, INF);
        for (x, c) in &f.terms {
            let a = self.a(*x);
            self.mark(a);
            let b = if strict && a.opaque.is_some() {
                INF
            } else if *c > 0 {
                mul_sat(*c, a.hi)
            } else {
                mul_sat(*c, a.lo)
            };
            hi = add_hi(hi, b);
        }
        hi
    }

    /// Bounds from the boxes alone.
    pub fn boxed(&self, f: &Form, strict: bool) -> (Int, Int) {
        (-self.box_hi(&f.scale(-1), strict), self.box_hi(f, strict))
    }

    /// All constraints that may say something about the atoms of `f`.
    pub(super) fn relevant(&self, f: &Form, ctx: &[Con], strict: bool) -> Vec<Con> {
        let mut out: Vec<Con> = Vec::new();
        // What the boxes imply can improve nothing; what is there twice would only be tried twice.
        let put = |c: &Con, out: &mut Vec<Con>| {
            if self.box_hi(c, strict) > 0 && !out.contains(c) {
                out.push(c.clone());
            }
        };
        ctx.iter().for_each(|c| put(c, &mut out));
        let mut seen: SmallVec<[AtomId; 24]> = SmallVec::new();
        let mut work: SmallVec<[AtomId; 24]> = f.terms.iter().map(|t| t.0).collect();
        for c in ctx {
            work.extend(c.terms.iter().map(|t| t.0));
        }
        while let Some(a) = work.pop() {
            if seen.contains(&a) {
                continue;
            }
            seen.push(a);
            let atom = self.a(a);
            for c in &atom.cons {
                put(c, &mut out);
                work.extend(c.terms.iter().map(|t| t.0));
            }
            work.extend(atom.deps.iter().copied());
            if seen.len() > 300 {
                break;
            }
        }
        out
    }

    pub(super) fn upper(&self, f: &Form, cons: &[Con], depth: u32, strict: bool) -> Int {
        let mut best = self.box_hi(f, strict);
        self.steps.set(self.steps.get() + 1);
        if depth == 0 || cons.is_empty() || self.steps.get() > MAX_STEPS {
            return best;
        }
        let mut ranked: SmallVec<[(Int, AtomId, Int); 8]> = SmallVec::new();
        for (x, c) in &f.terms {
            let a = self.a(*x);
            let span = if strict && a.opaque.is_some() { INF } else { add_hi(a.hi, -a.lo) };
            if span > 0 {
                ranked.push((mul_sat(c.abs(), span), *x, *c));
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
            let mut tried = 0;
            for g in cons {
                let gx = g.coef(x);
                if gx == 0 || (gx > 0) != (c > 0) {
                    continue;
                }
                tried += 1;
                if tried > tries {
                    break;
                }
                let d = gcd(c, gx);
                let (mf, mg) = (gx.abs() / d, c.abs() / d);
                let Some(rest) = f.combine(mf, g, -mg) else { continue };
                let v = div_bound(self.upper(&rest, cons, depth - 1, strict), mf);
                best = best.min(v);
            }
        }
        best
    }

    /// Integer bounds of a form under constraints; `strict`: opaque atoms are unbounded.
    pub fn bounds_in(&self, f: &Form, ctx: &[Con], strict: bool) -> (Int, Int) {
        if let Some(c) = f.as_const() {
            return (c, c);
        }
        self.total.set(self.total.get().saturating_add(self.steps.get() + 1));
        self.steps.set(0);
        if self.exhausted() {
            return self.boxed(f, strict);
        }
        let cons = self.relevant(f, ctx, strict);
        if cons.is_empty() {
            return self.boxed(f, strict);
        }
        let lo = -self.upper(&f.scale(-1), &cons, DEPTH, strict);
        self.total.set(self.total.get().saturating_add(self.steps.get()));
        self.steps.set(0);
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

    /// Bounds whenever block `b` executes.
    pub fn bounds(&mut self, f: &Form, b: BlockId) -> (Int, Int) {
        if let Some(c) = f.as_const() {
            return (c, c);
        }
        let ctx = self.ctx(b);
        self.bounds_in(f, &ctx, false)
    }
}
