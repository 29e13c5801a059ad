//! Products of matrices of numbers of four bits and one bit.

use crate::exec::matrix::{of_a, of_b, of_c};
use crate::operations::operands;
use crate::program::{Inst, LANES, Next, Slot};
use crate::warp::Warp;

/// What `x` of [`multiply_narrow`] holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NarrowForm {
    pub(crate) m: usize,
    pub(crate) k: usize,
    /// Bits of an element: 4, or 1.
    pub(crate) bits: u32,
    pub(crate) a_signed: bool,
    pub(crate) b_signed: bool,
    /// Of single bits: both set, else different.
    pub(crate) and: bool,
    pub(crate) sat: bool,
}

impl NarrowForm {
    pub(crate) fn pack(self) -> u64 {
        self.m as u64
            | (self.k as u64) << 8
            | u64::from(self.bits) << 24
            | u64::from(self.a_signed) << 32
            | u64::from(self.b_signed) << 33
            | u64::from(self.and) << 34
            | u64::from(self.sat) << 35
    }

    fn unpack(x: u64) -> NarrowForm {
        NarrowForm {
            m: (x & 0xff) as usize,
            k: (x >> 8 & 0xffff) as usize,
            bits: (x >> 24 & 0xff) as u32,
            a_signed: x >> 32 & 1 != 0,
            b_signed: x >> 33 & 1 != 0,
            and: x >> 34 & 1 != 0,
            sat: x >> 35 & 1 != 0,
        }
    }
}

/// `mma` of four bits and of one: slots of d, c, a, b follow each other.
#[inline(never)]
pub(crate) fn multiply_narrow(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::MultiplyNarrow::of(i);
    let form = NarrowForm::unpack(i.form());
    let NarrowForm { m, k, bits, .. } = form;
    let packed = (32 / bits) as usize;
    let (sums, of_first, of_second) = (m / 4, m * k / packed / LANES, 8 * k / packed / LANES);
    let slots: &[Slot] = &w.env.program.slots[i.slots() as usize..];
    let (to, rest) = slots.split_at(sums);
    let (c, rest) = rest.split_at(sums);
    let (a, rest) = rest.split_at(of_first);
    let b = &rest[..of_second];
    let ones = u32::MAX >> (32 - bits);
    let read = |w: &Warp<'_>, slots: &[Slot], (lane, at): (usize, usize), signed: bool| {
        let value = (w.get(slots[at / packed], lane) as u32) >> (at % packed * bits as usize) & ones;
        if signed { i64::from((value << (32 - bits)) as i32 >> (32 - bits)) } else { i64::from(value) }
    };
    let mut out = Vec::with_capacity(m * 8);
    for row in 0..m {
        for column in 0..8 {
            let (lane, at) = of_c(row, column);
            let mut sum = i64::from(w.get(c[at], lane) as i32);
            for inner in 0..k {
                let left = read(w, a, of_a(row, inner, packed), form.a_signed);
                let right = read(w, b, of_b(inner, column, packed), form.b_signed);
                sum += match (bits, form.and) {
                    (1, false) => left ^ right,
                    _ => left * right,
                };
            }
            let sum = if form.sat { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
            out.push((lane, at, sum as u32));
        }
    }
    for (lane, at, sum) in out {
        if mask >> lane & 1 != 0 {
            w.set(to[at], lane, u64::from(sum));
        }
    }
    Next::Step
}
