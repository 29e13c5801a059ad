//! Checksums of the host's memory: over all bytes of a region, or over a sample that is always the
//! same for the same region.
//!
//! Owns the choice of the bytes and the sum. A sample can miss a change, and a sum can (once in
//! 2^64) too; neither can invent one. Which bytes of a large range are in a sample depends on a
//! seed, so a program that refills a part of a buffer again and again is caught at some point.

use trace::Region;

use crate::arch;

/// Parts of a region that have sums of their own, so that a change can be located.
pub const PARTS: usize = 16;

/// One sum for each part.
pub type Checksums = [u64; PARTS];

/// Bytes at either end of a sampled range that are always in the sample.
const EDGE: u64 = 2048;
/// Bytes in between that are read together: two cache lines, which processors fetch as a pair. What
/// a sample costs is the lines.
const RUN: u64 = 128;

/// Checksums of a region's bytes: of all when they are at most `most`, otherwise of a sample of
/// about `most` bytes that depends on `seed`. 0: all, however many.
///
/// # Safety
/// Every byte of the region can be read. (Others may write it at the same time.)
pub unsafe fn sums(region: &Region, most: u64, seed: u32) -> Checksums {
    let mut sums = [0; PARTS];
    let rows = u64::from(region.height) * u64::from(region.depth);
    if region.is_empty() {
        return sums;
    }
    if rows == 1 {
        linear(region.width, most, seed, |at, len| {
            // SAFETY: the caller's promise: at + len is at most the width.
            unsafe { add(&mut sums[part(at, region.width)], region.start + at, len) };
        });
        return sums;
    }
    let most = if most == 0 { u64::MAX } else { most };
    // Of every row the same number of bytes, from places that wander through the columns; when that
    // would be too little, of some rows.
    let all = region.width.saturating_mul(rows) <= most;
    let len = if all { region.width } else { (most / rows).max(64).min(region.width) };
    let step = if all { 1 } else { (rows.saturating_mul(len) / most).max(1) };
    let mut row = 0;
    while row < rows {
        let (slice, line) = (row / u64::from(region.height), row % u64::from(region.height));
        let column = if len < region.width { ((row + u64::from(seed)) * 64) % (region.width - len + 1) } else { 0 };
        let at = region.start + slice * region.slice_pitch + line * region.pitch + column;
        // SAFETY: the caller's promise: the run lies in one row.
        unsafe { add(&mut sums[part(row, rows)], at, len) };
        row += step;
    }
    sums
}

/// The runs of bytes to look at in a range of `len`.
fn linear(len: u64, most: u64, seed: u32, mut run: impl FnMut(u64, u64)) {
    if most == 0 || len <= most {
        let piece = len.div_ceil(PARTS as u64).next_multiple_of(64);
        let mut at = 0;
        while at < len {
            run(at, piece.min(len - at));
            at += piece;
        }
        return;
    }
    let most = most.max(64).min(len);
    let edge = EDGE.min(most / 4).max(1);
    run(0, edge);
    let (middle, width) = (len - 2 * edge, RUN.min(most / 4).max(1));
    let runs = ((most - 2 * edge) / width).max(1);
    let step = middle as f64 / runs as f64;
    // Whole lines of what lies between two runs, spread as far apart as they can be from seed to
    // seed.
    let spare = (step as u64).saturating_sub(width) / 64;
    let shift = u64::from(seed).wrapping_mul(A).wrapping_shr(32) % (spare + 1) * 64;
    for index in 0..runs {
        let at = edge + (index as f64 * step) as u64 + shift;
        run(at, width.min(len - at));
    }
    run(len - edge, edge);
}

/// The part that an offset falls into.
fn part(at: u64, of: u64) -> usize {
    ((u128::from(at) * PARTS as u128) / u128::from(of.max(1))) as usize % PARTS
}

/// The bytes of a region that changed parts stand for: first address and one past the last.
pub fn changed(region: &Region, before: &Checksums, now: &Checksums) -> Option<(u64, u64)> {
    let first = before.iter().zip(now).position(|(a, b)| a != b)? as u64;
    let last = before.iter().zip(now).rposition(|(a, b)| a != b)? as u64;
    let (start, len) = (region.start, region.end() - region.start);
    let border = |n: u64| start + (u128::from(len) * u128::from(n) / PARTS as u128) as u64;
    if region.height > 1 || region.depth > 1 {
        return Some((border(first), border(last + 1)));
    }
    // Runs begin in the part that they are counted for and may reach into the next.
    let reach = len.div_ceil(PARTS as u64).next_multiple_of(64).max(EDGE);
    Some((border(first), (border(last + 1) + reach).min(start + len)))
}

const A: u64 = 0x9e37_79b9_7f4a_7c15;
const B: u64 = 0xc2b2_ae3d_27d4_eb4f;

#[inline]
fn mix(lane: u64, word: u64) -> u64 {
    (lane ^ word).wrapping_mul(A).rotate_left(29)
}

/// Mixes `len` bytes from `at` into a sum: in independent lanes, so that memory is what it waits
/// for.
///
/// # Safety
/// The bytes can be read.
unsafe fn add(sum: &mut u64, at: u64, len: u64) {
    let mut lanes = [*sum, *sum ^ B, *sum ^ A, sum.rotate_left(17) ^ len];
    let (mut from, end) = (at, at + len);
    let mut byte = |from: u64| {
        // Volatile: the program may be writing at this moment, and any value is right then.
        // SAFETY: the caller's promise.
        lanes[0] = mix(lanes[0], u64::from(unsafe { (from as *const u8).read_volatile() }) + 1);
    };
    while from < end && from % 8 != 0 {
        byte(from);
        from += 1;
    }
    let words = from + (end - from) / 8 * 8;
    (words..end).for_each(&mut byte);
    // SAFETY: as above, and aligned.
    let word = |from: u64| unsafe { (from as *const u64).read_volatile() };
    if words >= from.next_multiple_of(VECTOR) + BLOCK && arch::has_blocks() {
        while from % VECTOR != 0 {
            lanes[0] = mix(lanes[0], word(from));
            from += 8;
        }
        let wide = (words - from) / BLOCK * BLOCK;
        // SAFETY: as above; aligned, and the processor has these instructions.
        let blocks = unsafe { arch::blocks::<A, B>(from, wide) };
        for (lane, pair) in lanes.iter_mut().zip(blocks.chunks(4)) {
            *lane = pair.iter().fold(*lane, |lane, word| mix(lane ^ (lane >> 32), *word));
        }
        from += wide;
    }
    while words - from >= 32 {
        for (lane, from) in lanes.iter_mut().zip((from..).step_by(8)) {
            *lane = mix(*lane, word(from));
        }
        from += 32;
    }
    for (lane, from) in lanes.iter_mut().zip((from..words).step_by(8)) {
        *lane = mix(*lane, word(from));
    }
    *sum = lanes.iter().fold(B, |sum, lane| mix(sum ^ (lane >> 32), *lane));
}

/// Bytes that [`arch::blocks`] takes at a time, and what they are aligned to.
const BLOCK: u64 = 128;
const VECTOR: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8], region: Region, most: u64) -> Checksums {
        assert!(region.end() - region.start <= bytes.len() as u64);
        // SAFETY: the region lies in bytes, as just checked, since every test counts from 0.
        unsafe { sums(&Region { start: bytes.as_ptr() as u64 + region.start, ..region }, most, 1) }
    }

    #[test]
    fn every_single_byte_counts_when_all_are_read() {
        for len in [1_usize, 7, 31, 32, 63, 64, 65, 1000, 5000] {
            let mut bytes = vec![7_u8; len];
            let region = Region::linear(0, len as u64);
            let before = of(&bytes, region, 1 << 16);
            assert_eq!(before, of(&bytes, region, 0), "a limit that is not reached changes nothing");
            for at in 0..len {
                bytes[at] ^= 1;
                let now = of(&bytes, region, 1 << 16);
                let (from, to) = changed(&region, &before, &now).unwrap_or_else(|| panic!("byte {at} of {len}"));
                assert!(from <= at as u64 && (at as u64) < to && to <= len as u64, "{at} of {len}: {from}..{to}");
                bytes[at] ^= 1;
            }
            assert_eq!(changed(&region, &before, &of(&bytes, region, 1 << 16)), None);
        }
    }

    #[test]
    fn a_sample_sees_both_ends_and_any_large_part() {
        let len = 8 << 20;
        let mut bytes = vec![1_u8; len];
        let region = Region::linear(0, len as u64);
        let before = of(&bytes, region, 1 << 16);
        for (from, to) in [(0, 1), (len - 1, len), (len / 3, len / 3 + (128 << 10)), (len / 2, len)] {
            bytes[from..to].fill(2);
            let (a, b) = changed(&region, &before, &of(&bytes, region, 1 << 16)).expect("seen");
            assert!(a <= from as u64 && b >= (from as u64 + 1).min(to as u64), "{from}..{to}: {a}..{b}");
            bytes[from..to].fill(1);
        }
        assert_eq!(before, of(&bytes, region, 1 << 16), "the same bytes, the same sample");
    }

    #[test]
    fn blocks_that_change_places_are_noticed() {
        for size in [64, 128, 256, 1024] {
            let mut bytes: Vec<u8> = (0..1_u32 << 14).flat_map(u32::to_le_bytes).collect();
            let region = Region::linear(0, bytes.len() as u64);
            let before = of(&bytes, region, 0);
            let (first, rest) = bytes.split_at_mut(size);
            first.swap_with_slice(&mut rest[size..2 * size]);
            assert!(changed(&region, &before, &of(&bytes, region, 0)).is_some(), "{size}");
            assert_eq!(before[1..], of(&bytes, region, 0)[1..]);
        }
    }

    #[test]
    fn each_seed_looks_elsewhere_and_seeds_together_see_a_small_part() {
        let len = 4 << 20;
        let mut bytes = vec![1_u8; len];
        let region = Region::linear(0, len as u64);
        let start = bytes.as_ptr() as u64;
        let see = |seed| {
            // SAFETY: bytes outlives the call and is as long as the region.
            unsafe { sums(&Region { start, ..region }, 1 << 14, seed) }
        };
        let before: Vec<Checksums> = (0..600).map(see).collect();
        bytes[1_000_000..1_000_128].fill(2);
        let seen = (0..600).filter(|seed| changed(&region, &before[*seed as usize], &see(*seed)).is_some()).count();
        assert!((1..100).contains(&seen), "{seen} of 600");
    }

    #[test]
    fn gaps_of_a_pitched_region_do_not_count() {
        let mut bytes = vec![0_u8; 100 * 64];
        let region = Region::pitched(10, 40, 64, 100);
        for most in [0, 1 << 16, 512] {
            let before = of(&bytes, region, most);
            bytes[60] = 9;
            assert_eq!(before, of(&bytes, region, most), "a byte between rows");
            bytes[60] = 0;
            (0..64).for_each(|row| bytes[10 + row * 100..][..40].fill(3));
            assert!(changed(&region, &before, &of(&bytes, region, most)).is_some());
            bytes.fill(0);
        }
        let before = of(&bytes, region, 0);
        bytes[10 + 63 * 100 + 39] = 1;
        let (from, to) = changed(&region, &before, &of(&bytes, region, 0)).expect("the last byte");
        assert!(from <= 10 + 63 * 100 + 39 && to == 10 + 63 * 100 + 40);
    }

    #[test]
    fn tiny_samples_of_large_ranges_stay_inside() {
        let bytes = vec![0_u8; 1 << 20];
        for most in [1, 5, 64, 1024] {
            of(&bytes, Region::linear(0, 1 << 20), most);
            of(&bytes, Region::pitched(0, 1000, 1024, 1024), most);
        }
    }
}
