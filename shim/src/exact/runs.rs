//! From bits to ranges: pages with a bit for each byte become runs, and equal runs at equal distances become one pattern.
//!
//! Owns the bound on their number. Pure; the table on the device is read elsewhere.

use trace::{ExactRun, exact_kind};

/// Words of 32 bits in the bits of a page.
pub const PAGE_WORDS: usize = 128;

/// Runs that one launch may have; with more, those nearest to each other are joined, and say so.
pub const MAX_RUNS: usize = 16_384;

/// Pieces that are kept before they must be joined: bounds the memory that a scatter over gigabytes takes.
const MAX_PIECES: usize = 1 << 21;

/// Collects the bits of one launch.
#[derive(Default)]
pub struct Collector {
    /// Start, end, kind.
    pieces: Vec<(u64, u64, u32)>,
}

impl Collector {
    /// Takes the bits of a page. Pages must come by ascending kind and address.
    pub fn page(&mut self, address: u64, kind: u32, bits: &[u32]) {
        // Most pages are touched as a whole.
        if bits.iter().all(|word| *word == u32::MAX) {
            return self.piece(address, address + bits.len() as u64 * 32, kind);
        }
        for (index, word) in bits.iter().enumerate() {
            let base = address + index as u64 * 32;
            if *word == u32::MAX {
                self.piece(base, base + 32, kind);
                continue;
            }
            let mut left = *word;
            while left != 0 {
                let from = left.trailing_zeros();
                let len = (left >> from).trailing_ones();
                self.piece(base + u64::from(from), base + u64::from(from + len), kind);
                left &= !(((1_u64 << len) - 1) << from) as u32;
            }
        }
    }

    /// Takes an extent of which only some bytes were touched.
    pub fn extent(&mut self, from: u64, to: u64, kind: u32) {
        if from < to {
            self.piece(from, to, kind | exact_kind::BOUND);
        }
    }

    fn piece(&mut self, from: u64, to: u64, kind: u32) {
        match self.pieces.last_mut() {
            Some(last) if last.2 == kind && last.1 == from => last.1 = to,
            _ => {
                if self.pieces.len() >= MAX_PIECES {
                    join_until(&mut self.pieces, MAX_PIECES / 2);
                }
                self.pieces.push((from, to, kind));
            }
        }
    }

    /// The ranges.
    pub fn finish(mut self) -> Vec<ExactRun> {
        let mut runs = patterns(&self.pieces);
        let mut limit = MAX_RUNS;
        while runs.len() > MAX_RUNS {
            join_until(&mut self.pieces, limit);
            runs = patterns(&self.pieces);
            limit /= 2;
        }
        runs
    }
}

/// Joins neighbours across ever larger gaps until at most `limit` pieces are left (or one for each kind).
fn join_until(pieces: &mut Vec<(u64, u64, u32)>, limit: usize) {
    let mut gap = 32_u64;
    while pieces.len() > limit && gap < 1 << 62 {
        let mut kept: usize = 0;
        for index in 1..pieces.len() {
            let next = pieces[index];
            let last = &mut pieces[kept];
            let same = (last.2 ^ next.2) & exact_kind::MASK == 0;
            if same && next.0 >= last.1 && next.0 - last.1 <= gap {
                *last = (last.0, next.1, last.2 | exact_kind::BOUND);
            } else {
                kept += 1;
                pieces[kept] = next;
            }
        }
        pieces.truncate(kept + 1);
        gap *= 2;
    }
}

/// Equal pieces at equal distances become one run.
fn patterns(pieces: &[(u64, u64, u32)]) -> Vec<ExactRun> {
    let mut runs: Vec<ExactRun> = Vec::new();
    for &(from, to, kind) in pieces {
        let width = to - from;
        if let Some(last) = runs.last_mut()
            && last.kind == kind
            && last.width == width
            && last.count < u32::MAX
        {
            let end = last.start + last.stride * u64::from(last.count - 1);
            let step = from.wrapping_sub(end);
            if last.count == 1 && from > end && step <= width.saturating_mul(4096) {
                (last.stride, last.count) = (step, 2);
                continue;
            }
            if last.count > 1 && step == last.stride {
                last.count += 1;
                continue;
            }
        }
        runs.push(ExactRun { start: from, stride: 0, width, count: 1, kind });
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(bytes: impl IntoIterator<Item = usize>) -> [u32; PAGE_WORDS] {
        let mut words = [0; PAGE_WORDS];
        for byte in bytes {
            words[byte / 32] |= 1 << (byte % 32);
        }
        words
    }

    fn bytes(runs: &[ExactRun]) -> Vec<(u32, u64)> {
        let mut all = Vec::new();
        for run in runs {
            for piece in 0..u64::from(run.count) {
                all.extend((0..run.width).map(|b| (run.kind, run.start + piece * run.stride + b)));
            }
        }
        all
    }

    #[test]
    fn full_pages_join_into_one_run() {
        let mut c = Collector::default();
        c.page(0x1000, 0, &[u32::MAX; PAGE_WORDS]);
        c.page(0x2000, 0, &[u32::MAX; PAGE_WORDS]);
        c.page(0x3000, 0, &bits(0..100));
        c.page(0x1000, 1, &bits(4096 - 4..4096));
        let one = |start, width, kind| ExactRun { start, stride: 0, width, count: 1, kind };
        assert_eq!(c.finish(), [one(0x1000, 8192 + 100, 0), one(0x1ffc, 4, 1)]);
    }

    #[test]
    fn even_elements_are_one_pattern_across_pages() {
        let mut c = Collector::default();
        let even = bits((0..4096).filter(|b| b % 8 < 4));
        c.page(0x1000, 1, &even);
        c.page(0x2000, 1, &even);
        assert_eq!(c.finish(), [ExactRun { start: 0x1000, stride: 8, width: 4, count: 1024, kind: 1 }]);
    }

    #[test]
    fn no_byte_is_lost_or_added() {
        let mut seed = 7_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize
        };
        for _ in 0..200 {
            let (mut c, mut want) = (Collector::default(), Vec::new());
            for kind in 0..3 {
                for page in [0x5000_u64, 0x6000, 0x9000] {
                    let (size, step) = (1 << (next() % 5), 1 + next() % 40);
                    let mut set: Vec<usize> = (0..next() % 300).map(|i| i * step * size % 4096).collect();
                    set = set.into_iter().flat_map(|b| b..(b + size).min(4096)).collect();
                    set.sort_unstable();
                    set.dedup();
                    c.page(page, kind, &bits(set.iter().copied()));
                    want.extend(set.iter().map(|b| (kind, page + *b as u64)));
                }
            }
            let mut got = bytes(&c.finish());
            got.sort_unstable();
            want.sort_unstable();
            assert_eq!(got, want);
        }
    }

    #[test]
    fn too_many_runs_become_bounds_that_still_hold_every_byte() {
        let mut c = Collector::default();
        let mut want = Vec::new();
        let (mut at, mut seed) = (0x10_0000_u64, 1_u64);
        for _ in 0..2000 {
            let mut set = Vec::new();
            for word in 0..PAGE_WORDS {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                set.push(word * 32 + (seed >> 60) as usize);
            }
            c.page(at, 1, &bits(set.iter().copied()));
            want.extend(set.iter().map(|b| at + *b as u64));
            at += 4096;
        }
        let runs = c.finish();
        assert!(runs.len() <= MAX_RUNS);
        assert!(runs.iter().all(|r| r.kind == 1 | exact_kind::BOUND));
        for byte in want {
            let at = runs.partition_point(|r| r.start <= byte) - 1;
            let r = &runs[at];
            assert!((byte - r.start) % r.stride.max(1) < r.width, "{byte:x} is in no run");
        }
    }
}
