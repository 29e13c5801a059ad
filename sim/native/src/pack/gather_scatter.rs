//! Accesses of whole warps whose lanes' addresses have nothing to do with each other: a function of
//! the host moves the words. Code for each lane would be long, and most of its time spent on
//! fetching it.

use crate::pack::collective::put_aside;
use cranelift_codegen::ir::{InstBuilder, types};

#[cfg(target_arch = "x86_64")]
use super::gather_scatter_avx2;
use super::lanes::{Lanes, Pack, each};
use crate::context::{NO_SITE, RegionContext, at, find_next, pack};
use crate::values::plain;
use sim_exec::exec::load_store::{GENERIC, GLOBAL, SHARED};
use sim_exec::interface::AccessKind;
use sim_exec::operations::operands::Location;
use sim_exec::program::{LANES, Slot};

/// Bytes that a lane moves, and their logarithm.
pub(super) const WORD: u64 = 4;
pub(super) const SHIFT: u32 = 2;
/// The largest offset that vectors of the host take.
pub(super) const MOST_NEAR: u64 = i32::MAX as u64;

/// The lanes of a mask.
#[inline(always)]
fn lanes(mask: u64) -> impl Iterator<Item = usize> {
    let mut left = mask as u32;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}

/// Where the offsets in `near` count from, if one check answers for all lanes. Addresses become
/// offsets. Lanes that do not take part have what is there. None also where lanes are further apart
/// than [`MOST_NEAR`].
#[inline(always)]
fn reached(context: &mut RegionContext, access: u64, mask: u64) -> Option<u64> {
    let (mut far, mut odd) = (0, 0);
    if (access >> 48) as u32 == SHARED {
        let last = (context.shared_counts[SHIFT as usize] * WORD).checked_sub(WORD)? as u32;
        for &near in &context.near {
            far |= u32::from(near > last);
            odd |= near;
        }
        return (far == 0 && odd % WORD as u32 == 0).then_some(context.shared as u64);
    }
    // SAFETY: the warp has as many sites as its regions name.
    let site = unsafe { *context.sites.add(access as u32 as usize) };
    let last = (site.count * WORD).checked_sub(WORD)?;
    // In a large allocation offsets count from a place before the first lane's.
    let first = || context.addresses[mask.trailing_zeros() as usize % LANES].wrapping_sub(site.start);
    let origin = if last <= MOST_NEAR { 0 } else { first().saturating_sub(MOST_NEAR / 2) / WORD * WORD };
    let (last, start) = (last.checked_sub(origin)?.min(MOST_NEAR), site.start.wrapping_add(origin));
    let mut offsets = [0; LANES];
    for (lane, (near, address)) in offsets.iter_mut().zip(&context.addresses).enumerate() {
        let takes_part = mask as u32 == u32::MAX || mask >> lane & 1 != 0;
        let offset = if takes_part { address.wrapping_sub(start) } else { 0 };
        far |= u32::from(offset > last);
        *near = offset as u32;
        odd |= *near;
    }
    if far != 0 || odd % WORD as u32 != 0 {
        return None;
    }
    context.near = offsets;
    Some(site.host + origin)
}

/// Whether each lane's word follows that of the lane before it: what nobody could know when the
/// code was made is often so.
#[inline(always)]
fn follow(offsets: &[u32; LANES]) -> bool {
    let mut odd = 0;
    for (lane, offset) in offsets.iter().enumerate() {
        odd |= offset ^ (offsets[0].wrapping_add(WORD as u32 * lane as u32));
    }
    odd == 0
}

/// Finds each lane's word by itself. False for a fault.
#[cold]
fn found(context: *mut RegionContext, access: u64, mask: u64, pc: u64) -> bool {
    for lane in lanes(mask) {
        // SAFETY: the caller's promise: the context is that of a region that runs, nobody else's.
        unsafe {
            let address = match (access >> 48) as u32 {
                SHARED => u64::from((*context).near[lane]),
                _ => (*context).addresses[lane],
            };
            find_next(context, address, access, lane as u64, pc);
            if (*context).found == 0 {
                return false;
            }
            (*context).pointers[lane] = (*context).found;
        }
    }
    true
}

/// Reads the words at `addresses` (`near` in shared memory) into `aside`. Returns 0 for a fault.
///
/// # Safety
/// The context is that of a region that runs.
#[inline(always)]
unsafe fn load_all<const WIDE: bool>(context: *mut RegionContext, access: u64, mask: u64, pc: u64) -> u64 {
    // SAFETY: the caller's promise; what is found stays mapped, and other threads may write it.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if WIDE && mask as u32 == u32::MAX && gather_scatter_avx2::load(&mut *context, access) {
            return 1;
        }
        if let Some(host) = reached(&mut *context, access, mask) {
            let near = &(*context).near;
            (*context).aside = if follow(near) {
                ((host + u64::from(near[0])) as *const [u32; LANES]).read_volatile()
            } else {
                near.map(|offset| ((host + u64::from(offset)) as *const u32).read_volatile())
            };
            return 1;
        }
        if !found(context, access, mask, pc) {
            return 0;
        }
        for lane in lanes(mask) {
            (*context).aside[lane] = ((*context).pointers[lane] as *const u32).read_volatile();
        }
    }
    1
}

/// Writes the words in `aside` to `addresses`, as [`load_all`]. The last lane of several wins.
///
/// # Safety
/// As of [`load_all`].
#[inline(always)]
unsafe fn store_all<const WIDE: bool>(context: *mut RegionContext, access: u64, mask: u64, pc: u64) -> u64 {
    // SAFETY: as in `load_all`.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if WIDE && mask as u32 == u32::MAX && gather_scatter_avx2::store(&mut *context, access) {
            return 1;
        }
        if let Some(host) = reached(&mut *context, access, mask) {
            let near = &(*context).near;
            let put = |lane: usize| {
                let at = (host + u64::from(near[lane])) as *mut u32;
                at.write_volatile((*context).aside[lane]);
            };
            if mask as u32 != u32::MAX {
                lanes(mask).for_each(put);
            } else if follow(near) {
                let at = (host + u64::from(near[0])) as *mut [u32; LANES];
                at.write_volatile((*context).aside);
            } else {
                (0..LANES).for_each(put);
            }
            return 1;
        }
        if !found(context, access, mask, pc) {
            return 0;
        }
        for lane in lanes(mask) {
            ((*context).pointers[lane] as *mut u32).write_volatile((*context).aside[lane]);
        }
    }
    1
}

macro_rules! for_the_processor {
    ($all:ident, $plain:ident, $wide:ident) => {
        /// # Safety
        /// The context is that of a region that runs.
        unsafe extern "C" fn $plain(context: *mut RegionContext, access: u64, mask: u64, pc: u64) -> u64 {
            // SAFETY: the caller's promise.
            unsafe { $all::<false>(context, access, mask, pc) }
        }

        /// # Safety
        /// As above, and the processor has AVX2.
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,bmi1"))]
        unsafe extern "C" fn $wide(context: *mut RegionContext, access: u64, mask: u64, pc: u64) -> u64 {
            // SAFETY: the caller's promise.
            unsafe { $all::<{ cfg!(target_arch = "x86_64") }>(context, access, mask, pc) }
        }
    };
}
for_the_processor!(load_all, load_plain, load_wide);
for_the_processor!(store_all, store_plain, store_wide);

pub(super) fn has_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("bmi1");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether an access is one of these.
pub(super) fn is_apart(to: Location, total: u32, p: &Pack<'_, '_>) -> bool {
    p.width.lanes() == LANES
        && u64::from(total) == WORD
        && matches!(to.space, SHARED | GLOBAL | GENERIC)
        && p.steady(to, total).is_none()
        && p.halved(to, total).is_none()
}

/// The words at the lanes' addresses.
pub(super) fn load_apart(to: Location, pc: u32, p: &mut Pack<'_, '_>) -> Lanes {
    access_apart(
        to,
        pc,
        AccessKind::Read,
        if has_wide() { load_wide as *const () } else { load_plain as *const () },
        p,
    );
    let context = p.e.v.context;
    Lanes::Words(each(p.width, |part| {
        p.e.v.b.ins().load(types::I32X4, plain(), context, at!(aside) + 16 * part as i32)
    }))
}

/// Stores words to the lanes' addresses.
pub(super) fn store_apart(to: Location, value: Slot, pc: u32, p: &mut Pack<'_, '_>) {
    put_aside(value, p);
    access_apart(
        to,
        pc,
        AccessKind::Write,
        if has_wide() { store_wide as *const () } else { store_plain as *const () },
        p,
    );
}

/// Puts addresses in shared memory into the context; zeros for lanes that do not take part.
fn put_near(to: Location, p: &mut Pack<'_, '_>) {
    let mut near = p.near(to);
    if let Some(mask) = p.mask {
        near = each(p.width, |at| p.e.v.b.ins().band(near[at], mask[at]));
    }
    let context = p.e.v.context;
    for (part, value) in near.into_iter().enumerate() {
        p.e.v.b.ins().store(plain(), value, context, at!(near) + 16 * part as i32);
    }
}

fn access_apart(to: Location, pc: u32, kind: AccessKind, function: *const (), p: &mut Pack<'_, '_>) {
    let space = to.space;
    if space == SHARED {
        put_near(to, p)
    } else {
        p.put_addresses(to)
    }
    let site = if space == SHARED { NO_SITE } else { p.e.access.site(to.row, SHIFT, kind) };
    let access = p.e.v.int(types::I64, pack(site, SHIFT, kind, space));
    let mask = p.lanes_of_mask();
    let place = p.e.v.int(types::I64, u64::from(pc));
    let context = p.e.v.context;
    let done = p.e.v.call(function as usize, &[context, access, mask, place]);
    let good = p.e.v.b.create_block();
    p.e.v.b.ins().brif(done, good, &[], p.e.access.fault, &[]);
    p.e.v.b.switch_to_block(good);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Site;

    /// Loads and stores 32 words at `step` bytes from each other, which lie `far` bytes behind the
    /// start of an allocation, by each function that the processor has.
    fn moves_words(far: u64, step: u64, mask: u32) {
        const START: u64 = 1 << 40;
        const WORDS: usize = 1024;
        let (size, flags) = (far as usize + WORDS * 4, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
        // SAFETY: new memory; of most of it no page is ever touched.
        let host =
            unsafe { libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) } as u64;
        assert_ne!(host, u64::MAX);
        let cell = |at: usize| (host + far + 4 * at as u64) as *mut u32;
        // SAFETY: there is room for so many words.
        (0..WORDS).for_each(|at| unsafe { cell(at).write_volatile(7 * at as u32) });
        let mut sites = [Site { start: START, count: size as u64 / WORD, host }];
        let access = pack(0, SHIFT, AccessKind::Read, GLOBAL);
        type Mover = unsafe extern "C" fn(*mut RegionContext, u64, u64, u64) -> u64;
        let plain: [Mover; 2] = [load_plain, store_plain];
        let wide: [Mover; 2] = [load_wide, store_wide];
        for [load, store] in [plain].into_iter().chain(has_wide().then_some(wide)) {
            let mut context = RegionContext::new();
            context.sites = sites.as_mut_ptr();
            let address = |lane: usize| if mask >> lane & 1 != 0 { START + far + step * lane as u64 } else { 0 };
            let word = |lane: usize| (step / WORD) as usize * lane;
            context.addresses = std::array::from_fn(address);
            // SAFETY: the words are there, and the context knows where.
            assert_eq!(unsafe { load(&raw mut context, access, u64::from(mask), 0) }, 1);
            for lane in lanes(u64::from(mask)) {
                assert_eq!(context.aside[lane], 7 * word(lane) as u32, "lane {lane}");
            }
            context.addresses = std::array::from_fn(address);
            context.aside = std::array::from_fn(|lane| lane as u32 + 1);
            // SAFETY: as above.
            assert_eq!(unsafe { store(&raw mut context, access, u64::from(mask), 0) }, 1);
            for at in 0..WORDS {
                let stored = lanes(u64::from(mask)).find(|&lane| word(lane) == at);
                // SAFETY: as above.
                let now = unsafe { cell(at).read_volatile() };
                assert_eq!(now, stored.map_or(7 * at as u32, |lane| lane as u32 + 1), "word {at}");
                // SAFETY: as above.
                unsafe { cell(at).write_volatile(7 * at as u32) };
            }
        }
        // SAFETY: what was mapped above.
        unsafe { libc::munmap(host as *mut libc::c_void, size) };
    }

    #[test]
    fn words_are_moved_wherever_they_lie_in_an_allocation() {
        for far in [0, 4096, MOST_NEAR - 63, 3 << 30, 20 << 30] {
            for (step, mask) in [(4, u32::MAX), (12, u32::MAX), (12, 0x0f0f_00f0), (4, 0x8000_0000)] {
                moves_words(far / WORD * WORD, step, mask);
            }
        }
    }
}
