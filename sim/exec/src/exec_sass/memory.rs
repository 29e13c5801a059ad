//! Loads from constant banks by a register.

use crate::exec::load_store::Cell;
use crate::exec::per_lane::each;
use crate::machine_module::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::operations::operands;
use crate::program::{Inst, InstFn, Next};
use crate::warp::Warp;

/// LDC: from a bank at index + offset; words to several rows, or one cut to `bits`. What lies
/// behind the bank reads as zero.
pub(crate) fn load_bank<T: Cell>() -> InstFn {
    #[inline(never)]
    fn run<T: Cell>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        let i = operands::LoadBank::of(i);
        let (start, size) = if i.bank() == 0 {
            (w.env.bank0.as_ptr() as u64, w.env.bank0.len() as u64 * 8)
        } else {
            let mut banks = w.env.program.machine.iter().flat_map(|machine| &machine.banks);
            let found = banks.find(|(number, ..)| u32::from(*number) == i.bank());
            found.map_or((0, 0), |(_, words, size)| (words.as_ptr() as u64, u64::from(*size)))
        };
        let cut = u64::MAX >> (64 - i.bits());
        each(mask, |l| {
            let offset = (w.get(i.index(), l) + i.offset()) & 0xffff_ffff & !u64::from(T::SIZE - 1);
            for (word, d) in i.d().enumerate() {
                let at = offset + word as u64 * 4;
                let value = if at + u64::from(T::SIZE) <= size {
                    // SAFETY: inside the bank, which starts at a multiple of 8.
                    unsafe { T::read(start + at) & cut }
                } else {
                    0
                };
                w.set(d, l, value);
            }
        });
        Next::Step
    }
    run::<T>
}

/// QSPC: predicate `p` says whether a generic address lies in a space: 0 global, 1 local, 2 shared.
#[inline(never)]
pub(crate) fn is_in_space(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::IsInSpace::of(i);
    let mut bits = 0;
    each(mask, |l| {
        let address = w.get(i.address(), l).wrapping_add(i.offset());
        let is = match (address & !0xffff_ffff, i.space()) {
            (SHARED_WINDOW, space) => space == 2,
            (LOCAL_WINDOW, space) => space == 1,
            (_, space) => space == 0,
        };
        bits |= u32::from(is) << l;
    });
    w.set_pred(i.p(), mask, bits);
    Next::Step
}
