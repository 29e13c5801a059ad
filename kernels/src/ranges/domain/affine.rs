//! Affine forms over atoms, with integer coefficients.
//!
//! Owns their arithmetic, which wraps modulo 2^128 (see `int`). So a form stays congruent to its
//! register modulo 2^32 or 2^64 whatever happens. A form becomes an integer only after its bounds
//! were checked (`eval/no_wrap.rs`). Bounds saturate at [`INF`](super::int::INF).

use smallvec::SmallVec;

use super::int::Int;

/// Index of an atom of one evaluation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct AtomId(pub u32);

/// Atoms with their coefficients.
pub(crate) type Terms = SmallVec<[(AtomId, Int); 3]>;

/// `sum(coefficient * atom) + c`, atoms ascending, no zero coefficients.
#[derive(PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct AffineForm {
    pub(crate) terms: Terms,
    pub(crate) c: Int,
}

impl Clone for AffineForm {
    fn clone(&self) -> AffineForm {
        AffineForm { terms: SmallVec::from_slice(&self.terms), c: self.c }
    }
}

impl AffineForm {
    pub(crate) fn konst(c: impl Into<Int>) -> AffineForm {
        AffineForm { terms: SmallVec::new(), c: c.into() }
    }
    pub(crate) fn atom(a: AtomId) -> AffineForm {
        AffineForm { terms: SmallVec::from_slice(&[(a, Int::new(1))]), c: Int::new(0) }
    }
    pub(crate) fn is_const(&self) -> bool {
        self.terms.is_empty()
    }
    pub(crate) fn as_const(&self) -> Option<Int> {
        self.is_const().then_some(self.c)
    }
    pub(crate) fn coef(&self, a: AtomId) -> Int {
        match self.terms.binary_search_by_key(&a, |t| t.0) {
            Ok(i) => self.terms[i].1,
            Err(_) => Int::new(0),
        }
    }
    pub(crate) fn has(&self, a: AtomId) -> bool {
        self.terms.binary_search_by_key(&a, |t| t.0).is_ok()
    }

    /// `ka * self + kb * o`; `None` on overflow.
    pub(crate) fn combine(&self, ka: Int, o: &AffineForm, kb: Int) -> Option<AffineForm> {
        let mut terms = SmallVec::new();
        let (mut i, mut j) = (0, 0);
        while i < self.terms.len() || j < o.terms.len() {
            let (a, v) = match (self.terms.get(i), o.terms.get(j)) {
                (Some(x), Some(y)) if x.0 == y.0 => {
                    i += 1;
                    j += 1;
                    (x.0, x.1.checked_mul(ka)?.checked_add(y.1.checked_mul(kb)?)?)
                }
                (Some(x), y) if y.is_none_or(|y| x.0 < y.0) => {
                    i += 1;
                    (x.0, x.1.checked_mul(ka)?)
                }
                (_, Some(y)) => {
                    j += 1;
                    (y.0, y.1.checked_mul(kb)?)
                }
                _ => return None,
            };
            if v != 0 {
                terms.push((a, v));
            }
        }
        Some(AffineForm { terms, c: self.c.checked_mul(ka)?.checked_add(o.c.checked_mul(kb)?)? })
    }

    /// `self + k * o`, modulo 2^128.
    pub(crate) fn add(&self, o: &AffineForm, k: impl Into<Int>) -> AffineForm {
        let k = k.into();
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
        AffineForm { terms, c: self.c.wrapping_add(o.c.wrapping_mul(k)) }
    }

    pub(crate) fn plus(&self, c: impl Into<Int>) -> AffineForm {
        let mut f = self.clone();
        f.c = f.c.wrapping_add(c);
        f
    }

    pub(crate) fn scale(&self, k: impl Into<Int>) -> AffineForm {
        let k = k.into();
        if k == 0 {
            return AffineForm::default();
        }
        let mut f = self.clone();
        f.terms.iter_mut().for_each(|t| t.1 = t.1.wrapping_mul(k));
        f.terms.retain(|t| t.1 != 0);
        f.c = f.c.wrapping_mul(k);
        f
    }

    /// Without atom `a`.
    pub(crate) fn without(&self, a: AtomId) -> AffineForm {
        let mut f = self.clone();
        f.terms.retain(|t| t.0 != a);
        f
    }

    /// Coefficients reduced to the signed range of `bits`.
    pub(crate) fn norm(mut self, bits: u32) -> AffineForm {
        let (m, h) = (Int::pow2(bits), Int::pow2(bits - 1));
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
    pub(crate) fn gcd(&self) -> Int {
        self.terms.iter().fold(Int::new(0), |g, t| g.gcd(t.1))
    }

    /// `self <= 0` with integer atoms: divided by the common factor, the constant rounded.
    pub(crate) fn tighten(self) -> AffineForm {
        let g = self.gcd();
        if g < 2 {
            return self;
        }
        AffineForm {
            terms: self.terms.iter().map(|t| (t.0, t.1.div_euclid(g))).collect(),
            c: -((-self.c).div_euclid(g)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f(t: &[(u32, i128)], c: i128) -> AffineForm {
        AffineForm { terms: t.iter().map(|x| (AtomId(x.0), Int::new(x.1))).collect(), c: Int::new(c) }
    }

    #[test]
    fn sums_cancel_and_stay_sorted() {
        assert_eq!(f(&[(1, 2), (3, 4)], 5).add(&f(&[(1, 1), (2, 7)], 1), -2), f(&[(2, -14), (3, 4)], 3));
        assert_eq!(f(&[(1, 2)], 0).combine(Int::new(3), &f(&[(1, 6)], 1), Int::new(-1)), Some(f(&[], -1)));
        assert_eq!(f(&[(1, i128::MAX)], 0).combine(Int::new(2), &AffineForm::default(), Int::new(0)), None);
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
