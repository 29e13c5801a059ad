//! Scattered words of a whole warp, moved with the processor's own vectors (AVX2). What these
//! functions decline, `gather_scatter` does.
//!
//! Compiled code puts addresses into the context by stores of 16 bytes. A load of 32 bytes that
//! spans two of them would have to wait until both are in the cache, so they are read as they were
//! written.

use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_castps_si128, _mm_castsi128_ps, _mm_cvtsi128_si32, _mm_loadu_si128, _mm_max_epu32,
    _mm_or_si128, _mm_set1_epi32, _mm_set1_epi64x, _mm_setr_epi32, _mm_setzero_si128, _mm_shuffle_epi32,
    _mm_shuffle_ps, _mm_srli_si128, _mm_storeu_si128, _mm_sub_epi64, _mm_testz_si128, _mm_xor_si128,
    _mm256_i32gather_epi32, _mm256_loadu_si256, _mm256_set_m128i, _mm256_storeu_si256,
};

use crate::context::RegionContext;
use sim_exec::exec::load_store::SHARED;
use sim_exec::program::LANES;

use super::gather_scatter::{MOST_NEAR, SHIFT, WORD};

/// Four offsets in each.
type Offsets = [__m128i; LANES / 4];

/// Where all lanes' offsets count from, and the offsets. None where a lane is outside, unaligned,
/// or too far away.
///
/// # Safety
/// The context is that of a region that runs.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn reached(context: &RegionContext, access: u64) -> Option<(u64, Offsets)> {
    let (host, last, offsets): (u64, u64, Offsets) = if (access >> 48) as u32 == SHARED {
        let last = (context.shared_counts[SHIFT as usize] * WORD).checked_sub(WORD)?;
        // SAFETY: there are 32 words.
        let part = |at: usize| unsafe { _mm_loadu_si128(context.near.as_ptr().add(4 * at).cast()) };
        (context.shared as u64, last, std::array::from_fn(part))
    } else {
        // SAFETY: the warp has as many sites as its regions name.
        let site = unsafe { *context.sites.add(access as u32 as usize) };
        let last = (site.count * WORD).checked_sub(WORD)?;
        let start = _mm_set1_epi64x(site.start as i64);
        let mut all = _mm_setzero_si128();
        let mut part = |at: usize| {
            // SAFETY: there are 32 addresses.
            let pair = |at: usize| unsafe { _mm_loadu_si128(context.addresses.as_ptr().add(2 * at).cast()) };
            let (low, high) = (_mm_sub_epi64(pair(2 * at), start), _mm_sub_epi64(pair(2 * at + 1), start));
            all = _mm_or_si128(all, _mm_or_si128(low, high));
            // The lower halves of the four.
            _mm_castps_si128(_mm_shuffle_ps::<0b10_00_10_00>(_mm_castsi128_ps(low), _mm_castsi128_ps(high)))
        };
        let offsets: Offsets = std::array::from_fn(&mut part);
        if _mm_testz_si128(all, _mm_set1_epi64x(!(MOST_NEAR as i64))) == 0 {
            return None;
        }
        (site.host, last, offsets)
    };
    let (mut most, mut all) = (offsets[0], offsets[0]);
    for &part in &offsets[1..] {
        (most, all) = (_mm_max_epu32(most, part), _mm_or_si128(all, part));
    }
    most = _mm_max_epu32(most, _mm_srli_si128::<8>(most));
    most = _mm_max_epu32(most, _mm_srli_si128::<4>(most));
    let inside = u64::from(_mm_cvtsi128_si32(most) as u32) <= last;
    let aligned = _mm_testz_si128(all, _mm_set1_epi32(WORD as i32 - 1)) != 0;
    (inside && aligned).then_some((host, offsets))
}

/// The first offset, if each lane's word follows that of the lane before it.
#[inline]
#[target_feature(enable = "avx2")]
fn follow(offsets: &Offsets) -> Option<u64> {
    let first = _mm_shuffle_epi32::<0>(offsets[0]);
    let mut wanted = _mm_add_epi32(first, _mm_setr_epi32(0, 4, 8, 12));
    let mut differ = _mm_setzero_si128();
    for &part in offsets {
        differ = _mm_or_si128(differ, _mm_xor_si128(part, wanted));
        wanted = _mm_add_epi32(wanted, _mm_set1_epi32(16));
    }
    (_mm_testz_si128(differ, differ) != 0).then(|| u64::from(_mm_cvtsi128_si32(first) as u32))
}

/// Reads the words of all lanes into `aside`. False: nothing is done.
///
/// # Safety
/// The context is that of a region that runs, and the processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load(context: &mut RegionContext, access: u64) -> bool {
    // SAFETY: the caller's promise.
    let Some((host, offsets)) = (unsafe { reached(context, access) }) else { return false };
    let aside = context.aside.as_mut_ptr();
    if let Some(first) = follow(&offsets) {
        for at in (0..LANES).step_by(8) {
            // SAFETY: the words are there, as `reached` says, and there is room for them.
            unsafe {
                let words = _mm256_loadu_si256(((host + first) as *const u32).add(at).cast());
                _mm256_storeu_si256(aside.add(at).cast(), words);
            }
        }
        return true;
    }
    for (at, pair) in offsets.chunks_exact(2).enumerate() {
        // SAFETY: as above.
        unsafe {
            let words = _mm256_i32gather_epi32::<1>(host as *const i32, _mm256_set_m128i(pair[1], pair[0]));
            _mm256_storeu_si256(aside.add(8 * at).cast(), words);
        }
    }
    true
}

/// Writes the words in `aside` for all lanes; the last lane of several wins. False: nothing is
/// done.
///
/// # Safety
/// As of [`load`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn store(context: &mut RegionContext, access: u64) -> bool {
    // SAFETY: the caller's promise.
    let Some((host, offsets)) = (unsafe { reached(context, access) }) else { return false };
    if let Some(first) = follow(&offsets) {
        for at in (0..LANES).step_by(4) {
            // SAFETY: the words are there, as `reached` says.
            unsafe {
                let words = _mm_loadu_si128(context.aside.as_ptr().add(at).cast());
                _mm_storeu_si128(((host + first) as *mut u32).add(at).cast(), words);
            }
        }
        return true;
    }
    let mut places = [0u32; LANES];
    for (part, to) in offsets.iter().zip(places.chunks_exact_mut(4)) {
        // SAFETY: there is room for four.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), *part) };
    }
    for (place, word) in places.iter().zip(&context.aside) {
        // SAFETY: as above.
        unsafe { ((host + u64::from(*place)) as *mut u32).write_volatile(*word) };
    }
    true
}
