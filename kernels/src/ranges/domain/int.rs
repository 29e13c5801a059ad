//! The numbers of an evaluation: 128-bit integers that know whether they depend on the launch.
//!
//! Owns their arithmetic. A number that depends on the launch (a parameter word, a size of the
//! grid, or a value computed from them) carries an index into the `tape`. Every operation on it and
//! every comparison is recorded there. The only other way to its value is [`Int::pin`], which
//! declares that the result holds for this value only. So the tape has seen everything that a
//! result depends on.

use super::tape::{self, TapeOp};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

/// Infinity: bounds at or beyond it say nothing.
pub(crate) const INF: Int = Int::new(1 << 110);

/// A number. (The words of its value apart, so that it is aligned to 8 bytes only.)
#[derive(Clone, Copy, Default)]
pub(crate) struct Int {
    low: u64,
    high: i64,
    /// What is known of it, counted from one; 0: it is the same in all launches.
    slot: u32,
}

impl Int {
    #[inline]
    pub(crate) const fn new(v: i128) -> Int {
        Int { low: v as u64, high: (v >> 64) as i64, slot: 0 }
    }

    /// A number that depends on the launch: the tape makes these.
    #[inline]
    pub(crate) const fn traced(v: i128, slot: u32) -> Int {
        Int { low: v as u64, high: (v >> 64) as i64, slot }
    }

    /// For the tape only: the value in this launch.
    #[inline]
    pub(crate) const fn now(self) -> i128 {
        (self.high as i128) << 64 | self.low as i128
    }

    #[inline]
    pub(crate) const fn slot(self) -> u32 {
        self.slot
    }

    /// The value, as one that the result depends on.
    #[inline]
    pub(crate) fn pin(self) -> i128 {
        if self.slot != 0 {
            tape::pin(self);
        }
        self.now()
    }

    /// `2^k`
    #[inline]
    pub(crate) const fn pow2(k: u32) -> Int {
        Int::new(1 << k)
    }

    #[inline]
    fn op(self, op: TapeOp, o: Int, v: i128) -> Int {
        if self.slot | o.slot == 0 { Int::new(v) } else { tape::record(op, self, o, v) }
    }

    #[inline]
    fn both(self, op: TapeOp, o: Int) -> Int {
        self.op(op, o, op.apply(self.now(), o.now()))
    }

    #[inline]
    pub(crate) fn wrapping_add(self, o: impl Into<Int>) -> Int {
        self.both(TapeOp::Add, o.into())
    }
    #[inline]
    pub(crate) fn wrapping_mul(self, o: impl Into<Int>) -> Int {
        self.both(TapeOp::Mul, o.into())
    }
    #[inline]
    pub(crate) fn checked_add(self, o: Int) -> Option<Int> {
        let v = self.now().checked_add(o.now());
        self.checked(TapeOp::Add, o, v)
    }
    /// (Almost all factors are small: then one instruction does it.)
    #[inline]
    pub(crate) fn checked_mul(self, o: Int) -> Option<Int> {
        let v = match (self.short(), o.short()) {
            (Some(x), Some(y)) => i128::from(x) * i128::from(y),
            _ => return self.checked(TapeOp::Mul, o, self.now().checked_mul(o.now())),
        };
        Some(self.op(TapeOp::Mul, o, v))
    }

    #[inline]
    fn checked(self, op: TapeOp, o: Int, v: Option<i128>) -> Option<Int> {
        if v.is_none() {
            self.pin();
            o.pin();
        }
        Some(self.op(op, o, v?))
    }

    #[inline]
    fn short(self) -> Option<i64> {
        (self.low as i64 >> 63 == self.high).then_some(self.low as i64)
    }

    /// Rounds down; the divisor is not zero.
    #[inline]
    pub(crate) fn div_euclid(self, d: impl Into<Int>) -> Int {
        self.both(TapeOp::Quotient, d.into())
    }
    /// Never negative; the divisor is not zero.
    #[inline]
    pub(crate) fn rem_euclid(self, d: impl Into<Int>) -> Int {
        self.both(TapeOp::Remainder, d.into())
    }
    /// `floor(self / d)`, whatever the signs; the divisor is not zero.
    #[inline]
    pub(crate) fn floor_div(self, d: Int) -> Int {
        if d < 0 { (-self).div_euclid(-d) } else { self.div_euclid(d) }
    }
    /// Is it a multiple of `d`, which is not zero?
    #[inline]
    pub(crate) fn divides(self, d: Int) -> bool {
        self.rem_euclid(d) == 0
    }
    #[inline]
    pub(crate) fn min(self, o: impl Into<Int>) -> Int {
        self.both(TapeOp::Min, o.into())
    }
    #[inline]
    pub(crate) fn max(self, o: impl Into<Int>) -> Int {
        self.both(TapeOp::Max, o.into())
    }
    #[inline]
    pub(crate) fn clamp(self, lo: impl Into<Int>, hi: impl Into<Int>) -> Int {
        self.max(lo).min(hi)
    }
    #[inline]
    pub(crate) fn abs(self) -> Int {
        if self.slot == 0 { Int::new(self.now().wrapping_abs()) } else { self.max(-self) }
    }
    /// Greatest common divisor, never negative.
    #[inline]
    pub(crate) fn gcd(self, o: Int) -> Int {
        self.both(TapeOp::Gcd, o)
    }
    /// Product of a coefficient and a bound.
    #[inline]
    pub(crate) fn mul_sat(self, o: Int) -> Int {
        self.both(TapeOp::Scaled, o)
    }
    /// Sum of two upper bounds (`INF` wins) or two lower ones (pass negated).
    #[inline]
    pub(crate) fn add_hi(self, o: Int) -> Int {
        self.both(TapeOp::Bounds, o)
    }
    /// `floor(self / d)` of a bound, `d > 0`.
    #[inline]
    pub(crate) fn div_bound(self, d: Int) -> Int {
        if d == 1 || self >= INF || self <= -INF { self } else { self.div_euclid(d) }
    }
    /// `floor(self / d)` of an upper bound, `d > 0`. One at `-INF` was rounded up to it, and is a
    /// number like any other: what it bounds, divided, may be far above.
    #[inline]
    pub(crate) fn div_upper(self, d: Int) -> Int {
        if d == 1 || self >= INF { self } else { self.div_euclid(d) }
    }
    /// Says nothing as a bound?
    #[inline]
    pub(crate) fn is_infinite(self) -> bool {
        self >= INF || self <= -INF
    }
}

macro_rules! from {
    ($($t:ty),*) => {$(
        impl From<$t> for Int {
            #[inline]
            fn from(v: $t) -> Int { Int::new(v as i128) }
        }
    )*};
}
from!(u8, u16, u32, u64, usize, i32, i64, i128);

macro_rules! operator {
    ($($trait:ident $f:ident $op:ident $checked:ident),*) => {$(
        impl $trait<Int> for Int {
            type Output = Int;
            #[inline]
            fn $f(self, o: Int) -> Int {
                let v = self.now().$checked(o.now());
                debug_assert!(v.is_some(), "{self:?} {:?} {o:?}", TapeOp::$op);
                self.op(TapeOp::$op, o, v.unwrap_or_else(|| TapeOp::$op.apply(self.now(), o.now())))
            }
        }
        impl $trait<i128> for Int {
            type Output = Int;
            #[inline]
            fn $f(self, o: i128) -> Int { $trait::$f(self, Int::new(o)) }
        }
    )*};
}
operator!(Add add Add checked_add, Sub sub Sub checked_sub, Mul mul Mul checked_mul);

impl Neg for Int {
    type Output = Int;
    #[inline]
    fn neg(self) -> Int {
        Int::new(0).op(TapeOp::Sub, self, self.now().wrapping_neg())
    }
}

impl AddAssign for Int {
    #[inline]
    fn add_assign(&mut self, o: Int) {
        *self = *self + o;
    }
}

impl SubAssign for Int {
    #[inline]
    fn sub_assign(&mut self, o: Int) {
        *self = *self - o;
    }
}

impl PartialEq for Int {
    #[inline]
    fn eq(&self, o: &Int) -> bool {
        let same = self.now() == o.now();
        // The same slot is the same number in every launch.
        if self.slot != o.slot {
            tape::compared(*self, *o, same, tape::Relation::Equal);
        }
        same
    }
}

impl Eq for Int {}

impl PartialEq<i128> for Int {
    #[inline]
    fn eq(&self, o: &i128) -> bool {
        *self == Int::new(*o)
    }
}

/// Is the one below the other, in this launch and all that the result is for?
#[inline]
fn below(a: Int, b: Int) -> bool {
    let less = a.now() < b.now();
    if a.slot != b.slot {
        tape::compared(a, b, less, tape::Relation::Less);
    }
    less
}

impl Ord for Int {
    #[inline]
    fn cmp(&self, o: &Int) -> Ordering {
        if below(*self, *o) {
            Ordering::Less
        } else if self == o {
            Ordering::Equal
        } else {
            Ordering::Greater
        }
    }
}

impl PartialOrd for Int {
    #[inline]
    fn partial_cmp(&self, o: &Int) -> Option<Ordering> {
        Some(self.cmp(o))
    }
    #[inline]
    fn lt(&self, o: &Int) -> bool {
        below(*self, *o)
    }
    #[inline]
    fn gt(&self, o: &Int) -> bool {
        below(*o, *self)
    }
    #[inline]
    fn le(&self, o: &Int) -> bool {
        !below(*o, *self)
    }
    #[inline]
    fn ge(&self, o: &Int) -> bool {
        !below(*self, *o)
    }
}

impl PartialOrd<i128> for Int {
    #[inline]
    fn partial_cmp(&self, o: &i128) -> Option<Ordering> {
        Some(self.cmp(&Int::new(*o)))
    }
    #[inline]
    fn lt(&self, o: &i128) -> bool {
        *self < Int::new(*o)
    }
    #[inline]
    fn gt(&self, o: &i128) -> bool {
        *self > Int::new(*o)
    }
    #[inline]
    fn le(&self, o: &i128) -> bool {
        *self <= Int::new(*o)
    }
    #[inline]
    fn ge(&self, o: &i128) -> bool {
        *self >= Int::new(*o)
    }
}

impl Hash for Int {
    /// While a tape is recorded nothing of the value: which keys are equal is then asked, and seen,
    /// by comparing.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        if !tape::recording() {
            state.write_u64(self.low ^ self.high as u64);
        }
    }
}

impl std::fmt::Debug for Int {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.now())?;
        if self.slot == 0 { Ok(()) } else { write!(f, "@{}", self.slot) }
    }
}
