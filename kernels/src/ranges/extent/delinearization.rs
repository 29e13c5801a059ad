//! Addresses made of quotients and remainders of one number. A copy over a shape of several
//! dimensions counts its elements, takes the count apart by divisions, and adds each digit times
//! the pitch of its dimension. (Compilers call the recovery of such subscripts delinearization.)
//!
//! Owns the step from such a form to its bytes. `bounds` only finds the bounds of each quotient by
//! itself, and these cover too much: that a quotient is at its end only while the remainder is
//! below some number is a bound of neither.
//!
//! # Why the result is an upper bound, and when it is exact
//!
//! Let N be the number (a form over atoms) and D1 | D2 | ... | Dm the divisors of the quotients of
//! N in the address. With `digit_0 = N mod D1`, `digit_k = floor(N / Dk) mod (Dk+1 / Dk)` and
//! `digit_m = floor(N / Dm)`, N and all quotients are sums of digits with known weights. So the
//! address is such a sum too: `sum(pitch_k * digit_k) + c + rest`. This holds for all integers N,
//! also negative ones, because quotients are rounded down. `floor((floor(N / a) + k) / b)` is
//! `floor((N + a*k) / (a*b))`, and `floor((N + k) / a)` is `floor(N / a) + k / a` when a divides k.
//! So quotients of quotients, and of numbers that differ by constants, are brought to one N or stay
//! part of the rest.
//!
//! N is within bounds `lo..=hi` in every thread that makes the access. The digits of the integers
//! from `lo` to `hi`, in their order, are a few boxes: whole ranges of the highest digit with all
//! lower digits free, and at both ends one value of it with bounds on what is below. Each box times
//! the pitches is one progression for each digit. With the bounds of the rest added, it holds every
//! address. Nothing is assumed of how N and the rest depend on each other.
//!
//! When there is no rest, the address depends on N alone. If N is shown to take every value from
//! `lo` to `hi` (by `exactness`, on the form of N, under the same guards), the boxes are exactly
//! the addresses. Unrolled loops have several accesses whose numbers N are a block apart. The sets
//! of N of such accesses are joined first, so that they are one range before it is taken apart.
//!
//! The result is used only when it is inside what the bounds of the form say (their hull, and one
//! progression without gaps), and smaller.

use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::byte_set::{ByteSet, Dims};
use crate::ranges::domain::constraints::ConstraintSet;
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::eval::no_wrap::nested_floor;
use crate::ranges::eval::state::atoms::Atoms;
use crate::ranges::extent::address::extent_of;
use crate::ranges::extent::coalesce::{coalesce, merge};
use crate::ranges::extent::exactness::shape;
use crate::ranges::extent::reached::AccessContext;
use smallvec::SmallVec;

/// Boxes that one range is taken apart to at most.
const MAX_BOXES: usize = 8;
/// Quotients of one number.
const MAX_DIGITS: usize = 8;
/// Bounds that one evaluation may compute to delinearize addresses.
const MAX_DELINEARIZATION: u32 = 50_000;
/// Numbers from here on are not calculated with.
const LARGE: Int = Int::pow2(62);

/// How an address follows from the digits of a number.
#[derive(Clone, PartialEq, Debug)]
struct Weights {
    /// Digits from the lowest: the divisor below it, and the pitch. The last one has no end.
    digits: SmallVec<[(Int, Int); 4]>,
    /// Added to the sum of the digits: least and greatest, and the progressions in between.
    rest: (Int, Int),
    rest_dims: Dims,
    width: Int,
}

/// A byte set that follows from the digits of a number.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Delinearized {
    weights: Weights,
    /// What the number may be.
    number: ByteSet,
    /// Nothing else is in the address.
    alone: bool,
}

/// A quotient: numerator without its constant, constant, divisor, what it is too large by.
type Quotient = (AffineForm, Int, Int, Int);

/// The offset as digits of a number, if that says more than its extent `plain`.
pub(crate) fn delinearize(
    eval: &mut Eval<'_>,
    f: &AffineForm,
    made: AccessContext<'_>,
    plain: &ByteSet,
) -> Option<Box<Delinearized>> {
    let ByteSet::Bounded { dims, exact: false, .. } = plain else { return None };
    let floors = f.terms.iter().filter(|t| eval.atoms[t.0].floor.is_some()).count();
    if floors == 0 || floors > MAX_DIGITS || dims.len() > 1 {
        return None;
    }
    // What this asks for is no part of what the addresses themselves may cost.
    let spent = eval.atoms.budget.total();
    if eval.atoms.budget.exhausted() || eval.atoms.budget.delinearization > MAX_DELINEARIZATION {
        return None;
    }
    let found = find_digits(eval, f, made, plain);
    eval.atoms.budget.delinearization += eval.atoms.budget.take_back(spent);
    found
}

fn find_digits(
    eval: &mut Eval<'_>,
    f: &AffineForm,
    made: AccessContext<'_>,
    plain: &ByteSet,
) -> Option<Box<Delinearized>> {
    let (number, weights) = weights(eval, f, made.cons, made.width)?;
    let ByteSet::Bounded { lo, hi, dims, exact, .. } =
        extent_of(eval, &number, AccessContext { width: 1.into(), ..made })
    else {
        return None;
    };
    let alone = weights.rest.0 == weights.rest.1;
    let number = ByteSet::Bounded { lo, hi, dims, width: Int::new(1), exact: exact && alone };
    let digits = Delinearized { weights, number, alone };
    let boxes = digits.boxes(&digits.number)?;
    less(&boxes, plain).then(|| Box::new(digits))
}

/// The number that the digits of a form are of, and their weights.
fn weights(eval: &mut Eval<'_>, f: &AffineForm, cons: &ConstraintSet, width: Int) -> Option<(AffineForm, Weights)> {
    let mut quotients: SmallVec<[(AtomId, Quotient); 4]> = SmallVec::new();
    for (x, _) in &f.terms {
        if let Some(quotient) = quotient(&eval.atoms, *x, cons) {
            quotients.push((*x, quotient));
        }
    }
    // The one with the largest divisor can not be expressed by another.
    let (_, (base, offset, ..)) = quotients.iter().max_by_key(|q| q.1.2)?.clone();
    let number = base.plus(offset);
    // (A number that moves in steps is not taken for all integers.)
    if base.gcd() != 1 {
        return None;
    }
    let mut rest = f.clone();
    let mut digits: SmallVec<[(Int, Int); 4]> = SmallVec::from_slice(&[(Int::new(1), Int::new(0))]);
    quotients.sort_by_key(|q| q.1.2);
    for (x, (n, k, d, more)) in quotients {
        // (A smaller quotient may have been of what this one leaves: then it counts there.)
        let c = rest.coef(x);
        // What the numerators differ by, divided, is what the quotients do.
        let mut apart = number.add(&n, -1).plus(-k);
        let last = digits.last_mut()?;
        let whole = apart.c.divides(d) && apart.terms.iter().all(|t| t.1.divides(d));
        if !whole || !d.divides(last.0) || c.abs() >= LARGE || d >= LARGE {
            continue;
        }
        apart.terms.iter_mut().for_each(|t| t.1 = t.1.div_euclid(d));
        apart.c = apart.c.div_euclid(d).checked_add(more)?;
        rest = rest.without(x).combine(Int::new(1), &apart, -c)?;
        if last.0 == d {
            last.1 += c;
        } else {
            digits.push((d, c));
        }
    }
    // The number itself, when it is part of the sum as a whole.
    let (x, k) = *base.terms.first()?;
    let part = rest.coef(x);
    if part != 0 && part.divides(k) && base.terms.iter().all(|t| rest.coef(t.0) * k == part * t.1) {
        digits[0].1 = part.div_euclid(k);
        rest = rest.combine(Int::new(1), &number, -digits[0].1)?;
    }
    if digits.len() < 2 {
        return None;
    }
    // Weights of quotients to pitches of digits: a quotient is the digit plus the next quotient
    // times what lies between.
    for k in 1..digits.len() {
        let below = digits[k - 1];
        digits[k].1 = digits[k].1.checked_add(below.1.checked_mul(digits[k].0.div_euclid(below.0))?)?;
    }
    if digits.iter().any(|d| d.1.abs() >= LARGE) {
        return None;
    }
    let bounds = eval.atoms.bounds_in(&rest, cons, true);
    if bounds.0.is_infinite() || bounds.1.is_infinite() || bounds.0 > bounds.1 {
        return None;
    }
    let (rest_dims, _) = shape(eval, &rest, cons, bounds, false);
    Some((number, Weights { digits, rest: bounds, rest_dims, width }))
}

/// An atom that is a quotient, however often divided and by whatever reciprocals: the numerator
/// without its constant, the constant, the divisor, and what the quotient of these is too large
/// by.
fn quotient(atoms: &Atoms, x: AtomId, cons: &ConstraintSet) -> Option<Quotient> {
    let floor = atoms[x].floor.clone()?;
    let (mut n, mut d, mut more) = (floor.0.clone(), floor.1, Int::new(0));
    for _ in 0..2 * MAX_DIGITS {
        let g = n.gcd().gcd(d);
        if g > 1 && g < d {
            // floor((g*n + c) / (g*d)) = floor((n + floor(c / g)) / d)
            (n, d) = (over(&n, g), d.div_euclid(g));
        } else if let Some((m, e, k)) = by_reciprocal(atoms, &n, d, cons) {
            (n, d, more) = (m, e, more.checked_add(k)?);
        } else if let Some((inner, unit)) = nested_floor(atoms, &n) {
            (n, d) = (inner, d.checked_mul(unit).filter(|d| *d < Int::pow2(80))?);
        } else {
            break;
        }
    }
    let k = n.c;
    n.c = Int::new(0);
    Some((n, k, d, more))
}

/// `floor((m*n + c) / d)` as `floor((n + o) / e) - k`: c is a multiple of m less a multiple of
/// d, when o was added before the product and what d divides was taken out after it. Why e is
/// the divisor is explained at `reciprocal` in `eval/no_wrap.rs`.
fn by_reciprocal(atoms: &Atoms, f: &AffineForm, d: Int, cons: &ConstraintSet) -> Option<(AffineForm, Int, Int)> {
    let m = f.gcd();
    if m < 2 || m >= d {
        return None;
    }
    let k = if f.c.divides(m) { Int::new(0) } else { Int::new(multiple(f.c.pin(), d.pin(), m.pin())?) };
    let n = over(&f.plus(k.checked_mul(d)?), m);
    let e = -((-d).div_euclid(m));
    let (lo, hi) = atoms.bounds_in(&n, cons, true);
    let fits = lo >= 0 && hi < INF && hi.checked_mul(m * e - d).is_some_and(|x| x < d);
    fits.then_some((n, e, k))
}

/// The terms divided by what divides them, the constant rounded down.
fn over(f: &AffineForm, m: Int) -> AffineForm {
    AffineForm { terms: f.terms.iter().map(|t| (t.0, t.1.div_euclid(m))).collect(), c: f.c.div_euclid(m) }
}

/// The least `k >= 0` for which `c + k*d` is a multiple of m, if there is one.
fn multiple(c: i128, d: i128, m: i128) -> Option<i128> {
    if m >= 1 << 62 {
        return None;
    }
    // Euclid: x * d = g modulo m.
    let (mut a, mut b, mut x, mut y) = (d.rem_euclid(m), m, 1i128, 0i128);
    while b != 0 {
        let q = a / b;
        (a, b, x, y) = (b, a - q * b, y, x - q * y);
    }
    let (want, step) = ((-c).rem_euclid(m), m / a);
    (want % a == 0).then(|| (want / a).rem_euclid(step) * x.rem_euclid(step) % step)
}

impl Delinearized {
    /// The bytes when the number is in this set, unless they are too many boxes.
    fn boxes(&self, number: &ByteSet) -> Option<Vec<ByteSet>> {
        let ByteSet::Bounded { lo, hi, exact, .. } = number else { return None };
        let top = self.weights.digits.len() - 1;
        let mut ranges = Vec::new();
        self.weights.split(top, *lo, *hi - 1, Vec::new(), &mut ranges);
        if ranges.len() > MAX_BOXES {
            return None;
        }
        // (Gaps between the numbers are filled.)
        let exact = *exact && self.alone && dense(number);
        ranges.iter().map(|r| self.weights.bytes(r, exact)).collect()
    }
}

impl Weights {
    /// The digits up to `k` of the numbers from `lo` to `hi` as boxes, below those that are known
    /// (highest first).
    fn split(&self, k: usize, lo: Int, hi: Int, above: Vec<(Int, Int)>, out: &mut Vec<Vec<(Int, Int)>>) {
        let with = |r: (Int, Int)| {
            let mut v = above.clone();
            v.push(r);
            v
        };
        if k == 0 {
            out.push(with((lo, hi)));
            return;
        }
        let d = self.digits[k].0;
        let (mut first, mut last) = (lo.div_euclid(d), hi.div_euclid(d));
        let (low, high) = (lo - first * d, hi - last * d);
        if first == last {
            return self.split(k - 1, low, high, with((first, first)), out);
        }
        if low != 0 {
            self.split(k - 1, low, d - 1, with((first, first)), out);
            first += Int::new(1);
        }
        if high != d - 1 {
            self.split(k - 1, Int::new(0), high, with((last, last)), out);
            last -= Int::new(1);
        }
        if first <= last {
            let mut v = with((first, last));
            for j in (0..k).rev() {
                v.push((Int::new(0), self.digits[j + 1].0.div_euclid(self.digits[j].0) - 1));
            }
            out.push(v);
        }
    }

    /// The least and the greatest value of a box of digits (highest first).
    fn ends(&self, digits: &[(Int, Int)]) -> Option<(Int, Int)> {
        let (mut lo, mut hi) = self.rest;
        for ((first, last), (_, pitch)) in digits.iter().zip(self.digits.iter().rev()) {
            let ends = (pitch.checked_mul(*first)?, pitch.checked_mul(*last)?);
            lo += ends.0.min(ends.1);
            hi += ends.0.max(ends.1);
        }
        (lo.abs() < LARGE && hi.abs() < LARGE).then_some((lo, hi))
    }

    /// The bytes of a box of digits; `None` when progressions do not say it.
    fn bytes(&self, digits: &[(Int, Int)], exact: bool) -> Option<ByteSet> {
        let (lo, hi) = self.ends(digits)?;
        let mut dims = self.rest_dims.clone();
        for ((first, last), (_, pitch)) in digits.iter().zip(self.digits.iter().rev()) {
            if *pitch != 0 && first != last {
                dims.push((pitch.abs(), *last - *first + 1));
            }
        }
        let dims = merge(dims);
        (dims.len() <= 3).then(|| ByteSet::Bounded { lo, hi: hi + self.width, dims, width: self.width, exact })
    }
}

/// Values of a set of progressions, at most.
fn count(s: &ByteSet) -> Int {
    match s {
        ByteSet::Bounded { dims, .. } => dims.iter().fold(Int::new(1), |n, d| n.mul_sat(d.1)),
        ByteSet::Unknown { .. } => INF,
    }
}

/// Are the boxes inside `plain` (one progression), and do they say more?
fn less(boxes: &[ByteSet], plain: &ByteSet) -> bool {
    let ByteSet::Bounded { lo: from, dims: all, width, .. } = plain else { return false };
    let on = |by: Int| all.iter().all(|(step, _)| *step <= *width || by.divides(*step));
    let part = |b: &ByteSet| match b {
        ByteSet::Bounded { lo, dims, .. } => inside(b, plain) && on(*lo - *from) && dims.iter().all(|d| on(d.0)),
        ByteSet::Unknown { .. } => false,
    };
    let exact = boxes.iter().all(|b| matches!(b, ByteSet::Bounded { exact: true, .. }));
    let sum = boxes.iter().fold(Int::new(0), |n, b| n.add_hi(count(b)));
    boxes.iter().all(part) && (exact || sum < count(plain))
}

/// Sets of equal weights: the numbers of each, with the extent that holds anyway.
type Alike = (Box<Delinearized>, Vec<(ByteSet, ByteSet)>);

/// Joins delinearized sets of equal weights, and turns them into byte sets.
pub(crate) fn into_byte_sets(sets: Vec<(Box<Delinearized>, ByteSet)>, out: &mut Vec<ByteSet>) {
    let mut alike: Vec<Alike> = Vec::new();
    for (w, plain) in sets {
        let member = (w.number.clone(), plain);
        match alike.iter_mut().find(|a| a.0.weights == w.weights && a.0.alone == w.alone) {
            Some(a) => a.1.push(member),
            None => alike.push((w, vec![member])),
        }
    }
    for (w, members) in alike {
        let mut numbers: Vec<ByteSet> = members.iter().map(|m| m.0.clone()).collect();
        coalesce(&mut numbers, false);
        for n in &numbers {
            // What is joined with gaps stays apart: they would be filled.
            match w.boxes(n).filter(|_| dense(n)) {
                Some(b) => out.extend(b),
                None => members.iter().filter(|m| inside(&m.0, n)).for_each(|(number, plain)| match w.boxes(number) {
                    Some(b) => out.extend(b),
                    None => out.push(plain.clone()),
                }),
            }
        }
    }
}

/// Is it every number between its ends?
fn dense(s: &ByteSet) -> bool {
    matches!(s, ByteSet::Bounded { dims, .. } if dims.is_empty() || matches!(dims[..], [(step, _)] if step == 1))
}

/// Are the ends of `a` within those of `b`?
fn inside(a: &ByteSet, b: &ByteSet) -> bool {
    matches!((a, b), (ByteSet::Bounded { lo, hi, .. }, ByteSet::Bounded { lo: l, hi: h, .. }) if *l <= *lo && *hi <= *h)
}
