//! Loads and stores of the fragments of `wmma`. What a fragment is, `matrix` says, which computes
//! with them.

use crate::interp::exec::load_store::{Cell, GENERIC, GLOBAL, SHARED};
use crate::interp::exec::matrix::{Form, MOST, of_fragment};
use crate::interp::exec::per_lane::each;
use crate::interp::interface::AccessKind;
use crate::interp::program::{Inst, LANES, Next, Slot};
use crate::interp::warp::Warp;

/// `wmma.load` and `wmma.store`: fragment slots from `y` on, `z` of them (bits 8 and up; bit 30 set
/// for a store) at address `a` with the stride `b` (elements) in the space of the low bits of `z`.
/// `x` is a [`Form`]: element `a`, rows `m`, columns `n`, and `k` is 1 for columns one after the
/// other.
#[inline(never)]
pub(crate) fn transfer(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let form = Form::unpack(i.x);
    let (space, count, store) = (i.z & 15, (i.z >> 8 & 63) as usize, i.z >> 30 & 1 != 0);
    let slots = &w.env.program.slots[i.y as usize..][..count];
    let (size, packed) = (form.a.size(), form.a.packed());
    let (rows, columns) = (form.m, form.n);
    let kind = if store { AccessKind::Write } else { AccessKind::Read };
    if !store {
        each(mask, |l| slots.iter().for_each(|&slot| w.set(slot, l, 0)));
    }
    let each_lane = (rows * columns / LANES).max(1);
    if mask == u32::MAX
        && !w.env.observing
        && let Some(host) = whole_matrix(w, i, form, kind)
    {
        let stride = w.get(i.b, 0) as usize;
        move_whole(w, form, slots, (host, stride), store);
        return Next::Step;
    }
    for row in 0..rows {
        for column in 0..columns {
            let (lane, at) = of_fragment(row, column, columns, rows * columns);
            if mask >> lane & 1 == 0 {
                continue;
            }
            let stride = w.get(i.b, lane);
            let (major, minor) = if form.k == 1 { (column, row) } else { (row, column) };
            let index = (major as u64).wrapping_mul(stride).wrapping_add(minor as u64);
            let address =
                w.get(i.a, lane).wrapping_add(u64::from(i.line_offset())).wrapping_add(index * u64::from(size));
            let host = match w.resolve(space, address, size, kind, lane) {
                Ok(host) => host,
                Err(kind) => return w.fail(kind, 1 << lane),
            };
            if w.env.observing && space != SHARED && w.env.device.allocation(address).is_some() {
                w.observe(i, 1 << lane, size, kind, &[address; LANES]);
            }
            if store {
                let bits = w.get(slots[at / packed], lane) >> (at % packed * 8 * size as usize);
                // SAFETY: `resolve` vouches for the element.
                unsafe {
                    match size {
                        1 => u8::write(host, bits),
                        2 => u16::write(host, bits),
                        4 => u32::write(host, bits),
                        _ => u64::write(host, bits),
                    }
                }
                continue;
            }
            // SAFETY: as above.
            let bits = unsafe {
                match size {
                    1 => u8::read(host),
                    2 => u16::read(host),
                    4 => u32::read(host),
                    _ => u64::read(host),
                }
            };
            // Registers beyond the lane's share hold copies.
            for copy in (at..count * packed).step_by(each_lane) {
                let slot = slots[copy / packed];
                let old = w.get(slot, lane);
                w.set(slot, lane, old | bits << (copy % packed * 8 * size as usize));
            }
        }
    }
    Next::Step
}

/// Moves a fragment as a whole: between the matrix at an address of the host, with a stride, and
/// the registers of all lanes.
fn move_whole(w: &mut Warp<'_>, form: Form, slots: &[Slot], (host, stride): (u64, usize), store: bool) {
    let (size, rows, columns) = (form.a.size() as usize, form.m, form.n);
    let mut bytes = [0u8; 8 * MOST];
    let bytes = &mut bytes[..rows * columns * size];
    let own = bytes.len() / LANES;
    let register = form.a.packed() * size;
    if store {
        for (at, &slot) in slots.iter().enumerate().take(own / register) {
            for (lane, place) in bytes.chunks_exact_mut(own).enumerate() {
                let value = w.get(slot, lane).to_le_bytes();
                place[at * register..][..register].copy_from_slice(&value[..register]);
            }
        }
    }
    let by_rows = form.k != 1;
    let (majors, run) = if by_rows { (rows, columns * size) } else { (columns, rows * size) };
    for major in 0..majors {
        let line = host as usize + major * stride * size;
        if by_rows {
            let (place, line) = (bytes[major * run..][..run].as_mut_ptr(), line as *mut u8);
            // SAFETY: `whole_matrix` vouches for the matrix; other threads may access it meanwhile,
            // as on a GPU.
            unsafe {
                if store {
                    std::ptr::copy_nonoverlapping(place, line, run)
                } else {
                    std::ptr::copy_nonoverlapping(line, place, run)
                }
            }
            continue;
        }
        for minor in 0..rows {
            let place = bytes[(minor * columns + major) * size..][..size].as_mut_ptr();
            let line = (line + minor * size) as *mut u8;
            // SAFETY: as above.
            unsafe {
                match (store, size) {
                    (false, 1) => *place = line.read_volatile(),
                    (false, 2) => place.cast::<u16>().write_unaligned(line.cast::<u16>().read_volatile()),
                    (false, 4) => place.cast::<u32>().write_unaligned(line.cast::<u32>().read_volatile()),
                    (false, _) => place.cast::<u64>().write_unaligned(line.cast::<u64>().read_volatile()),
                    (true, _) => std::ptr::copy_nonoverlapping(place, line, size),
                }
            }
        }
    }
    if store {
        return;
    }
    for (at, &slot) in slots.iter().enumerate() {
        // Registers beyond the lane's share hold copies.
        let from = at * register % own;
        let mut row = [0; LANES];
        for (value, own) in row.iter_mut().zip(bytes.chunks_exact(own)) {
            *value = match register {
                4 => own[from..].first_chunk().map_or(0, |word| u64::from(u32::from_le_bytes(*word))),
                _ => own[from..].first_chunk().map_or(0, |long| u64::from_le_bytes(*long)),
            };
        }
        // SAFETY: a live row; no other reference to it is there.
        unsafe { (*w.row_mut(slot)).0 = row };
    }
}

/// Where a fragment's first entry is in the host's memory, if all lanes name the same matrix, one
/// check answers for all of it, and each lane has whole registers of it.
fn whole_matrix(w: &mut Warp<'_>, i: &Inst, form: Form, kind: AccessKind) -> Option<u64> {
    let (base, stride) = (w.get(i.a, 0), w.get(i.b, 0));
    let same = (1..LANES).all(|lane| w.get(i.a, lane) == base && w.get(i.b, lane) == stride);
    let size = form.a.size();
    if !(form.m * form.n).is_multiple_of(LANES * form.a.packed()) || form.m * form.n >= MOST {
        return None;
    }
    let (majors, minors) = if form.k == 1 { (form.n, form.m) } else { (form.m, form.n) };
    let far = (majors as u64 - 1).checked_mul(stride)?.checked_add(minors as u64 - 1)?;
    let (first, space) = (base.wrapping_add(u64::from(i.line_offset())), i.z & 15);
    let last = first.checked_add(far.checked_mul(u64::from(size))?)?;
    if !same || !matches!(space, SHARED | GLOBAL | GENERIC) {
        return None;
    }
    let from = w.resolve(space, first, size, kind, 0).ok()?;
    let to = w.resolve(space, last, size, kind, 0).ok()?;
    let together = space == SHARED || w.extent(first).is_some_and(|extent| last < extent.end);
    (together && to.wrapping_sub(from) == last - first).then_some(from)
}
