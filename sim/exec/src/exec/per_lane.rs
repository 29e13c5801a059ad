//! Combinators that turn a function of one lane's values into an instruction of a warp.

use crate::operations::build::Applied;
use crate::operations::operands;
use crate::program::{Inst, LANES, LaneFunction, LaneOp, LaneTy, Next, ResultUse, Sem, Slot};
use crate::warp::Warp;

/// A type of values in a register.
pub(crate) trait Lane: Copy {
    const TY: LaneTy;
    fn get(bits: u64) -> Self;
    fn put(self) -> u64;
}

macro_rules! lane {
    ($($ty:ty as $unsigned:ty, $name:ident);*) => {$(
        impl Lane for $ty {
            const TY: LaneTy = LaneTy::$name;
            #[inline(always)]
            fn get(bits: u64) -> Self {
                bits as $ty
            }
            #[inline(always)]
            fn put(self) -> u64 {
                u64::from(self as $unsigned)
            }
        }
    )*};
}
lane!(u8 as u8, U8; u16 as u16, U16; u32 as u32, U32; u64 as u64, U64;
      i8 as u8, I8; i16 as u16, I16; i32 as u32, I32; i64 as u64, I64);

impl Lane for f32 {
    const TY: LaneTy = LaneTy::F32;
    #[inline(always)]
    fn get(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn put(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Lane for f64 {
    const TY: LaneTy = LaneTy::F64;
    #[inline(always)]
    fn get(bits: u64) -> Self {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn put(self) -> u64 {
        self.to_bits()
    }
}

/// A function of one lane's values, as an instruction of a warp and by itself.
#[derive(Clone, Copy)]
pub(crate) struct LaneFn {
    pub(crate) op: LaneOp,
}

impl LaneFn {
    fn new(function: &'static LaneFunction) -> LaneFn {
        LaneFn { op: LaneOp { function, sem: Sem::Call } }
    }

    /// The same, with what the function is: native code then has instructions for it. The types
    /// are those of its operands.
    pub(crate) fn is(mut self, sem: Sem) -> LaneFn {
        self.op.sem = sem;
        self
    }

    /// The function of these rows, the first of which it takes.
    pub(crate) fn of<const ROWS: usize>(self, rows: [Slot; ROWS]) -> Applied {
        Applied::new(self.op, rows)
    }
}

/// The only value of a closure type that captures nothing.
#[inline(always)]
fn only<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0) };
    // SAFETY: `F` has no bytes, and a value of it existed: the combinators below take one.
    unsafe { std::ptr::NonNull::<F>::dangling().read() }
}

/// Calls `f` for each lane of a mask.
#[inline(always)]
pub(crate) fn each(mask: u32, mut f: impl FnMut(usize)) {
    if mask == u32::MAX {
        for lane in 0..LANES {
            f(lane);
        }
    } else {
        let mut left = mask;
        while left != 0 {
            f(left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

/// `d = f(a)`
pub(crate) fn op1<A: Lane, R: Lane, F: Fn(A) -> R + Copy>(_: F) -> LaneFn {
    fn run<A: Lane, R: Lane, F: Fn(A) -> R + Copy>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        let f = only::<F>();
        let i = operands::Lane::of(i);
        let (d, a) = (w.row_mut(i.d()), w.row(i.a()));
        // SAFETY: rows of live memory; a result may be the same row as an operand, so no references
        // are made.
        each(mask, |l| unsafe { (*d).0[l] = f(A::get((*a).0[l])).put() });
        Next::Step
    }
    extern "C" fn call<A: Lane, R: Lane, F: Fn(A) -> R + Copy>(a: u64, _: u64, _: u64, _: u64) -> u64 {
        only::<F>()(A::get(a)).put()
    }
    LaneFn::new(
        const {
            &LaneFunction {
                run: run::<A, R, F>,
                call: call::<A, R, F>,
                operands: 1,
                types: [A::TY, LaneTy::U64, LaneTy::U64, R::TY],
                outcome: ResultUse::Value,
            }
        },
    )
}

/// `d = f(a, b)`
pub(crate) fn op2<A: Lane, B: Lane, R: Lane, F: Fn(A, B) -> R + Copy>(_: F) -> LaneFn {
    fn run<A: Lane, B: Lane, R: Lane, F: Fn(A, B) -> R + Copy>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        let f = only::<F>();
        let i = operands::Lane::of(i);
        let (d, a, b) = (w.row_mut(i.d()), w.row(i.a()), w.row(i.b()));
        // SAFETY: as in `op1`.
        each(mask, |l| unsafe { (*d).0[l] = f(A::get((*a).0[l]), B::get((*b).0[l])).put() });
        Next::Step
    }
    extern "C" fn call<A: Lane, B: Lane, R: Lane, F: Fn(A, B) -> R + Copy>(a: u64, b: u64, _: u64, _: u64) -> u64 {
        only::<F>()(A::get(a), B::get(b)).put()
    }
    LaneFn::new(
        const {
            &LaneFunction {
                run: run::<A, B, R, F>,
                call: call::<A, B, R, F>,
                operands: 2,
                types: [A::TY, B::TY, LaneTy::U64, R::TY],
                outcome: ResultUse::Value,
            }
        },
    )
}

/// `d = f(a, b, c)`
pub(crate) fn op3<A: Lane, B: Lane, C: Lane, R: Lane, F: Fn(A, B, C) -> R + Copy>(_: F) -> LaneFn {
    fn run<A: Lane, B: Lane, C: Lane, R: Lane, F: Fn(A, B, C) -> R + Copy>(
        w: &mut Warp<'_>,
        i: &Inst,
        mask: u32,
    ) -> Next {
        let f = only::<F>();
        let i = operands::Lane::of(i);
        let (d, a, b, c) = (w.row_mut(i.d()), w.row(i.a()), w.row(i.b()), w.row(i.c()));
        // SAFETY: as in `op1`.
        each(mask, |l| unsafe {
            (*d).0[l] = f(A::get((*a).0[l]), B::get((*b).0[l]), C::get((*c).0[l])).put();
        });
        Next::Step
    }
    extern "C" fn call<A: Lane, B: Lane, C: Lane, R: Lane, F: Fn(A, B, C) -> R + Copy>(
        a: u64,
        b: u64,
        c: u64,
        _: u64,
    ) -> u64 {
        only::<F>()(A::get(a), B::get(b), C::get(c)).put()
    }
    LaneFn::new(
        const {
            &LaneFunction {
                run: run::<A, B, C, R, F>,
                call: call::<A, B, C, R, F>,
                operands: 3,
                types: [A::TY, B::TY, C::TY, R::TY],
                outcome: ResultUse::Value,
            }
        },
    )
}

/// `d = f(a, b, x)` with the instruction's constant.
pub(crate) fn op2x<A: Lane, B: Lane, R: Lane, F: Fn(A, B, u64) -> R + Copy>(_: F) -> LaneFn {
    fn run<A: Lane, B: Lane, R: Lane, F: Fn(A, B, u64) -> R + Copy>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        let f = only::<F>();
        let i = operands::Lane::of(i);
        let (d, a, b, x) = (w.row_mut(i.d()), w.row(i.a()), w.row(i.b()), i.constant());
        // SAFETY: as in `op1`.
        each(mask, |l| unsafe { (*d).0[l] = f(A::get((*a).0[l]), B::get((*b).0[l]), x).put() });
        Next::Step
    }
    extern "C" fn call<A: Lane, B: Lane, R: Lane, F: Fn(A, B, u64) -> R + Copy>(a: u64, b: u64, _: u64, x: u64) -> u64 {
        only::<F>()(A::get(a), B::get(b), x).put()
    }
    LaneFn::new(
        const {
            &LaneFunction {
                run: run::<A, B, R, F>,
                call: call::<A, B, R, F>,
                operands: 2,
                types: [A::TY, B::TY, LaneTy::U64, R::TY],
                outcome: ResultUse::Value,
            }
        },
    )
}

/// `d = f(a, b, c, x)` with the instruction's constant.
pub(crate) fn op3x<A: Lane, B: Lane, C: Lane, R: Lane, F: Fn(A, B, C, u64) -> R + Copy>(_: F) -> LaneFn {
    fn run<A: Lane, B: Lane, C: Lane, R: Lane, F: Fn(A, B, C, u64) -> R + Copy>(
        w: &mut Warp<'_>,
        i: &Inst,
        mask: u32,
    ) -> Next {
        let f = only::<F>();
        let i = operands::Lane::of(i);
        let (d, a, b, c, x) = (w.row_mut(i.d()), w.row(i.a()), w.row(i.b()), w.row(i.c()), i.constant());
        // SAFETY: as in `op1`.
        each(mask, |l| unsafe {
            (*d).0[l] = f(A::get((*a).0[l]), B::get((*b).0[l]), C::get((*c).0[l]), x).put();
        });
        Next::Step
    }
    extern "C" fn call<A: Lane, B: Lane, C: Lane, R: Lane, F: Fn(A, B, C, u64) -> R + Copy>(
        a: u64,
        b: u64,
        c: u64,
        x: u64,
    ) -> u64 {
        only::<F>()(A::get(a), B::get(b), C::get(c), x).put()
    }
    LaneFn::new(
        const {
            &LaneFunction {
                run: run::<A, B, C, R, F>,
                call: call::<A, B, C, R, F>,
                operands: 3,
                types: [A::TY, B::TY, C::TY, R::TY],
                outcome: ResultUse::Value,
            }
        },
    )
}

extern "C" fn holds<A: Lane, F: Fn(A, A) -> bool + Copy>(a: u64, b: u64, _: u64, _: u64) -> u64 {
    u64::from(only::<F>()(A::get(a), A::get(b)))
}

/// How a comparison is combined with a third predicate.
pub use crate::operations::values::COMBINE_NONE;
pub const COMBINE_AND: u32 = 1;
pub const COMBINE_OR: u32 = 2;
pub(crate) const COMBINE_XOR: u32 = 3;

/// The lanes where `f` holds.
#[inline(always)]
fn compare<A: Lane, F: Fn(A, A) -> bool + Copy>(w: &Warp<'_>, i: operands::Lane<'_>, mask: u32) -> u32 {
    let f = only::<F>();
    let (a, b) = (w.row(i.a()), w.row(i.b()));
    let mut bits = 0;
    // SAFETY: as in `op1`.
    each(mask, |l| unsafe { bits |= u32::from(f(A::get((*a).0[l]), A::get((*b).0[l]))) << l });
    bits
}

#[inline(always)]
fn combine(w: &Warp<'_>, i: operands::Lane<'_>, bits: u32) -> (u32, u32) {
    let third = if i.combine() == COMBINE_NONE { 0 } else { w.pred(i.combined()) };
    match i.combine() {
        COMBINE_AND => (bits & third, !bits & third),
        COMBINE_OR => (bits | third, !bits | third),
        COMBINE_XOR => (bits ^ third, !bits ^ third),
        _ => (bits, !bits),
    }
}

/// `setp`: predicates `p` and `q` get the comparison of `a` and `b` and its opposite, each combined
/// with a third.
pub(crate) fn setp<A: Lane, F: Fn(A, A) -> bool + Copy>(_: F) -> LaneFn {
    fn run<A: Lane, F: Fn(A, A) -> bool + Copy>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        let i = operands::Lane::of(i);
        let bits = compare::<A, F>(w, i, mask);
        let (p, q) = combine(w, i, bits);
        w.set_pred(i.p(), mask, p);
        w.set_pred(i.q(), mask, q);
        Next::Step
    }
    LaneFn::new(
        const {
            &LaneFunction {
                run: run::<A, F>,
                call: holds::<A, F>,
                operands: 2,
                types: [A::TY, A::TY, LaneTy::U64, LaneTy::U8],
                outcome: ResultUse::Predicate,
            }
        },
    )
}

/// `set`: `d` gets the constant where the comparison (combined with `c`) holds, else zero.
pub(crate) fn set<A: Lane, F: Fn(A, A) -> bool + Copy>(_: F) -> LaneFn {
    fn run<A: Lane, F: Fn(A, A) -> bool + Copy>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        let i = operands::Lane::of(i);
        let bits = compare::<A, F>(w, i, mask);
        let (p, _) = combine(w, i, bits);
        let d = w.row_mut(i.d());
        // SAFETY: as in `op1`.
        each(mask, |l| unsafe { (*d).0[l] = if p >> l & 1 != 0 { i.constant() } else { 0 } });
        Next::Step
    }
    LaneFn::new(
        const {
            &LaneFunction {
                run: run::<A, F>,
                call: holds::<A, F>,
                operands: 2,
                types: [A::TY, A::TY, LaneTy::U64, LaneTy::U8],
                outcome: ResultUse::Choice,
            }
        },
    )
}
