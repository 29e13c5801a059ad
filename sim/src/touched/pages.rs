//! The bytes that one launch touches: a bit for each byte, in pages of 4 KiB.
//!
//! Owns the pages and setting their bits from several threads at once. A thread remembers the pages
//! that it used last, so that most accesses take no lock: a page is never given back before its
//! launch has ended.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use cuda_sys::TouchedPage;

use crate::interp::{AccessKind, Accesses};

const PAGE: u64 = 4096;
/// Bits of a page's key that hold a kind.
const KIND_BITS: u32 = 3;
const WORDS: usize = (PAGE / 64) as usize;
const SHARDS: usize = 16;
/// Pages that a thread remembers: a power of two.
const RECENT: usize = 256;

type Bits = [AtomicU64; WORDS];

/// A page that a thread has used: number of the launch, key of the page, its bits.
type RecentPage = (u64, u64, *const Bits);

thread_local! {
    static LAST: [Cell<RecentPage>; RECENT] = const { [const { Cell::new((0, 0, std::ptr::null())) }; RECENT] };
}

/// What one launch has touched so far.
pub(crate) struct TouchedPages {
    /// Unique in the process, so that what threads remember of earlier launches is not mistaken.
    id: u64,
    shards: [Mutex<HashMap<u64, Box<Bits>>>; SHARDS],
}

fn code(kind: AccessKind) -> u64 {
    match kind {
        AccessKind::Read => 0,
        AccessKind::Write => 1,
        AccessKind::Atomic => 2,
        AccessKind::AtomicRead => 3,
        AccessKind::AtomicWrite => 4,
    }
}

impl TouchedPages {
    /// Nothing.
    pub(crate) fn new() -> TouchedPages {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        TouchedPages { id: NEXT.fetch_add(1, Ordering::Relaxed), shards: Default::default() }
    }

    /// Takes note of what a warp touches.
    pub(super) fn observe(&self, accesses: &Accesses<'_>) {
        let kind = code(accesses.kind);
        pieces(accesses, |from, to| self.set(kind, from, to));
    }

    /// Sets the bits from an address up to another one in the pages of a kind.
    pub(super) fn set(&self, kind: u64, mut from: u64, to: u64) {
        while from < to {
            let end = to.min((from / PAGE + 1).saturating_mul(PAGE));
            self.page((from / PAGE) << KIND_BITS | kind, |bits| set(bits, from % PAGE, end - from));
            from = end;
        }
    }

    /// Adds a page of a kind in which nothing is set.
    pub(super) fn put_empty(&self, kind: u64) {
        self.page(kind, |_| ());
    }

    fn page(&self, key: u64, work: impl FnOnce(&Bits)) {
        LAST.with(|last| {
            let slot = &last[(key ^ key >> 8) as usize % RECENT];
            let (id, known, bits) = slot.get();
            let bits = if (id, known) == (self.id, key) { bits } else { self.find(key) };
            slot.set((self.id, key, bits));
            // SAFETY: the page belongs to this launch (ids are unique), which gives its pages back
            // only when it is dropped, so not while it is borrowed.
            work(unsafe { &*bits });
        });
    }

    #[cold]
    fn find(&self, key: u64) -> *const Bits {
        let shard = &self.shards[(key >> KIND_BITS) as usize % SHARDS];
        let mut pages = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let bits = pages.entry(key).or_insert_with(|| Box::new([const { AtomicU64::new(0) }; WORDS]));
        &raw const **bits
    }

    /// Hands out all pages of some kinds.
    pub(crate) fn read<R>(&mut self, is_wanted: impl Fn(u64) -> bool, work: impl FnOnce(&[TouchedPage]) -> R) -> R {
        let mut all = Vec::new();
        for shard in &mut self.shards {
            for (key, bits) in shard.get_mut().unwrap_or_else(PoisonError::into_inner) {
                let (address, kind) = ((key >> KIND_BITS) * PAGE, key & ((1 << KIND_BITS) - 1));
                if is_wanted(kind) {
                    // The words of a little-endian machine: the lowest bits come first.
                    all.push(TouchedPage { address, kind: kind as u32, bits: bits.as_ptr().cast() });
                }
            }
        }
        work(&all)
    }
}

/// The bytes that a warp touches, in as few pieces as its lanes stand side by side.
pub(super) fn pieces(accesses: &Accesses<'_>, mut each: impl FnMut(u64, u64)) {
    let (mut from, mut to) = (0, 0);
    for &(address, _) in accesses.lanes {
        let end = address.saturating_add(u64::from(accesses.size));
        if address >= from && address <= to && to != 0 {
            to = to.max(end);
            continue;
        }
        if from < to {
            each(from, to);
        }
        (from, to) = (address, end);
    }
    if from < to {
        each(from, to);
    }
}

/// Sets `len` bits (at least one) from `from` on; all lie in the page.
fn set(bits: &Bits, from: u64, len: u64) {
    let (first, last) = (from / 64, (from + len - 1) / 64);
    for word in first..=last {
        let low = if word == first { from % 64 } else { 0 };
        let high = if word == last { (from + len - 1) % 64 } else { 63 };
        let mask = u64::MAX >> (63 - high) & u64::MAX << low;
        let word = &bits[word as usize];
        // Most bytes are touched more than once.
        if word.load(Ordering::Relaxed) & mask != mask {
            word.fetch_or(mask, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::AccessOrder;
    use std::collections::BTreeSet;

    const KINDS: [AccessKind; 5] =
        [AccessKind::Read, AccessKind::Write, AccessKind::Atomic, AccessKind::AtomicRead, AccessKind::AtomicWrite];

    fn accesses(kind: AccessKind, size: u32, lanes: &[(u64, u32)]) -> Accesses<'_> {
        Accesses { kind, size, lanes, block: [0; 3], line: 0, source: None, order: AccessOrder::default() }
    }

    fn bytes(pages: &mut TouchedPages) -> BTreeSet<(u32, u64)> {
        pages.read(
            |_| true,
            |pages| {
                let mut all = BTreeSet::new();
                for page in pages {
                    for at in 0..PAGE {
                        // SAFETY: a page has 128 words.
                        let word = unsafe { *page.bits.add(at as usize / 32) };
                        if word >> (at % 32) & 1 != 0 {
                            assert!(all.insert((page.kind, page.address + at)), "each kind of a page comes once");
                        }
                    }
                }
                all
            },
        )
    }

    #[test]
    fn every_byte_is_noted_and_no_other() {
        let mut seed = 5_u64;
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % n
        };
        for _ in 0..300 {
            let (mut pages, mut want) = (TouchedPages::new(), BTreeSet::new());
            for _ in 0..next(12) {
                let kind = KINDS[next(5) as usize];
                let (size, stride, first) = (1 << next(5), next(200), 0x7000 - next(300));
                let backwards = next(2) == 0;
                let lanes: Vec<(u64, u32)> = (0..32)
                    .map(|lane| (first + stride * u64::from(if backwards { 31 - lane } else { lane }), lane))
                    .collect();
                pages.observe(&accesses(kind, size, &lanes));
                want.extend(
                    lanes.iter().flat_map(|lane| (0..u64::from(size)).map(|b| (code(kind) as u32, lane.0 + b))),
                );
            }
            assert_eq!(bytes(&mut pages), want);
        }
    }

    #[test]
    fn threads_share_pages_and_launches_do_not() {
        let (mut first, mut second) = (TouchedPages::new(), TouchedPages::new());
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (first, second) = (&first, &second);
                scope.spawn(move || {
                    for at in 0..2000 {
                        first.observe(&accesses(AccessKind::Write, 1, &[(at * 4 + thread, 0)]));
                        second.observe(&accesses(AccessKind::Read, 1, &[(at * 40 + thread, 0)]));
                    }
                });
            }
        });
        assert_eq!(bytes(&mut first), (0..8000).map(|at| (1, at)).collect());
        assert_eq!(bytes(&mut second).len(), 8000);
    }
}
