//! Loads, stores and address conversions, as instructions. `address` finds and checks the memory.

use crate::exec::cluster_memory::window;
use crate::exec::per_lane::each;
use crate::exec::told::strength::COPY;
use crate::exec::vector_access::{read_whole, write_whole};
use crate::interface::AccessKind;
use crate::operations::operands::{self, Location};
use crate::program::{Inst, InstFn, LANES, Next};
use crate::warp::Warp;

/// State spaces as instructions carry them.
pub const GENERIC: u32 = 0;
pub const GLOBAL: u32 = 1;
pub const SHARED: u32 = 2;
pub const LOCAL: u32 = 3;
/// Kernel parameters, by their host address.
pub(crate) const PARAM: u32 = 4;
/// Local memory at a constant offset in the running function's frame.
pub const FRAME: u32 = 5;

pub use crate::exec::told::strength::VOLATILE;

/// A value in memory. All loads acquire and all stores release, so that `ld.acquire` and
/// `st.release` need no instruction of their own. On x86-64 plain accesses do that anyway.
pub(crate) trait Cell: Copy {
    const SIZE: u32;
    /// # Safety
    /// `at` is aligned and points to memory that stays mapped.
    unsafe fn read(at: u64) -> u64;
    /// # Safety
    /// As `read`.
    unsafe fn write(at: u64, value: u64);
    /// The low bits of a word as a value, extended by its sign.
    fn extend(bits: u64) -> u64;
}

macro_rules! cell {
    ($($ty:ty, $atomic:ident, $unsigned:ty);*) => {$(
        impl Cell for $ty {
            const SIZE: u32 = size_of::<$ty>() as u32;
            #[inline(always)]
            unsafe fn read(at: u64) -> u64 {
                use std::sync::atomic::*;
                // SAFETY: the caller's promise; other threads of the simulated device access it
                // atomically too.
                let bits = unsafe { (*(at as *const $atomic)).load(Ordering::Acquire) };
                bits as $ty as i64 as u64
            }
            #[inline(always)]
            unsafe fn write(at: u64, value: u64) {
                use std::sync::atomic::*;
                // SAFETY: as in `read`.
                unsafe { (*(at as *const $atomic)).store(value as $unsigned, Ordering::Release) }
            }
            #[inline(always)]
            fn extend(bits: u64) -> u64 {
                bits as $ty as i64 as u64
            }
        }
    )*};
}
cell!(u8, AtomicU8, u8; u16, AtomicU16, u16; u32, AtomicU32, u32; u64, AtomicU64, u64;
      i8, AtomicU8, u8; i16, AtomicU16, u16; i32, AtomicU32, u32);

/// `ld`: one element goes to `d`, more go to `all`. Values are cut to `bits`.
pub(crate) fn load<T: Cell>() -> InstFn {
    #[inline(never)]
    fn run<T: Cell>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        let i = operands::Load::of(i);
        let count = i.count() as usize;
        let mut at = [0; LANES];
        if let Err(next) = w.addresses(i.location(), mask, T::SIZE * count as u32, AccessKind::Read, &mut at) {
            return next;
        }
        let cut = u64::MAX >> (64 - i.bits());
        if count == 1 {
            let d = w.row_mut(i.d());
            // SAFETY: `addresses` vouches for the memory; the row is live.
            each(mask, |l| unsafe { (*d).0[l] = T::read(at[l]) & cut });
        } else {
            let parts = T::SIZE as usize * count;
            let all = i.all(w.env.program);
            each(mask, |l| {
                // SAFETY: `addresses` vouches for the memory, and for its alignment.
                let words = unsafe { read_whole(at[l], parts) };
                for (element, &slot) in all.iter().enumerate() {
                    let byte = element * T::SIZE as usize;
                    let value = T::extend(words[byte / 8] >> (byte % 8 * 8)) & cut;
                    w.set(slot, l, value);
                }
            });
        }
        Next::Step
    }
    run::<T>
}

/// `st`: as `load`, of `value` or `all`.
pub(crate) fn store<T: Cell>() -> InstFn {
    #[inline(never)]
    fn run<T: Cell>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        let i = operands::Store::of(i);
        let count = i.count() as usize;
        let mut at = [0; LANES];
        if w.env.events.is_some() {
            w.storing = Some(stored::<T>(w, i, mask));
        }
        if let Err(next) = w.addresses(i.location(), mask, T::SIZE * count as u32, AccessKind::Write, &mut at) {
            return next;
        }
        if count == 1 {
            let value = w.row(i.value());
            // SAFETY: `addresses` vouches for the memory; the row is live.
            each(mask, |l| unsafe { T::write(at[l], (*value).0[l]) });
            return Next::Step;
        }
        let all = i.all(w.env.program);
        let parts = T::SIZE as usize * count;
        let keep = u64::MAX >> (64 - 8 * T::SIZE);
        each(mask, |l| {
            let mut words = [0; 4];
            for (element, &slot) in all.iter().enumerate() {
                let byte = element * T::SIZE as usize;
                let value = w.get(slot, l) & keep;
                words[byte / 8] |= value << (byte % 8 * 8);
            }
            // SAFETY: `addresses` vouches for the memory, and for its alignment.
            unsafe { write_whole(at[l], parts, &words) };
        });
        Next::Step
    }
    run::<T>
}

/// The bytes that each lane stores, for those who observe it.
#[cold]
fn stored<T: Cell>(w: &mut Warp<'_>, i: operands::Store<'_>, mask: u32) -> Box<[[u64; 4]; LANES]> {
    let mut bytes = w.last_stored.take().unwrap_or_else(|| Box::new([[0; 4]; LANES]));
    let keep = u64::MAX >> (64 - 8 * T::SIZE);
    let only;
    let all = if i.count() == 1 {
        only = [i.value()];
        &only[..]
    } else {
        i.all(w.env.program)
    };
    each(mask, |l| {
        bytes[l] = [0; 4];
        for (element, &slot) in all.iter().enumerate() {
            let byte = element * T::SIZE as usize;
            bytes[l][byte / 8] |= (w.get(slot, l) & keep) << (byte % 8 * 8);
        }
    });
    bytes
}

/// `ld.param` of a kernel at a constant offset in the parameter block, elements as in `load`.
pub(crate) fn load_param<T: Cell>() -> InstFn {
    #[inline(never)]
    fn run<T: Cell>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        let i = operands::LoadParam::of(i);
        let cut = u64::MAX >> (64 - i.bits());
        let start = w.env.params.as_ptr() as u64 + i.offset();
        let only;
        let all = if i.count() == 1 {
            only = [i.d()];
            &only
        } else {
            i.all(w.env.program)
        };
        for (element, &slot) in all.iter().enumerate() {
            let from = start + element as u64 * u64::from(T::SIZE);
            // SAFETY: the compiler checked the offset against the parameter block, which is padded
            // and 8-aligned; unaligned fields were refused there.
            let value = unsafe { T::read(from) } & cut;
            let d = w.row_mut(slot);
            // SAFETY: a live row.
            each(mask, |l| unsafe { (*d).0[l] = value });
        }
        Next::Step
    }
    run::<T>
}

/// The address of a kernel parameter, from the start of the parameter block.
#[inline(never)]
pub(crate) fn param_address(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::ParamAddress::of(i);
    let value = w.env.params.as_ptr() as u64 + i.offset();
    each(mask, |l| w.set(i.d(), l, value));
    Next::Step
}

/// The address of a variable of the running function in local memory, from the start of its frame.
#[inline(never)]
pub(crate) fn frame_address(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::FrameAddress::of(i);
    let value = u64::from(w.lbase) + i.offset();
    each(mask, |l| w.set(i.d(), l, value));
    Next::Step
}

/// Dynamic shared memory begins where the static ends: an address from there.
#[inline(never)]
pub(crate) fn dynamic_shared_address(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::DynamicShared::of(i);
    let value = u64::from(w.env.dynamic_start()) + i.offset();
    each(mask, |l| w.set(i.d(), l, value));
    Next::Step
}

/// `cvta`: from a space to generic addresses, or (`back` = 1) the other way.
#[inline(never)]
pub(crate) fn convert_address(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::ConvertAddress::of(i);
    let back = i.back() == 1;
    if i.space() == SHARED && w.block().members.count() > 1 {
        each(mask, |l| {
            let address = w.get(i.a(), l);
            let value = if back { window(w, address) } else { w.shared_to_generic(address) };
            w.set(i.d(), l, value);
        });
        return Next::Step;
    }
    let (base, stride) = match i.space() {
        SHARED => (w.shared_base(), 0),
        LOCAL => (w.local() as u64, u64::from(w.env.lane_local)),
        _ => (0, 0),
    };
    each(mask, |l| {
        let (address, base) = (w.get(i.a(), l), base + stride * l as u64);
        let value = if back { address.wrapping_sub(base) } else { address.wrapping_add(base) };
        w.set(i.d(), l, value);
    });
    Next::Step
}

/// `isspacep`: predicate `p` says whether a generic address lies in a space; with `cluster` = 1 in
/// shared memory of any block of the cluster.
#[inline(never)]
pub(crate) fn is_space(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::IsSpace::of(i);
    let shared = (w.shared_base(), u64::from(w.block().shared_end).max(1));
    let local = (w.local() as u64, u64::from(w.env.lane_local).max(1) * LANES as u64);
    let params = (w.env.params.as_ptr() as u64, w.env.params.len() as u64 * 8);
    let within = |address: u64, (start, size): (u64, u64)| address.wrapping_sub(start) < size;
    let mut bits = 0;
    each(mask, |l| {
        let address = w.get(i.address(), l);
        let is = match i.space() {
            SHARED if i.cluster() == 1 => w.shared_owner(address).is_some(),
            SHARED => within(address, shared),
            LOCAL => within(address, local),
            PARAM => within(address, params),
            _ => !within(address, shared) && !within(address, local) && !within(address, params),
        };
        bits |= u32::from(is) << l;
    });
    w.set_pred(i.p(), mask, bits);
    Next::Step
}

/// `cp.async.commit_group`, LDGDEPBAR: copies are carried out at once, but those who observe are to
/// know what the program may rely on.
#[inline(never)]
pub(crate) fn commit_copies(w: &mut Warp<'_>, _: &Inst, mask: u32) -> Next {
    w.tell_lanes(mask, |events, lanes| events.copies_committed(lanes));
    Next::Step
}

/// `cp.async.wait_group` and, with `pending` [`ALL_COPIES`], `cp.async.wait_all`.
#[inline(never)]
pub(crate) fn await_copies(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let pending = operands::AwaitCopies::of(i).pending();
    let pending = (pending != ALL_COPIES).then_some(pending);
    w.tell_lanes(mask, |events, lanes| events.copies_awaited(lanes, pending));
    Next::Step
}

/// No group of copies may be pending, nor copies of no group.
pub(crate) const ALL_COPIES: u32 = u32::MAX;

/// `cp.async`: copies `bytes` from a global to a shared address at once (what waits for it finds it
/// done), and fills what is beyond the `size` bytes to read with zeros.
#[inline(never)]
pub(crate) fn copy_async(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::CopyAsync::of(i);
    let size = i.bytes();
    let target = Location { row: i.to(), offset: i.to_offset(), space: i.space(), strength: COPY };
    let source = |beyond: u32| {
        let offset = u64::from(i.from_offset()) + u64::from(beyond);
        Location { row: i.from(), offset, space: GLOBAL, strength: COPY }
    };
    let (mut to, mut from) = ([0; LANES], [0; LANES]);
    if let Err(next) = w.addresses(target, mask, size, AccessKind::Write, &mut to) {
        return next;
    }
    // What is filled is not read. The lanes of one length together, in parts that lie at multiples
    // of their own length.
    let mut left = mask;
    while left != 0 {
        let read = (w.get(i.size(), left.trailing_zeros() as usize) as u32).min(size);
        let mut same = 0;
        each(left, |l| {
            same |= u32::from((w.get(i.size(), l) as u32).min(size) == read) << l;
        });
        left &= !same;
        let mut beyond = 0;
        while beyond < read {
            let part = if read == size { size } else { 1 << (read - beyond).ilog2() };
            let mut place = [0; LANES];
            if let Err(next) = w.addresses(source(beyond), same, part, AccessKind::Read, &mut place) {
                return next;
            }
            if beyond == 0 {
                each(same, |l| from[l] = place[l]);
            }
            beyond += part;
        }
    }
    each(mask, |l| {
        let read = (w.get(i.size(), l) as u32).min(size);
        if read == size && size.is_multiple_of(4) {
            for at in (0..u64::from(size)).step_by(4) {
                // SAFETY: `addresses` vouches for both ranges and their alignment.
                unsafe { u32::write(to[l] + at, u32::read(from[l] + at)) };
            }
            return;
        }
        for at in 0..u64::from(size) {
            // SAFETY: `addresses` vouches for both ranges.
            unsafe {
                let value = if at < u64::from(read) { u8::read(from[l] + at) } else { 0 };
                u8::write(to[l] + at, value);
            }
        }
    });
    Next::Step
}
