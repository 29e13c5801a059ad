//! Arithmetic of the tape: keeps results as linear as possible, so that equal numbers look equal
//! and decided comparisons show.
//!
//! Owns the rules. A product is linear in products of bases, a quotient is split into the part that
//! divides and a rest, and minima that the bounds decide disappear. What fits no rule becomes a
//! base of its own. `None` means that the result can not be expressed without a risk that something
//! wraps.

use super::tape::{Tape, TapeBase, TapeOp, TapeSum, TapeTerms, gcd};
use crate::ranges::domain::int::INF;
use smallvec::SmallVec;

/// TapeTerms of a sum; more are pinned.
const MAX_TERMS: usize = 8;
/// Beyond it nothing is calculated.
const LIMIT: i128 = 1 << 126;

/// A number: `k * sum + c`; with `k` 0, just `c`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Linear {
    pub(crate) sum: u32,
    pub(crate) k: i128,
    pub(crate) c: i128,
}

impl Linear {
    pub(crate) const fn constant(c: i128) -> Linear {
        Linear { sum: 0, k: 0, c }
    }

    fn scale(self, by: i128) -> Option<Linear> {
        let (k, c) = (self.k.checked_mul(by)?, self.c.checked_mul(by)?);
        Some(if k == 0 { Linear::constant(c) } else { Linear { sum: self.sum, k, c } })
    }
}

impl Tape {
    pub(crate) fn calculate(&mut self, op: TapeOp, a: Linear, b: Linear) -> Option<Linear> {
        if a.k == 0 && b.k == 0 {
            return Some(Linear::constant(op.apply(a.c, b.c)));
        }
        let ((al, ah), (bl, bh)) = (self.bounds(a), self.bounds(b));
        let corners = |f: &dyn Fn(i128, i128) -> i128| {
            let v = [f(al, bl), f(al, bh), f(ah, bl), f(ah, bh)];
            (v.iter().copied().fold(i128::MAX, i128::min), v.iter().copied().fold(i128::MIN, i128::max))
        };
        let top = INF.now();
        let inside = |v: (i128, i128)| v.0 > -top && v.1 < top;
        match op {
            TapeOp::Add => self.plus(a, b, 1),
            TapeOp::Sub => self.plus(a, b, -1),
            TapeOp::Mul => self.product(a, b, corners(&i128::saturating_mul)),
            TapeOp::Scaled => match corners(&i128::saturating_mul) {
                range if inside(range) => self.product(a, b, range),
                range => self.made(op, a, b, (range.0.clamp(-top, top), range.1.clamp(-top, top))),
            },
            TapeOp::Bounds => {
                let range = (al.saturating_add(bl), ah.saturating_add(bh));
                match inside(range) && ah < top && bh < top {
                    true => self.plus(a, b, 1),
                    false => self.made(op, a, b, (range.0.clamp(-top, top), top)),
                }
            }
            TapeOp::Min | TapeOp::Max => {
                let d = self.plus(a, b, -1)?;
                let (lo, hi) = self.bounds(d);
                let (first, second) = if op == TapeOp::Min { (a, b) } else { (b, a) };
                if hi <= 0 {
                    return Some(first);
                }
                if lo >= 0 {
                    return Some(second);
                }
                // One of the two is what this was found of already.
                for (x, other) in [(a, b), (b, a)] {
                    if x.k == 1
                        && x.c == 0
                        && let [(base, 1)] = self.sums[x.sum as usize].terms[..]
                        && let TapeBase::Op(o, p, q) = self.bases[base as usize]
                        && o == op
                        && (p == other || q == other)
                    {
                        return Some(x);
                    }
                }
                self.made(op, a, b, (op.apply(al, bl), op.apply(ah, bh)))
            }
            TapeOp::Quotient | TapeOp::Remainder if bl <= 0 => None,
            TapeOp::Quotient if b.k == 0 => self.quotient(a, b.c),
            TapeOp::Remainder if b.k == 0 => {
                let q = self.quotient(a, b.c)?;
                let r = self.plus(a, q, -b.c)?;
                self.known(r, (0, b.c - 1));
                Some(r)
            }
            TapeOp::Quotient | TapeOp::Remainder => {
                let (whole, rest) = self.taken_out(a, b)?;
                let (l, h) = self.bounds(rest);
                match (op, l >= 0 && h < bl) {
                    (TapeOp::Quotient, true) => Some(whole),
                    (_, true) => Some(rest),
                    (TapeOp::Quotient, false) => {
                        let ends = [l.div_euclid(bl), l.div_euclid(bh), h.div_euclid(bl), h.div_euclid(bh)];
                        let range = (ends[0].min(ends[1]), ends[2].max(ends[3]));
                        let q = self.made(op, rest, b, range)?;
                        self.plus(whole, q, 1)
                    }
                    _ => self.made(op, rest, b, (0, bh - 1)),
                }
            }
            TapeOp::Gcd => self.common(a, b),
        }
    }

    /// The result of an operation as a base of its own.
    fn made(&mut self, op: TapeOp, a: Linear, b: Linear, range: (i128, i128)) -> Option<Linear> {
        if range.0 < -LIMIT || range.1 > LIMIT {
            return None;
        }
        let swap =
            matches!(op, TapeOp::Mul | TapeOp::Min | TapeOp::Max | TapeOp::Gcd | TapeOp::Scaled | TapeOp::Bounds)
                && b < a;
        let key = if swap { (op, b, a) } else { (op, a, b) };
        let base = match self.bases_by_op.get(&key) {
            Some(k) => *k,
            None => {
                let now = op.apply(self.now(key.1), self.now(key.2));
                let k = self.base(TapeBase::Op(key.0, key.1, key.2), now, range);
                self.bases_by_op.insert(key, k);
                k
            }
        };
        Some(Linear { sum: self.alone(base), k: 1, c: 0 })
    }

    fn within_limit(&self, l: Linear) -> Option<Linear> {
        let (lo, hi) = self.bounds(l);
        (lo >= -LIMIT && hi <= LIMIT).then_some(l)
    }

    /// `a + k * b`.
    pub(crate) fn plus(&mut self, a: Linear, b: Linear, k: i128) -> Option<Linear> {
        let b = b.scale(k)?;
        let c = a.c.checked_add(b.c)?;
        if a.k == 0 || b.k == 0 {
            let l = if a.k == 0 { b } else { a };
            return self.within_limit(Linear { c, ..l });
        }
        if a.sum == b.sum {
            let k = a.k.checked_add(b.k)?;
            return self.within_limit(if k == 0 { Linear::constant(c) } else { Linear { sum: a.sum, k, c } });
        }
        let mut terms: TapeTerms = SmallVec::new();
        let of = |l: Linear| self.sums[l.sum as usize].terms.iter().map(move |t| (t.0, t.1.checked_mul(l.k)));
        for (base, k) in of(a).chain(of(b)) {
            terms.push((base, k?));
        }
        self.linear_in(terms, c)
    }

    /// The sum of these terms, in any order, and a constant.
    pub(crate) fn linear_in(&mut self, mut terms: TapeTerms, c: i128) -> Option<Linear> {
        terms.sort_unstable_by_key(|t| t.0);
        let mut joined: TapeTerms = SmallVec::new();
        for (b, k) in terms {
            match joined.last_mut() {
                Some(l) if l.0 == b => l.1 = l.1.checked_add(k)?,
                _ => joined.push((b, k)),
            }
        }
        joined.retain(|t| t.1 != 0);
        let Some(first) = joined.first() else { return Some(Linear::constant(c)) };
        if joined.len() > MAX_TERMS {
            return None;
        }
        let common = joined.iter().fold(0, |g, t| gcd(g, t.1)) * first.1.signum();
        joined.iter_mut().for_each(|t| t.1 /= common);
        let sum = match self.sums_by_terms.get(&joined) {
            Some(s) => *s,
            None => {
                let mut now = 0i128;
                for (b, k) in &joined {
                    let x = self.sums[self.alone(*b) as usize].now;
                    now = now.checked_add(k.checked_mul(x)?)?;
                }
                let s = self.sums.len() as u32;
                let (lo, hi) = (i128::MIN, i128::MAX);
                self.sums_by_terms.insert(joined.clone(), s);
                self.sums.push(TapeSum { terms: joined, now, lo, hi, asked: (None, None), not: SmallVec::new() });
                s
            }
        };
        self.within_limit(Linear { sum, k: common, c })
    }

    /// The product, linear in products of bases.
    fn product(&mut self, a: Linear, b: Linear, range: (i128, i128)) -> Option<Linear> {
        if a.k == 0 || b.k == 0 {
            let r = if a.k == 0 { b.scale(a.c)? } else { a.scale(b.c)? };
            return self.within_limit(r);
        }
        let (s, t) = (self.sums[a.sum as usize].terms.clone(), self.sums[b.sum as usize].terms.clone());
        if s.len() * t.len() + s.len() + t.len() > MAX_TERMS {
            return self.made(TapeOp::Mul, a, b, range);
        }
        let mut terms: TapeTerms = SmallVec::new();
        for (x, j) in &s {
            for (y, k) in &t {
                let of = |b: u32| Linear { sum: self.alone(b), k: 1, c: 0 };
                let (x, y) = (of(*x), of(*y));
                let ((xl, xh), (yl, yh)) = (self.bounds(x), self.bounds(y));
                let v = [xl.checked_mul(yl)?, xl.checked_mul(yh)?, xh.checked_mul(yl)?, xh.checked_mul(yh)?];
                let least = v.iter().copied().fold(i128::MAX, i128::min);
                let most = v.iter().copied().fold(i128::MIN, i128::max);
                let p = self.made(TapeOp::Mul, x, y, (least, most))?;
                let k = j.checked_mul(*k)?.checked_mul(a.k)?.checked_mul(b.k)?;
                terms.push((self.sums[p.sum as usize].terms[0].0, k));
            }
        }
        for (own, k, other) in [(&s, a.k, b.c), (&t, b.k, a.c)] {
            for (x, j) in own {
                terms.push((*x, j.checked_mul(k)?.checked_mul(other)?));
            }
        }
        let r = self.linear_in(terms, a.c.checked_mul(b.c)?)?;
        self.known(r, range);
        Some(r)
    }

    /// `floor(a / d)`, d above zero: what it divides is taken out.
    fn quotient(&mut self, a: Linear, d: i128) -> Option<Linear> {
        let (lo, hi) = self.bounds(a);
        if lo.div_euclid(d) == hi.div_euclid(d) {
            return Some(Linear::constant(lo.div_euclid(d)));
        }
        let (mut whole, mut rest): (TapeTerms, TapeTerms) = Default::default();
        for (x, k) in &self.sums[a.sum as usize].terms {
            let k = k.checked_mul(a.k)?;
            whole.push((*x, k.div_euclid(d)));
            rest.push((*x, k.rem_euclid(d)));
        }
        let whole = self.linear_in(whole, a.c.div_euclid(d))?;
        let rest = self.linear_in(rest, a.c.rem_euclid(d))?;
        let (l, h) = self.bounds(rest);
        let (l, h) = (l.div_euclid(d), h.div_euclid(d));
        let q =
            if l == h { Linear::constant(l) } else { self.made(TapeOp::Quotient, rest, Linear::constant(d), (l, h))? };
        let r = self.plus(whole, q, 1)?;
        self.known(r, (lo.div_euclid(d), hi.div_euclid(d)));
        Some(r)
    }

    /// `a` as a multiple of `d` and a rest: when `d` is a multiple of a base, products with that
    /// base are multiples.
    fn taken_out(&mut self, a: Linear, d: Linear) -> Option<(Linear, Linear)> {
        let (mut whole, mut rest): (TapeTerms, TapeTerms) = Default::default();
        let mut number = 0;
        let terms = if a.k == 0 { &[][..] } else { &self.sums[a.sum as usize].terms[..] };
        for (x, k) in terms {
            let k = k.checked_mul(a.k)?;
            let other = match self.bases[*x as usize] {
                _ if d.c != 0 || k % d.k != 0 => None,
                _ if self.alone(*x) == d.sum => Some(Linear::constant(1)),
                TapeBase::Op(TapeOp::Mul, p, q) if q == (Linear { sum: d.sum, k: 1, c: 0 }) => Some(p),
                TapeBase::Op(TapeOp::Mul, p, q) if p == (Linear { sum: d.sum, k: 1, c: 0 }) => Some(q),
                _ => None,
            };
            match other {
                Some(Linear { k: 1, c: 0, sum }) if self.sums[sum as usize].terms.len() == 1 => {
                    whole.push((self.sums[sum as usize].terms[0].0, k / d.k));
                }
                Some(Linear { k: 0, .. }) => number += k / d.k,
                _ => rest.push((*x, k)),
            }
        }
        Some((self.linear_in(whole, number)?, self.linear_in(rest, a.c)?))
    }

    fn common(&mut self, a: Linear, b: Linear) -> Option<Linear> {
        let (mut a, mut b) = if b.k == 0 { (b, a) } else { (a, b) };
        // What all coefficients have in common is taken out.
        let factor = [a.k, a.c, b.k, b.c].into_iter().fold(0, gcd);
        for l in [&mut a, &mut b] {
            (l.k, l.c) = (l.k / factor, l.c / factor);
        }
        let whole = self.common_of_coprime(a, b)?;
        self.within_limit(whole.scale(factor)?)
    }

    fn common_of_coprime(&mut self, a: Linear, b: Linear) -> Option<Linear> {
        let (lo, hi) = self.bounds(b);
        if a.k == 0 && a.c != 0 && b.k % a.c == 0 {
            return Some(Linear::constant(gcd(a.c, b.c)));
        }
        // Of one sum, or of one with nothing: the factors' times the sum.
        if b.c == 0 && a.c == 0 && (a.k == 0 || a.sum == b.sum) {
            let (l, h) = self.range(b.sum);
            let k = gcd(a.k, b.k);
            if l >= 0 || h <= 0 {
                return Some(Linear { sum: b.sum, k: if l >= 0 { k } else { -k }, c: 0 });
            }
        }
        let (al, ah) = self.bounds(a);
        let most = if a.k == 0 && a.c != 0 { a.c.abs() } else { [lo, hi, al, ah].map(i128::abs).into_iter().max()? };
        self.made(TapeOp::Gcd, a, b, (i128::from(a.k == 0 && a.c != 0), most))
    }
}
