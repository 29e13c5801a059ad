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
pub(super) const PAGE_WORDS: usize = 128;

/// Bytes of a page.
pub(super) const PAGE_BYTES: u64 = PAGE_WORDS as u64 * 32;

/// Runs that one launch may have; with more, those nearest to each other are joined, and say so.
///
/// So many that each of 100,000 threads may touch two elements anywhere.
pub(super) const MAX_RUNS: usize = 1 << 18;

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
/// The kinds of accesses, and of what is said of their order (`trace::exact_order`).
const KINDS: usize = 1 << (u64::BITS - KIND_SHIFT);

/// Collects the bits of one launch.
pub(super) struct Collector {
    /// Kind and number of each page, and which of `pages` it is.
    order: Vec<u64>,
    pages: Vec<Page>,
    runs: Vec<ExactRun>,
    /// Runs of each kind that no neighbour can take in.
    certain: [usize; KINDS],
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
        Self { order, pages, runs, certain: [0; KINDS], extents, limit }
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
    pub(super) fn whole(&mut self, address: u64, kind: u32) {
        self.put(address, kind, WHOLE);
    }

    /// Takes the bits of a page of a kind below [`KINDS`]; pages come in any order, each once.
    pub(super) fn page(&mut self, address: u64, kind: u32, bits: &[u32]) {
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
    pub(super) fn unread(&mut self, address: u64, kind: u32) {
        self.put(address, kind, UNREAD);
    }

    /// Whether pages of this kind need no bits any more.
    pub(super) fn is_full(&self, kind: u32) -> bool {
        self.certain.get(kind as usize).is_some_and(|n| *n > self.limit)
    }

    /// Takes an extent of which only some bytes were touched.
    pub(super) fn extent(&mut self, from: u64, to: u64, kind: u32) {
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
    pub(super) fn finish(mut self) -> Vec<ExactRun> {
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
mod tests;
