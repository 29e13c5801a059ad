//! Accesses of whole warps whose lanes' addresses have nothing to do with each other: a function of
//! the host moves the words. Code for each lane would be long, and most of its time spent on
//! fetching it.

use cranelift_codegen::ir::{InstBuilder, types};

use super::lanes::{Lanes, Pack, each};
use crate::interp::exec::load_store::{GENERIC, GLOBAL, SHARED};
use crate::interp::interface::AccessKind;
use crate::interp::native::context::{NO_SITE, RegionContext, at, find_next, pack};
use crate::interp::native::values::plain;
use crate::interp::program::{Inst, LANES};

/// Bytes that a lane moves, and their logarithm.
const WORD: u64 = 4;
const SHIFT: u32 = 2;

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

/// Where offsets count from, if one check answers for all lanes. Addresses become offsets. Lanes
/// that do not take part have what the first byte has.
#[inline(always)]
fn reached(context: &mut RegionContext, access: u64, mask: u64) -> Option<u64> {
    if (access >> 48) as u32 == SHARED {
        let last = (context.shared_counts[SHIFT as usize] * WORD).checked_sub(WORD)? as u32;
        let (mut far, mut odd) = (0, 0);
        for (offset, &near) in context.addresses.iter_mut().zip(&context.near) {
            far |= u32::from(near > last);
            odd |= near;
            *offset = u64::from(near);
        }
        return (far == 0 && odd % WORD as u32 == 0).then_some(context.shared as u64);
    }
    // SAFETY: the warp has as many sites as its regions name.
    let site = unsafe { *context.sites.add(access as u32 as usize) };
    let last = (site.count * WORD).checked_sub(WORD)?;
    let (mut far, mut odd) = (0, 0);
    let mut offsets = [0; LANES];
    if mask as u32 == u32::MAX {
        for (offset, address) in offsets.iter_mut().zip(&context.addresses) {
            *offset = address.wrapping_sub(site.start);
            far |= u64::from(*offset > last);
            odd |= *offset;
        }
    } else {
        for (lane, (offset, address)) in offsets.iter_mut().zip(&context.addresses).enumerate() {
            *offset = address.wrapping_sub(site.start) & (mask >> lane & 1).wrapping_neg();
            far |= u64::from(*offset > last);
            odd |= *offset;
        }
    }
    if far != 0 || odd % WORD != 0 {
        return None;
    }
    context.addresses = offsets;
    Some(site.host)
}

/// Whether each lane's word follows that of the lane before it: what nobody could know when the
/// code was made is often so.
#[inline(always)]
fn follow(offsets: &[u64; LANES]) -> bool {
    let mut odd = 0;
    for (lane, offset) in offsets.iter().enumerate() {
        odd |= offset ^ (offsets[0].wrapping_add(WORD * lane as u64));
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
unsafe fn load_all(context: *mut RegionContext, access: u64, mask: u64, pc: u64) -> u64 {
    // SAFETY: the caller's promise; what is found stays mapped, and other threads may write it.
    unsafe {
        if let Some(host) = reached(&mut *context, access, mask) {
            if follow(&(*context).addresses) {
                (*context).aside = ((host + (*context).addresses[0]) as *const [u32; LANES]).read_volatile();
                return 1;
            }
            for lane in 0..LANES {
                (*context).aside[lane] = ((host + (*context).addresses[lane]) as *const u32).read_volatile();
            }
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
unsafe fn store_all(context: *mut RegionContext, access: u64, mask: u64, pc: u64) -> u64 {
    // SAFETY: as in `load_all`.
    unsafe {
        if let Some(host) = reached(&mut *context, access, mask) {
            let put = |lane: usize| {
                let at = (host + (*context).addresses[lane]) as *mut u32;
                at.write_volatile((*context).aside[lane]);
            };
            if mask as u32 == u32::MAX {
                if follow(&(*context).addresses) {
                    let at = (host + (*context).addresses[0]) as *mut [u32; LANES];
                    at.write_volatile((*context).aside);
                } else {
                    (0..LANES).for_each(put)
                }
            } else {
                lanes(mask).for_each(put)
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
            unsafe { $all(context, access, mask, pc) }
        }

        /// # Safety
        /// As above, and the processor has AVX2.
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,bmi1"))]
        unsafe extern "C" fn $wide(context: *mut RegionContext, access: u64, mask: u64, pc: u64) -> u64 {
            // SAFETY: the caller's promise.
            unsafe { $all(context, access, mask, pc) }
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

impl Pack<'_, '_> {
    /// Whether an access is one of these.
    pub(super) fn is_apart(&self, i: &Inst, total: u32) -> bool {
        self.width.lanes() == LANES
            && u64::from(total) == WORD
            && matches!(i.z & 15, SHARED | GLOBAL | GENERIC)
            && self.steady(i, total).is_none()
            && self.halved(i, total).is_none()
    }

    /// The words at the lanes' addresses.
    pub(super) fn load_apart(&mut self, i: &Inst, pc: u32) -> Lanes {
        self.access_apart(
            i,
            pc,
            AccessKind::Read,
            if has_wide() { load_wide as *const () } else { load_plain as *const () },
        );
        let context = self.e.v.context;
        Lanes::Words(each(self.width, |part| {
            self.e.v.b.ins().load(types::I32X4, plain(), context, at!(aside) + 16 * part as i32)
        }))
    }

    /// Stores words to the lanes' addresses.
    pub(super) fn store_apart(&mut self, i: &Inst, pc: u32) {
        self.put_aside(i.b);
        self.access_apart(
            i,
            pc,
            AccessKind::Write,
            if has_wide() { store_wide as *const () } else { store_plain as *const () },
        );
    }

    /// Puts addresses in shared memory into the context; zeros for lanes that do not take part.
    fn put_near(&mut self, i: &Inst) {
        let mut near = self.near(i);
        if let Some(mask) = self.mask {
            near = each(self.width, |at| self.e.v.b.ins().band(near[at], mask[at]));
        }
        let context = self.e.v.context;
        for (part, value) in near.into_iter().enumerate() {
            self.e.v.b.ins().store(plain(), value, context, at!(near) + 16 * part as i32);
        }
    }

    fn access_apart(&mut self, i: &Inst, pc: u32, kind: AccessKind, function: *const ()) {
        let space = i.z & 15;
        if space == SHARED {
            self.put_near(i)
        } else {
            self.put_addresses(i)
        }
        let site = if space == SHARED { NO_SITE } else { self.e.access.site(i.a, SHIFT, kind) };
        let access = self.e.v.int(types::I64, pack(site, SHIFT, kind, space));
        let mask = self.lanes_of_mask();
        let place = self.e.v.int(types::I64, u64::from(pc));
        let context = self.e.v.context;
        let done = self.e.v.call(function as usize, &[context, access, mask, place]);
        let good = self.e.v.b.create_block();
        self.e.v.b.ins().brif(done, good, &[], self.e.access.fault, &[]);
        self.e.v.b.switch_to_block(good);
    }
}
