//! From bits to ranges: pages with a bit for each byte become runs, and equal runs at equal
//! distances become one pattern.
//!
//! Owns the bound on the number of runs; [`super::run_patterns`] makes patterns. Pure: the table on
//! the device is read in [`super::device_table`].
//!
//! Pages come in any order. Each is turned into runs at once, and finished runs of neighbouring
//! pages are put together at the end. As soon as it is certain that a kind has more runs than a
//! launch may have, its pages count with their first and last byte only. So a scatter costs no more
//! than a copy, and the bits of later pages need not even be fetched ([`Collector::is_full`]).

use trace::ExactRun;

use super::run_patterns::{append, bound, end, join_until, pattern_of, repeated};

/// Words of 32 bits in the bits of a page.
pub const PAGE_WORDS: usize = 128;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = PAGE_WORDS as u64 * 32;

/// Runs that one launch may have; with more, those nearest to each other are joined, and say so.
///
/// So many that each of 100,000 threads may touch two elements anywhere.
pub const MAX_RUNS: usize = 1 << 18;

/// A page of which the bits were looked at, but not all bytes touched.
struct Page {
    from: u64,
    to: u64,
    /// Its runs; none when only its extent is known.
    first: u32,
    count: u32,
}

/// Stands for a page of which all bytes were touched.
const WHOLE: u64 = (1 << PLACE_BITS) - 1;
/// Stands for a page whose bits were not read.
const UNREAD: u64 = WHOLE - 1;

// What pages are sorted by: kind, number of the page, place of what is known of it; one word, for
// half of the time goes into sorting.
const PLACE_BITS: u32 = 18;
const KIND_SHIFT: u32 = 61;
const NUMBER_BITS: u32 = KIND_SHIFT - PLACE_BITS;

/// Collects the bits of one launch.
pub struct Collector {
    /// Kind and number of each page, and which of `pages` it is.
    order: Vec<u64>,
    pages: Vec<Page>,
    runs: Vec<ExactRun>,
    /// Runs of each kind that no neighbour can take in.
    certain: [usize; 5],
    /// Extents of which only some bytes were touched.
    extents: Vec<ExactRun>,
    /// Runs that each kind may have.
    limit: usize,
}

impl Default for Collector {
    fn default() -> Self {
        Self::bounded(MAX_RUNS)
    }
}

impl Collector {
    /// With another bound than [`MAX_RUNS`].
    fn bounded(limit: usize) -> Self {
        let (order, pages, runs, extents) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { order, pages, runs, certain: [0; 5], extents, limit }
    }

    fn put(&mut self, address: u64, kind: u32, place: u64) {
        let number = address / PAGE_BYTES;
        // Neither are there such addresses today, nor has a table so many pages.
        if number >> NUMBER_BITS != 0 || place > WHOLE {
            return self.extent(address, address + PAGE_BYTES, kind);
        }
        self.order.push(u64::from(kind) << KIND_SHIFT | number << PLACE_BITS | place);
    }

    fn look(&mut self, address: u64, kind: u32, page: Page) {
        let place = self.pages.len() as u64;
        // Two places are reserved.
        self.put(address, kind, if place < UNREAD { place } else { u64::MAX });
        self.pages.push(page);
    }

    /// Takes a page of which all bytes were touched.
    pub fn whole(&mut self, address: u64, kind: u32) {
        self.put(address, kind, WHOLE);
    }

    /// Takes the bits of a page of a kind below 5; pages come in any order, each once.
    pub fn page(&mut self, address: u64, kind: u32, bits: &[u32]) {
        let first = self.runs.len();
        if self.is_full(kind) {
            let from = bits.iter().position(|word| *word != 0);
            let to = bits.iter().rposition(|word| *word != 0);
            if let (Some(from), Some(to)) = (from, to) {
                let from = address + from as u64 * 32 + u64::from(bits[from].trailing_zeros());
                let to = address + to as u64 * 32 + 32 - u64::from(bits[to].leading_zeros());
                self.look(address, kind, Page { from, to, first: first as u32, count: 0 });
            }
            return;
        }
        let certain = self.split(address, kind, bits);
        let count = self.runs.len() - first;
        let (Some(begin), Some(last)) = (self.runs.get(first), self.runs.last()) else { return };
        let page = Page { from: begin.start, to: end(last), first: first as u32, count: count as u32 };
        self.look(address, kind, page);
        self.certain[kind as usize] += certain;
    }

    /// Takes a page whose bits were not read.
    pub fn unread(&mut self, address: u64, kind: u32) {
        self.put(address, kind, UNREAD);
    }

    /// Whether pages of this kind need no bits any more.
    pub fn is_full(&self, kind: u32) -> bool {
        self.certain.get(kind as usize).is_some_and(|n| *n > self.limit)
    }

    /// Takes an extent of which only some bytes were touched.
    pub fn extent(&mut self, from: u64, to: u64, kind: u32) {
        if from < to {
            self.extents.push(bound(from, to, kind));
        }
    }

    /// Adds the runs of a page; how many of them no neighbour can take in.
    fn split(&mut self, address: u64, kind: u32, bits: &[u32]) -> usize {
        let word = bits.first().copied().unwrap_or(0);
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        let mut put = |from: u64, width: u64| pieces.push((from, width));
        // Most pages are touched as a whole, or by one short pattern.
        if word != 0 && bits.iter().all(|other| *other == word) {
            if word == u32::MAX {
                self.runs.push(ExactRun { start: address, stride: 0, width: PAGE_BYTES, count: 1, kind });
                return 0;
            }
            if let Some((offset, width, stride)) = pattern_of(word) {
                let count = bits.len() as u32 * 32 / stride;
                let (start, stride) = (address + u64::from(offset), u64::from(stride));
                self.runs.push(ExactRun { start, stride, width: u64::from(width), count, kind });
                return 0;
            }
        }
        let (mut from, mut to) = (0, 0);
        for (index, word) in bits.iter().enumerate() {
            let base = address + index as u64 * 32;
            let mut left = *word;
            while left != 0 {
                let low = left.trailing_zeros();
                let len = (left >> low).trailing_ones();
                let begin = base + u64::from(low);
                if begin != to {
                    if from < to {
                        put(from, to - from);
                    }
                    from = begin;
                }
                to = begin + u64::from(len);
                left &= !(((1_u64 << len) - 1) << low) as u32;
            }
        }
        if from < to {
            put(from, to - from);
        }
        let first = self.runs.len();
        let certain = repeated(&pieces, kind, &mut self.runs);
        self.runs[first..].sort_unstable_by_key(|run| run.start);
        // The first and the last one may continue beyond the page.
        certain.saturating_sub(2)
    }

    /// The ranges.
    pub fn finish(mut self) -> Vec<ExactRun> {
        self.order.sort_unstable();
        let mut runs: Vec<ExactRun> = Vec::new();
        for &key in &self.order {
            let kind = (key >> KIND_SHIFT) as u32;
            let address = (key >> PLACE_BITS & ((1 << NUMBER_BITS) - 1)) * PAGE_BYTES;
            match key & WHOLE {
                WHOLE => {
                    let run = ExactRun { start: address, stride: 0, width: PAGE_BYTES, count: 1, kind };
                    append(&mut runs, 0, run);
                }
                UNREAD => append(&mut runs, 0, bound(address, address + PAGE_BYTES, kind)),
                place => {
                    let p = &self.pages[place as usize];
                    if p.count == 0 || self.is_full(kind) {
                        append(&mut runs, 0, bound(p.from, p.to, kind));
                    } else {
                        let own = &self.runs[p.first as usize..][..p.count as usize];
                        own.iter().for_each(|run| append(&mut runs, 0, *run));
                    }
                }
            }
        }
        runs.append(&mut self.extents);
        join_until(&mut runs, self.limit);
        runs
    }
}

#[cfg(test)]
mod tests {
    use trace::exact_kind;

    use super::*;

    /// A bound that is soon reached.
    const FEW: usize = 16_384;

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
        c.whole(0x2000, 0);
        c.page(0x1000, 0, &[u32::MAX; PAGE_WORDS]);
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
    fn far_away_addresses_are_bounds() {
        let mut c = Collector::default();
        c.whole((1 << 55) - 4096, 2);
        c.whole(1 << 55, 2);
        let one = |start, kind| ExactRun { start, stride: 0, width: 4096, count: 1, kind };
        assert_eq!(c.finish(), [one((1 << 55) - 4096, 2), one(1 << 55, 2 | exact_kind::BOUND)]);
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
    fn pages_in_any_order_give_the_same_runs() {
        let page = |n: u64| bits((0..4096).filter(|b| (n as usize * 4096 + b) % 12 < 4));
        let collect = |order: &[u64]| {
            let mut c = Collector::default();
            order.iter().for_each(|n| c.page(n * 4096, 0, &page(*n)));
            c.finish()
        };
        // The pattern goes on across the borders of pages.
        assert_eq!(collect(&[0, 1, 2, 3]), [ExactRun { start: 0, stride: 12, width: 4, count: 1366, kind: 0 }]);
        assert_eq!(collect(&[3, 0, 2, 1]), collect(&[0, 1, 2, 3]));
    }

    /// Fields of structures: which bytes of each, and how large it is.
    #[test]
    fn fields_of_structures_are_a_pattern_each() {
        let shapes: [(&[(usize, usize)], usize); 7] = [
            (&[(0, 4), (16, 4)], 20),
            (&[(0, 8), (12, 4)], 24),
            (&[(4, 4), (12, 4), (24, 8)], 36),
            (&[(0, 1), (2, 1), (5, 2)], 7),
            (&[(8, 16)], 1000),
            (&[(0, 4), (8, 4), (16, 4), (24, 4), (40, 4)], 48),
            (&[(1, 2), (90, 100)], 500),
        ];
        for (fields, size) in shapes {
            let count = (40 * 4096) / size;
            let all: Vec<usize> = (0..count)
                .flat_map(|k| fields.iter().flat_map(move |(at, width)| k * size + at..k * size + at + width))
                .collect();
            let mut c = Collector::default();
            for page in (0..40).rev() {
                let own = all.iter().filter(|b| **b / 4096 == page).map(|b| b % 4096);
                c.page(page as u64 * 4096, 1, &bits(own));
            }
            let runs = c.finish();
            let mut got: Vec<u64> = bytes(&runs).into_iter().map(|b| b.1).collect();
            got.sort_unstable();
            assert_eq!(got, all.iter().map(|b| *b as u64).collect::<Vec<_>>(), "{fields:?}, {size}");
            assert!(runs.len() <= 3 * fields.len(), "{fields:?}, {size}: {} runs, {:?}", runs.len(), &runs[..8]);
        }
    }

    #[test]
    fn a_scatter_among_whole_pages_costs_only_its_own_kind() {
        let mut c = Collector::bounded(FEW);
        let mut read = 0;
        for n in 0..4000_u64 {
            c.whole(0x1000_0000 + n * 4096, 0);
            let at = 0x4000_0000 + n * 4096;
            if c.is_full(1) {
                // These are not read.
                c.unread(at, 1);
            } else {
                read += 1;
                c.page(at, 1, &bits((0..128).map(|i| i * 32 + (i * i + n as usize) % 31)));
            }
        }
        assert!((100..400).contains(&read), "{read} pages were looked at");
        let runs = c.finish();
        assert_eq!(runs[0], ExactRun { start: 0x1000_0000, stride: 0, width: 4000 * 4096, count: 1, kind: 0 });
        assert!(runs.len() < 4100 && runs[1..].iter().all(|r| r.kind == 1 | exact_kind::BOUND));
        assert_eq!(runs.last().map(end), Some(0x4000_0000 + 4000 * 4096));
    }

    #[test]
    fn too_many_runs_become_bounds_that_still_hold_every_byte() {
        let mut c = Collector::bounded(FEW);
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
        assert!(runs.len() <= FEW);
        assert!(runs.iter().all(|r| r.kind == 1 | exact_kind::BOUND));
        for byte in want {
            let at = runs.partition_point(|r| r.start <= byte) - 1;
            let r = &runs[at];
            assert!((byte - r.start) % r.stride.max(1) < r.width, "{byte:x} is in no run");
        }
    }
}
