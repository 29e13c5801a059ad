//! Affine forms over atoms, with integer coefficients.
//!
//! Arithmetic wraps modulo 2^128, so a form stays congruent to its register modulo 2^32 or 2^64 whatever happens; a form
//! becomes an integer only after its bounds were checked. Bounds saturate at [`INF`].

use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// Coefficients and bounds.
pub(super) type Int = i128;

/// Infinity: bounds at or beyond it say nothing.
pub(super) const INF: Int = 1 << 110;

/// Index of an atom of one evaluation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct AtomId(pub u32);

/// Atoms with their coefficients.
pub(super) type Terms = SmallVec<[(AtomId, Int); 3]>;

/// `sum(coefficient * atom) + c`, atoms ascending, no zero coefficients.
#[derive(PartialEq, Eq, Default, Debug)]
pub(super) struct Form {
    pub terms: Terms,
    pub c: Int,
}

impl Clone for Form {
    fn clone(&self) -> Form {
        Form { terms: SmallVec::from_slice(&self.terms), c: self.c }
    }
}

impl Hash for Form {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (x, c) in &self.terms {
            state.write_u32(x.0);
            state.write_u64(*c as u64 ^ (*c >> 64) as u64);
        }
        state.write_u64(self.c as u64 ^ (self.c >> 64) as u64);
    }
}

impl Form {
    pub fn konst(c: Int) -> Form {
        Form { terms: SmallVec::new(), c }
    }
    pub fn atom(a: AtomId) -> Form {
        Form { terms: SmallVec::from_slice(&[(a, 1)]), c: 0 }
    }
    pub fn is_const(&self) -> bool {
        self.terms.is_empty()
    }
    pub fn as_const(&self) -> Option<Int> {
        self.is_const().then_some(self.c)
    }
    pub fn coef(&self, a: AtomId) -> Int {
        match self.terms.binary_search_by_key(&a, |t| t.0) {
            Ok(i) => self.terms[i].1,
            Err(_) => 0,
        }
    }
    pub fn has(&self, a: AtomId) -> bool {
        self.terms.binary_search_by_key(&a, |t| t.0).is_ok()
    }

    /// `ka * self + kb * o`; `None` on overflow.
    pub fn combine(&self, ka: Int, o: &Form, kb: Int) -> Option<Form> {
        let mut terms = SmallVec::new();
        let (mut i, mut j) = (0, 0);
        while i < self.terms.len() || j < o.terms.len() {
            let (a, v) = match (self.terms.get(i), o.terms.get(j)) {
                (Some(x), Some(y)) if x.0 == y.0 => {
                    i += 1;
                    j += 1;
                    (x.0, mul(x.1, ka)?.checked_add(mul(y.1, kb)?)?)
                }
                (Some(x), y) if y.is_none_or(|y| x.0 < y.0) => {
                    i += 1;
                    (x.0, mul(x.1, ka)?)
                }
                (_, Some(y)) => {
                    j += 1;
                    (y.0, mul(y.1, kb)?)
                }
                _ => return None,
            };
            if v != 0 {
                terms.push((a, v));
            }
        }
        Some(Form { terms, c: mul(self.c, ka)?.checked_add(mul(o.c, kb)?)? })
    }

    /// `self + k * o`, modulo 2^128.
    pub fn add(&self, o: &Form, k: Int) -> Form {
        let mut terms = SmallVec::new();
        let (mut i, mut j) = (0, 0);
        loop {
            let (a, v) = match (self.terms.get(i), o.terms.get(j)) {
                (None, None) => break,
                (Some(x), Some(y)) if x.0 == y.0 => {
                    i += 1;
                    j += 1;
                    (x.0, x.1.wrapping_add(y.1.wrapping_mul(k)))
                }
                (Some(x), Some(y)) if x.0 < y.0 => {
                    i += 1;
                    *x
                }
                (Some(x), None) => {
                    i += 1;
                    *x
                }
                (_, Some(y)) => {
                    j += 1;
                    (y.0, y.1.wrapping_mul(k))
                }
            };
            if v != 0 {
                terms.push((a, v));
            }
        }
        Form { terms, c: self.c.wrapping_add(o.c.wrapping_mul(k)) }
    }

    pub fn plus(&self, c: Int) -> Form {
        let mut f = self.clone();
        f.c = f.c.wrapping_add(c);
        f
    }

    pub fn scale(&self, k: Int) -> Form {
        if k == 0 {
            return Form::default();
        }
        let mut f = self.clone();
        f.terms.iter_mut().for_each(|t| t.1 = t.1.wrapping_mul(k));
        if k & 1 == 0 {
            f.terms.retain(|t| t.1 != 0);
        }
        f.c = f.c.wrapping_mul(k);
        f
    }

    /// Without atom `a`.
    pub fn without(&self, a: AtomId) -> Form {
        let mut f = self.clone();
        f.terms.retain(|t| t.0 != a);
        f
    }

    /// Coefficients reduced to the signed range of `bits`.
    pub fn norm(mut self, bits: u32) -> Form {
        let m: Int = 1 << bits;
        let h = m >> 1;
        let red = |v: Int| (v.wrapping_add(h)).rem_euclid(m) - h;
        if self.terms.iter().any(|t| t.1 < -h || t.1 >= h) {
            self.terms = self.terms.iter().map(|t| (t.0, red(t.1))).filter(|t| t.1 != 0).collect();
        }
        if self.c < -h || self.c >= h {
            self.c = red(self.c);
        }
        self
    }

    /// Greatest common divisor of the coefficients of the atoms (0: none).
    pub fn gcd(&self) -> Int {
        self.terms.iter().fold(0, |g, t| gcd(g, t.1))
    }

    /// `self <= 0` with integer atoms: divided by the common factor, the constant rounded.
    pub fn tighten(self) -> Form {
        let g = self.gcd();
        if g < 2 {
            return self;
        }
        Form { terms: self.terms.iter().map(|t| (t.0, t.1 / g)).collect(), c: -((-self.c).div_euclid(g)) }
    }
}

/// Greatest common divisor, never negative.
pub(super) fn gcd(a: Int, b: Int) -> Int {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    if let (Ok(mut x), Ok(mut y)) = (u64::try_from(a), u64::try_from(b)) {
        while y != 0 {
            (x, y) = (y, x % y);
        }
        return Int::from(x);
    }
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as Int
}

/// `a * b`; `None` on overflow. (Almost all factors are small: then one instruction does it.)
pub(super) fn mul(a: Int, b: Int) -> Option<Int> {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(x), Ok(y)) => Some(Int::from(x) * Int::from(y)),
        _ => a.checked_mul(b),
    }
}

/// Product of a coefficient and a bound.
pub(super) fn mul_sat(a: Int, b: Int) -> Int {
    if a == 0 || b == 0 {
        return 0;
    }
    match mul(a, b) {
        Some(v) => v.clamp(-INF, INF),
        None if (a < 0) == (b < 0) => INF,
        None => -INF,
    }
}

/// Sum of two upper bounds (`INF` wins) or two lower ones (pass negated).
pub(super) fn add_hi(a: Int, b: Int) -> Int {
    if a >= INF || b >= INF { INF } else { (a + b).clamp(-INF, INF) }
}

/// `floor(a / d)` of a bound, `d > 0`.
pub(super) fn div_bound(a: Int, d: Int) -> Int {
    if d == 1 || a.abs() >= INF { a } else { a.div_euclid(d) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f(t: &[(u32, Int)], c: Int) -> Form {
        Form { terms: t.iter().map(|x| (AtomId(x.0), x.1)).collect(), c }
    }

    #[test]
    fn sums_cancel_and_stay_sorted() {
        assert_eq!(f(&[(1, 2), (3, 4)], 5).add(&f(&[(1, 1), (2, 7)], 1), -2), f(&[(2, -14), (3, 4)], 3));
        assert_eq!(f(&[(1, 2)], 0).combine(3, &f(&[(1, 6)], 1), -1), Some(f(&[], -1)));
        assert_eq!(f(&[(1, Int::MAX)], 0).combine(2, &Form::default(), 0), None);
    }

    #[test]
    fn coefficients_reduce_to_the_signed_range() {
        assert_eq!(f(&[(1, 0xffff_fffc)], 0x8000_0000).norm(32), f(&[(1, -4)], -0x8000_0000));
        assert_eq!(f(&[(1, 1 << 32)], 0).norm(32), f(&[], 0));
    }

    #[test]
    fn tightening_rounds_towards_feasible() {
        // 4x - 7 <= 0  ->  x <= 1
        assert_eq!(f(&[(1, 4)], -7).tighten(), f(&[(1, 1)], -1));
        // 4x + 7 <= 0  ->  x <= -2
        assert_eq!(f(&[(1, 4)], 7).tighten(), f(&[(1, 1)], 2));
    }
}
