//! Loads and stores of the fragments of `wmma`. What a fragment is, `matrix` says, which computes
//! with them.

use crate::exec::load_store::{Cell, GENERIC, GLOBAL, SHARED};
use crate::exec::matrix::fragment_words::MOST;
use crate::exec::matrix::whole_product;
use crate::exec::matrix::{Form, of_fragment};
use crate::exec::per_lane::each;
use crate::exec::told;
use crate::exec::told::strength::PLAIN;
use crate::interface::AccessKind;
use crate::operations::operands;
use crate::program::{Inst, LANES, Next, Slot};
use crate::warp::Warp;

/// `wmma.load` and `wmma.store` of a fragment; the stride is in elements. Of a [`Form`] it has:
/// element `a`, rows `m`, columns `n`, and `k` is 1 for columns one after the other.
#[inline(never)]
pub(crate) fn transfer(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Transfer::of(i);
    let form = Form::unpack(i.form());
    let (space, store) = (i.space(), i.store() != 0);
    let slots = if store { i.from(w.env.program) } else { i.into(w.env.program) };
    let (size, packed) = (form.a.size(), form.a.packed());
    let (rows, columns) = (form.m, form.n);
    let kind = if store { AccessKind::Write } else { AccessKind::Read };
    let each_lane = (rows * columns / LANES).max(1);
    if mask == u32::MAX
        && !w.env.observing
        && let Some(host) = whole_matrix(w, i, form, kind)
    {
        let stride = w.get(i.stride(), 0) as usize;
        move_whole(w, form, slots, (host, stride), store);
        return Next::Step;
    }
    if !store {
        each(mask, |l| slots.iter().for_each(|&slot| w.set(slot, l, 0)));
    }
    for row in 0..rows {
        for column in 0..columns {
            let (lane, at) = of_fragment(row, column, columns, rows * columns);
            if mask >> lane & 1 == 0 {
                continue;
            }
            let stride = w.get(i.stride(), lane);
            let (major, minor) = if form.k == 1 { (column, row) } else { (row, column) };
            let index = (major as u64).wrapping_mul(stride).wrapping_add(minor as u64);
            let address =
                w.get(i.address(), lane).wrapping_add(u64::from(i.offset())).wrapping_add(index * u64::from(size));
            let host = match w.resolve(space, address, size, kind, lane) {
                Ok(host) => host,
                Err(kind) => return w.fail(kind, 1 << lane),
            };
            told::lane(w, space, PLAIN, (address, size), kind, lane);
            if w.env.observing && space != SHARED && w.env.device.allocation(address).is_some() {
                w.observe(PLAIN, 1 << lane, size, kind, &[address; LANES]);
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
            for copy in (at..slots.len() * packed).step_by(each_lane) {
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
    let own = rows * columns / LANES / form.a.packed();
    whole_product::with_words(|words| {
        if store {
            words.gather(w, &slots[..own], form.a);
        }
        let place = words.0.as_mut_ptr().cast::<u8>();
        // SAFETY: `whole_matrix` vouches for the matrix, and that so many words are enough for it.
        // Other threads may access it meanwhile, as on a GPU.
        unsafe {
            match size {
                1 => move_elements::<u8>(place, host as *mut u8, form, stride, store),
                2 => move_elements::<u16>(place.cast(), host as *mut u16, form, stride, store),
                4 => move_elements::<u32>(place.cast(), host as *mut u32, form, stride, store),
                _ => move_elements::<u64>(place.cast(), host as *mut u64, form, stride, store),
            }
        }
        if !store {
            words.scatter(w, &slots[..own], form.a);
        }
    });
    if store {
        return;
    }
    // Registers beyond the lane's share hold copies.
    for (at, &slot) in slots.iter().enumerate().skip(own) {
        // SAFETY: two live rows, or one; no references to them are there.
        unsafe { std::ptr::copy(w.row(slots[at % own]), w.row_mut(slot), 1) };
    }
}

/// Moves the entries of a matrix of the host to or from a place where its rows follow each other.
///
/// # Safety
/// Both are there as far as the form says, and all of the matrix's lines with their stride.
#[inline(always)]
unsafe fn move_elements<T: Copy>(place: *mut T, host: *mut T, form: Form, stride: usize, store: bool) {
    let (rows, columns) = (form.m, form.n);
    if form.k != 1 {
        for row in 0..rows {
            // SAFETY: the caller's promise.
            unsafe {
                let (place, line) = (place.add(row * columns), host.add(row * stride));
                match (store, columns) {
                    (true, _) => std::ptr::copy_nonoverlapping(place, line, columns),
                    // Of a known length it is no call.
                    (false, 8) => place.cast::<[T; 8]>().write_unaligned(line.cast::<[T; 8]>().read_unaligned()),
                    (false, 16) => place.cast::<[T; 16]>().write_unaligned(line.cast::<[T; 16]>().read_unaligned()),
                    (false, _) => std::ptr::copy_nonoverlapping(line, place, columns),
                }
            }
        }
        return;
    }
    for column in 0..columns {
        // SAFETY: as above.
        unsafe {
            let line = host.add(column * stride);
            for row in 0..rows {
                let place = place.add(row * columns + column);
                match store {
                    true => line.add(row).write(place.read_unaligned()),
                    false => place.write_unaligned(line.add(row).read()),
                }
            }
        }
    }
}

/// Where a fragment's first entry is in the host's memory, if all lanes name the same matrix, one
/// check answers for all of it, and each lane has whole registers of it.
fn whole_matrix(w: &mut Warp<'_>, i: operands::Transfer<'_>, form: Form, kind: AccessKind) -> Option<u64> {
    let (base, stride) = (w.get(i.address(), 0), w.get(i.stride(), 0));
    // SAFETY: live rows, which nobody writes meanwhile.
    let (bases, strides) = unsafe { (&(*w.row(i.address())).0, &(*w.row(i.stride())).0) };
    let differ = bases.iter().zip(strides).fold(0, |differ, (&a, &b)| differ | (a ^ base) | (b ^ stride));
    let same = differ == 0;
    let size = form.a.size();
    let registers = form.m * form.n / LANES / form.a.packed();
    let known = (form.m * form.n).is_multiple_of(LANES * form.a.packed()) && matches!(registers, 1 | 2 | 4 | 8 | 16);
    if !known || form.m * form.n * size as usize > MOST * size_of::<u32>() {
        return None;
    }
    let (majors, minors) = if form.k == 1 { (form.n, form.m) } else { (form.m, form.n) };
    let far = (majors as u64 - 1).checked_mul(stride)?.checked_add(minors as u64 - 1)?;
    let (first, space) = (base.wrapping_add(u64::from(i.offset())), i.space());
    let last = first.checked_add(far.checked_mul(u64::from(size))?)?;
    if !same || !matches!(space, SHARED | GLOBAL | GENERIC) {
        return None;
    }
    let from = w.resolve(space, first, size, kind, 0).ok()?;
    let to = w.resolve(space, last, size, kind, 0).ok()?;
    let (start, own) = (w.shared_base(), u64::from(w.block().shared_size));
    let shared = [from, to].iter().all(|at| at.wrapping_sub(start) < own);
    let together = shared || space == SHARED || w.extent(first).is_some_and(|extent| last < extent.end);
    (together && to.wrapping_sub(from) == last - first).then_some(from)
}
