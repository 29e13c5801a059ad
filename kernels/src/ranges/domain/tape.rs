//! A record of what an evaluation did with the numbers of its launch, so that a launch with other
//! numbers need not be evaluated again. (The word is that of automatic differentiation: operations
//! are taped once and replayed.)
//!
//! Owns the record. Its arithmetic is in `tape_arithmetic`; `memo/replay.rs` reduces a tape to what
//! a replay needs.
//!
//! # What is recorded, and why a replay is an evaluation
//!
//! An evaluation reads its launch (parameter words, sizes of the grid) through [`input`] only;
//! block, cluster and shared memory are taken as they are. It can do three things with what it
//! gets: calculate, compare, and declare that it needs the value itself ([`pin`], see `int`). So
//! its course, and the formulas of the numbers in its result, are the same for every launch in
//! which all comparisons have the same outcome. The comparisons are kept as bounds. In a launch
//! within these bounds the formulas are the result, number for number.
//!
//! Numbers are linear in *bases*: inputs, and results of operations that are not linear (products,
//! quotients, minima, ...). A *sum* is such a combination without a constant and without a common
//! factor, so that `n - 1 < 128 * g` and `128 * g >= n` are bounds on one sum. Most comparisons
//! then say nothing new, or only move a bound of a sum. Sums also have bounds that follow from
//! those of their bases. Where these decide a comparison, nothing needs to be kept. That is why a
//! tape is short, and holds for many launches. Nothing wraps here: what may exceed 2^126 is pinned.
//!
//! A launch is checked against the bounds of all inputs and sums that were moved, after all
//! operations. The operations are total, so the order does not matter.
//!
//! Without recording, or when a tape gets too long, the inputs that something is done with are only
//! noted. The result then holds for launches that agree in these inputs.

use crate::effects::LaunchArgs;
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::domain::tape_arithmetic::Linear;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};

/// Numbers on one tape.
const MAX_SLOTS: usize = 16_000;

/// What a launch is read from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum LaunchInput {
    /// Parameter bytes: offset and number (at most 8).
    Bytes(u16, u8),
    /// Blocks along an axis.
    Grid(u8),
    /// Whether the word at an offset of the parameters lies where pointers do, and sizes do not.
    IsPointer(u16),
}

/// Words from here on are seldom anything but pointers: a step of eight gigabytes is rare, and
/// drivers hand out addresses above.
pub(crate) const LIKELY_POINTERS: std::ops::Range<u64> = 1 << 33..1 << 57;

impl LaunchInput {
    /// Its number in a launch (bytes beyond the parameters are zero).
    #[inline]
    pub(crate) fn read(self, launch: &LaunchArgs<'_>) -> u64 {
        match self {
            LaunchInput::Grid(d) => launch.grid.get(usize::from(d)).copied().unwrap_or(1).into(),
            LaunchInput::IsPointer(at) => LIKELY_POINTERS.contains(&LaunchInput::Bytes(at, 8).read(launch)).into(),
            LaunchInput::Bytes(at, n) => {
                let p = launch.params.get(usize::from(at)..).unwrap_or(&[]);
                let mut b = [0; 8];
                let n = p.len().min(usize::from(n));
                b[..n].copy_from_slice(&p[..n]);
                u64::from_le_bytes(b)
            }
        }
    }

    /// The parameter bytes that it is read from.
    pub(crate) fn bytes(self) -> Option<std::ops::Range<usize>> {
        let (at, bytes) = match self {
            LaunchInput::Bytes(at, bytes) => (at, bytes),
            LaunchInput::IsPointer(at) => (at, 8),
            LaunchInput::Grid(_) => return None,
        };
        Some(usize::from(at)..usize::from(at) + usize::from(bytes))
    }

    fn largest(self) -> i128 {
        match self {
            LaunchInput::Grid(_) => u32::MAX.into(),
            LaunchInput::IsPointer(_) => 1,
            LaunchInput::Bytes(_, n) => (1 << (8 * u32::from(n))) - 1,
        }
    }
}

/// An operation on two numbers. All are total.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum TapeOp {
    Add,
    Sub,
    Mul,
    /// Rounded down, for a divisor above zero.
    Quotient,
    Remainder,
    Min,
    Max,
    Gcd,
    /// Product of a coefficient and a bound: saturates at `INF`.
    Scaled,
    /// Sum of two upper bounds: saturates at `INF`, which wins.
    Bounds,
}

impl TapeOp {
    #[inline]
    pub(crate) fn apply(self, a: i128, b: i128) -> i128 {
        const TOP: i128 = INF.now();
        match self {
            TapeOp::Add => a.wrapping_add(b),
            TapeOp::Sub => a.wrapping_sub(b),
            TapeOp::Mul => a.wrapping_mul(b),
            TapeOp::Quotient => match (i64::try_from(a), i64::try_from(b)) {
                (Ok(x), Ok(y)) if y > 0 => x.div_euclid(y).into(),
                _ => a.checked_div_euclid(b).unwrap_or(0),
            },
            TapeOp::Remainder => match (i64::try_from(a), i64::try_from(b)) {
                (Ok(x), Ok(y)) if y > 0 => x.rem_euclid(y).into(),
                _ => a.checked_rem_euclid(b).unwrap_or(0),
            },
            TapeOp::Min => a.min(b),
            TapeOp::Max => a.max(b),
            TapeOp::Gcd => gcd(a, b),
            TapeOp::Scaled => match a.checked_mul(b) {
                Some(v) => v.clamp(-TOP, TOP),
                None if (a < 0) == (b < 0) => TOP,
                None => -TOP,
            },
            TapeOp::Bounds if a >= TOP || b >= TOP => TOP,
            TapeOp::Bounds => a.wrapping_add(b).clamp(-TOP, TOP),
        }
    }
}

/// Greatest common divisor, never negative.
pub(crate) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    if let (Ok(mut x), Ok(mut y)) = (u64::try_from(a), u64::try_from(b)) {
        while y != 0 {
            (x, y) = (y, x % y);
        }
        return x.into();
    }
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i128
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relation {
    Equal,
    Less,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum TapeBase {
    Input(LaunchInput),
    Op(TapeOp, Linear, Linear),
}

/// Bases with their factors: ascending, the first factor above zero, no common one.
pub(crate) type TapeTerms = SmallVec<[(u32, i128); 2]>;

#[derive(Debug)]
pub(crate) struct TapeSum {
    pub(crate) terms: TapeTerms,
    /// In this launch.
    pub(crate) now: i128,
    /// Bounds in every launch that the tape holds for.
    pub(crate) lo: i128,
    pub(crate) hi: i128,
    /// Those of them that a launch must be asked for.
    pub(crate) asked: (Option<i128>, Option<i128>),
    /// What it is not.
    pub(crate) not: SmallVec<[i128; 1]>,
}

/// One recording.
#[derive(Default)]
pub(crate) struct Tape {
    full: bool,
    pub(crate) bases: Vec<TapeBase>,
    pub(crate) sums: Vec<TapeSum>,
    alone: Vec<u32>,
    slots: Vec<Linear>,
    inputs: FxHashMap<LaunchInput, u32>,
    /// Inputs that something was done with.
    touched: Vec<LaunchInput>,
    /// The bases of these.
    touched_bases: FxHashSet<u32>,
    pub(crate) sums_by_terms: FxHashMap<TapeTerms, u32>,
    pub(crate) bases_by_op: FxHashMap<(TapeOp, Linear, Linear), u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    /// Numbers of the launch are plain.
    #[default]
    Off,
    /// They are noted.
    Noting,
    Recording,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Off) };
    static TAPE: RefCell<Tape> = RefCell::default();
}

/// Runs an evaluation, and returns what it left on its tape. Without `record` only the inputs that
/// something is done with are noted.
pub(crate) fn run<R>(record: bool, evaluate: impl FnOnce() -> R) -> (R, Tape) {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            MODE.set(Mode::Off);
            TAPE.take();
        }
    }
    TAPE.set(Tape { full: !record, ..Tape::default() });
    MODE.set(if record { Mode::Recording } else { Mode::Noting });
    let _reset = Reset;
    let result = evaluate();
    (result, TAPE.take())
}

/// Is this evaluation recorded?
pub(crate) fn recording() -> bool {
    MODE.get() == Mode::Recording
}

/// A number of the launch.
pub(crate) fn input(what: LaunchInput, launch: &LaunchArgs<'_>) -> Int {
    let v = what.read(launch).into();
    if MODE.get() == Mode::Off { Int::new(v) } else { TAPE.with_borrow_mut(|t| t.input(what, v)) }
}

/// The result of an operation, one of whose operands depends on the launch; `v` in this one.
#[cold]
#[inline(never)]
pub(crate) fn record(op: TapeOp, a: Int, b: Int, v: i128) -> Int {
    TAPE.with_borrow_mut(|t| {
        if t.touch(a) | t.touch(b) {
            return Int::new(v);
        }
        match t.calculate(op, t.linear(a), t.linear(b)) {
            Some(l) => t.slot(l, v),
            None => {
                t.fix(a);
                t.fix(b);
                Int::new(v)
            }
        }
    })
}

/// How two numbers compared.
#[cold]
#[inline(never)]
pub(crate) fn compared(a: Int, b: Int, holds: bool, how: Relation) {
    TAPE.with_borrow_mut(|t| {
        if t.touch(a) | t.touch(b) {
            return;
        }
        let Some(d) = t.plus(t.linear(a), t.linear(b), -1) else {
            t.fix(a);
            t.fix(b);
            return;
        };
        match (how, holds) {
            (Relation::Less, true) => t.assume_at_most(d, -1),
            (Relation::Less, false) => t.assume_at_least(d, 0),
            (Relation::Equal, true) => {
                t.assume_at_most(d, 0);
                t.assume_at_least(d, 0);
            }
            (Relation::Equal, false) => t.assume_not_zero(d),
        }
    });
}

/// The result is for this value of a number only.
#[cold]
#[inline(never)]
pub(crate) fn pin(a: Int) {
    TAPE.with_borrow_mut(|t| {
        t.touch(a);
        t.fix(a);
    });
}

fn floor_div(a: i128, b: i128) -> i128 {
    if b < 0 { (-a).div_euclid(-b) } else { a.div_euclid(b) }
}

impl Tape {
    /// The sum that is a base alone.
    pub(crate) fn alone(&self, base: u32) -> u32 {
        self.alone[base as usize]
    }

    fn input(&mut self, what: LaunchInput, v: i128) -> Int {
        let base = match self.inputs.get(&what) {
            Some(b) => *b,
            None => {
                let b = self.base(TapeBase::Input(what), v, (0, what.largest()));
                self.inputs.insert(what, b);
                b
            }
        };
        // Once for each time it is asked for, in any mode.
        self.slots.push(Linear { sum: self.alone[base as usize], k: 1, c: 0 });
        Int::traced(v, self.slots.len() as u32)
    }

    /// Is there no recording, or did it get too long?
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// The inputs that something was done with, ending the recording.
    pub(crate) fn into_touched(self) -> Vec<LaunchInput> {
        self.touched
    }

    /// Notes that something is done with a number. Is nothing recorded (any more)?
    pub(crate) fn touch(&mut self, a: Int) -> bool {
        if a.slot() != 0 {
            let s = &self.sums[self.slots[a.slot() as usize - 1].sum as usize];
            if let [(b, 1)] = s.terms[..]
                && let TapeBase::Input(i) = self.bases[b as usize]
                && self.touched_bases.insert(b)
            {
                self.touched.push(i);
            }
        }
        self.full
    }

    /// A number as the tape knows it.
    pub(crate) fn linear(&self, a: Int) -> Linear {
        let Some(l) = (a.slot() as usize).checked_sub(1).map(|s| self.slots[s]) else {
            return Linear::constant(a.now());
        };
        match self.range(l.sum) {
            (lo, hi) if lo == hi => Linear::constant(a.now()),
            _ => l,
        }
    }

    fn slot(&mut self, l: Linear, v: i128) -> Int {
        if l.k == 0 {
            debug_assert_eq!(l.c, v);
            return Int::new(v);
        }
        debug_assert_eq!(l.k * self.sums[l.sum as usize].now + l.c, v, "{l:?}");
        if self.slots.len() >= MAX_SLOTS {
            self.full = true;
            return Int::new(v);
        }
        self.slots.push(l);
        Int::traced(v, self.slots.len() as u32)
    }

    pub(crate) fn base(&mut self, b: TapeBase, now: i128, (lo, hi): (i128, i128)) -> u32 {
        self.bases.push(b);
        let base = self.bases.len() as u32 - 1;
        let terms: TapeTerms = SmallVec::from_slice(&[(base, 1)]);
        self.alone.push(self.sums.len() as u32);
        self.sums_by_terms.insert(terms.clone(), self.sums.len() as u32);
        debug_assert!(lo <= now && now <= hi, "{b:?}: {now} in {lo}..={hi}");
        self.sums.push(TapeSum { terms, now, lo, hi, asked: (None, None), not: SmallVec::new() });
        base
    }

    pub(crate) fn now(&self, l: Linear) -> i128 {
        if l.k == 0 { l.c } else { l.k * self.sums[l.sum as usize].now + l.c }
    }

    /// Bounds of a sum.
    pub(crate) fn range(&self, sum: u32) -> (i128, i128) {
        let s = &self.sums[sum as usize];
        let (mut lo, mut hi) = (0, 0);
        if s.terms.len() > 1 {
            for (b, k) in &s.terms {
                let x = &self.sums[self.alone[*b as usize] as usize];
                let (p, q) = if *k > 0 { (x.lo, x.hi) } else { (x.hi, x.lo) };
                lo = k.saturating_mul(p).saturating_add(lo);
                hi = k.saturating_mul(q).saturating_add(hi);
            }
            return (lo.max(s.lo), hi.min(s.hi));
        }
        (s.lo, s.hi)
    }

    /// Bounds of a number.
    pub(crate) fn bounds(&self, l: Linear) -> (i128, i128) {
        if l.k == 0 {
            return (l.c, l.c);
        }
        let (lo, hi) = self.range(l.sum);
        let (lo, hi) = if l.k > 0 { (lo, hi) } else { (hi, lo) };
        let at = |v: i128| l.k.saturating_mul(v).saturating_add(l.c);
        (at(lo), at(hi))
    }

    /// Bounds that follow from others.
    pub(crate) fn known(&mut self, l: Linear, (lo, hi): (i128, i128)) {
        let (below, above) = if l.k > 0 { (lo, hi) } else { (hi, lo) };
        if l.k != 0 {
            let s = &mut self.sums[l.sum as usize];
            s.lo = s.lo.max(-floor_div(-(below - l.c), l.k));
            s.hi = s.hi.min(floor_div(above - l.c, l.k));
        }
    }

    fn assume_at_most(&mut self, l: Linear, most: i128) {
        if l.k == 0 || self.bounds(l).1 <= most {
            return;
        }
        let s = &mut self.sums[l.sum as usize];
        if l.k > 0 {
            s.hi = floor_div(most - l.c, l.k);
            s.asked.1 = Some(s.hi);
        } else {
            s.lo = -floor_div(-(most - l.c), l.k);
            s.asked.0 = Some(s.lo);
        }
        debug_assert!(s.lo <= s.now && s.now <= s.hi, "{l:?} at most {most}: {s:?}");
    }

    fn assume_at_least(&mut self, l: Linear, least: i128) {
        let negated = Linear { sum: l.sum, k: -l.k, c: -l.c };
        self.assume_at_most(negated, -least);
    }

    fn assume_not_zero(&mut self, l: Linear) {
        let (lo, hi) = self.bounds(l);
        if l.k == 0 || lo > 0 || hi < 0 || l.c % l.k != 0 {
            return;
        }
        let v = -l.c / l.k;
        let whole = Linear { sum: l.sum, k: 1, c: 0 };
        match self.range(l.sum) {
            (lo, _) if lo == v => return self.assume_at_least(whole, v + 1),
            (_, hi) if hi == v => return self.assume_at_most(whole, v - 1),
            _ => {}
        }
        let s = &mut self.sums[l.sum as usize];
        if !s.not.contains(&v) {
            s.not.push(v);
        }
    }

    /// The value of a number stays as it is.
    fn fix(&mut self, a: Int) {
        let l = self.linear(a);
        self.assume_at_most(l, a.now());
        self.assume_at_least(l, a.now());
    }
}
