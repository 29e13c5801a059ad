//! Loads from constant banks by a register.

use crate::exec::load_store::Cell;
use crate::exec::per_lane::each;
use crate::machine_module::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::program::{Inst, InstFn, Next, Pred};
use crate::warp::Warp;

/// LDC: from bank `z` at offset `a` + `x`; `y` words to the rows from `d` on, or one cut to `c`
/// bits. What lies behind the bank reads as zero.
pub(crate) fn load_bank<T: Cell>() -> InstFn {
    #[inline(never)]
    fn run<T: Cell>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        let (start, size) = if i.z == 0 {
            (w.env.bank0.as_ptr() as u64, w.env.bank0.len() as u64 * 8)
        } else {
            let mut banks = w.env.program.machine.iter().flat_map(|machine| &machine.banks);
            let found = banks.find(|(number, ..)| u32::from(*number) == i.z);
            found.map_or((0, 0), |(_, words, size)| (words.as_ptr() as u64, u64::from(*size)))
        };
        let cut = u64::MAX >> (64 - i.c.0);
        each(mask, |l| {
            let offset = (w.get(i.a, l) + i.x) & 0xffff_ffff & !u64::from(T::SIZE - 1);
            for word in 0..i.y {
                let at = offset + u64::from(word) * 4;
                let value = if at + u64::from(T::SIZE) <= size {
                    // SAFETY: inside the bank, which starts at a multiple of 8.
                    unsafe { T::read(start + at) & cut }
                } else {
                    0
                };
                w.set(crate::program::Slot(i.d.0 + word), l, value);
            }
        });
        Next::Step
    }
    run::<T>
}

/// QSPC: predicate `d` says whether generic address `a` + `x` lies in the space `y`: 0 global, 1
/// local, 2 shared.
#[inline(never)]
pub(crate) fn is_in_space(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let mut bits = 0;
    each(mask, |l| {
        let address = w.get(i.a, l).wrapping_add(i.x);
        let is = match (address & !0xffff_ffff, i.y) {
            (SHARED_WINDOW, space) => space == 2,
            (LOCAL_WINDOW, space) => space == 1,
            (_, space) => space == 0,
        };
        bits |= u32::from(is) << l;
    });
    w.set_pred(Pred(i.d.0), mask, bits);
    Next::Step
}
