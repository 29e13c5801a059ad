//! Tensor maps that a kernel changes: `tensormap.replace`, and `tensormap.cp_fenceproxy`, which
//! brings a map from shared to global memory. `map` has the fields.
//!
//! Copies of tiles read a map where they are issued, so that a missing `fence.proxy.tensormap` does
//! not show in results; those who look for races are told of the fences.

use sim_races::{FenceOrder, Scope};

use crate::exec::load_store::{GLOBAL, SHARED};
use crate::exec::per_lane::each;
use crate::exec::tensor::map::{Field, SIZE, TensorMap};
use crate::exec::told::strength::PLAIN;
use crate::exec::unsupported;
use crate::interface::AccessKind;
use crate::operations::operands::{self, Location};
use crate::program::{Inst, LANES, Next};
use crate::warp::Warp;

/// Bytes of a map that are checked and told of at a time.
const PART: u32 = 16;

/// Where the CPU finds the maps of lanes, which are whole multiples of [`PART`] in one place.
fn maps(w: &mut Warp<'_>, location: Location, mask: u32, kind: AccessKind) -> Result<[u64; LANES], Next> {
    let mut first = [0; LANES];
    for part in (0..SIZE as u64).step_by(PART as usize) {
        let mut at = [0; LANES];
        w.addresses(Location { offset: location.offset + part, ..location }, mask, PART, kind, &mut at)?;
        if part == 0 {
            first = at;
        }
    }
    Ok(first)
}

/// `tensormap.replace`: a field gets another value.
#[inline(never)]
pub(crate) fn replace(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::TensorMapReplace::of(i);
    let at = match maps(w, Location { strength: PLAIN, ..i.location() }, mask, AccessKind::Write) {
        Ok(at) => at,
        Err(next) => return next,
    };
    let mut odd = 0;
    each(mask, |l| {
        let value = w.get(i.value(), l);
        // SAFETY: `addresses` vouches for the map's bytes, which have no alignment here.
        let mut bytes = unsafe { std::ptr::read_unaligned(at[l] as *const [u8; SIZE]) };
        if TensorMap::replace(&mut bytes, Field::of(i.field()), i.axis() as usize, value) {
            // SAFETY: as above.
            unsafe { std::ptr::write_unaligned(at[l] as *mut [u8; SIZE], bytes) };
        } else {
            odd |= 1 << l;
        }
    });
    if odd != 0 {
        let kind = unsupported(w, "tensormap.replace by a value that no map has");
        return w.fail(kind, odd);
    }
    Next::Step
}

/// `tensormap.cp_fenceproxy`: the lanes of a warp copy a map together, and release it.
#[inline(never)]
pub(crate) fn copy(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::TensorMapCopy::of(i);
    w.tell_synchronises(None);
    w.tell_lanes(mask, |events, lanes| events.warp_meets(lanes));
    let one = mask & mask.wrapping_neg();
    let place = |row, space| Location { row, offset: 0, space, strength: PLAIN };
    let both = maps(w, place(i.from(), SHARED), one, AccessKind::Read)
        .and_then(|from| Ok((from, maps(w, place(i.to(), GLOBAL), one, AccessKind::Write)?)));
    let (from, to) = match both {
        Ok(both) => both,
        Err(next) => return next,
    };
    let lane = one.trailing_zeros() as usize;
    // SAFETY: `addresses` vouches for the bytes of both maps.
    unsafe { std::ptr::copy(from[lane] as *const u8, to[lane] as *mut u8, SIZE) };
    if w.env.observing {
        w.tell_lanes(mask, |events, lanes| {
            events.warp_meets(lanes);
            events.map_fence(lanes, false);
            events.fence(lanes, Scope::Device, FenceOrder::Both);
        });
    }
    Next::Step
}
