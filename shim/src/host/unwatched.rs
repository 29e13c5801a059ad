//! Pages whose protection stays as the program has it, whatever work uses them.
//!
//! Owns the list of these pages. The program or the kernel uses them in a way that a protection of
//! ours would break: the program has set their protection itself, a thread or a signal handler has
//! its stack there (the handler of `SIGSEGV` could not run), or the C library keeps there what it
//! passes to Linux unasked (the word of a futex, the buffer of a stream). Lives in static memory,
//! because signal handlers use it. Entries change with the lock of [`super::holds`] held.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const MOST: usize = 128;

/// First byte, one past the last; 0 there: free.
static RANGES: [[AtomicU64; 2]; MOST] = [const { [const { AtomicU64::new(0) }; 2] }; MOST];
/// One past the last entry that was ever used.
static USED: AtomicUsize = AtomicUsize::new(0);
/// How often work used such pages.
static MISSED: AtomicU64 = AtomicU64::new(0);

fn entries() -> impl Iterator<Item = (u64, u64)> {
    RANGES[..USED.load(Ordering::Acquire)]
        .iter()
        .map(|range| (range[0].load(Ordering::Acquire), range[1].load(Ordering::Acquire)))
        .filter(|range| range.0 < range.1)
}

/// Whether any of these bytes lies in such pages.
pub fn overlaps(start: u64, end: u64) -> bool {
    entries().any(|range| range.0 < end && start < range.1)
}

/// How many ranges there are.
pub(super) fn count() -> u32 {
    entries().count() as u32
}

/// The pages, as ranges.
pub fn each(mut each: impl FnMut(u64, u64)) {
    entries().for_each(|range| each(range.0, range.1));
}

/// What of a range does not lie in such pages.
pub fn around(start: u64, end: u64, mut each: impl FnMut(u64, u64)) {
    let mut at = start;
    while at < end {
        let next = entries().filter(|range| at < range.1 && range.0 < end).min();
        let (from, to) = next.unwrap_or((end, end));
        if at < from {
            each(at, from);
        }
        at = to.max(at);
    }
}

/// Work uses bytes of which some are not watched.
pub fn count_missed() {
    MISSED.fetch_add(1, Ordering::Relaxed);
}

/// How much work used such pages.
pub fn missed() -> u64 {
    MISSED.load(Ordering::Relaxed)
}

/// Adds pages. False: there is no room. The lock of [`super::holds`] is held.
pub(super) fn add(start: u64, end: u64) -> bool {
    let (mut start, mut end) = (start, end);
    // What touches or overlaps becomes one entry.
    for range in &RANGES[..USED.load(Ordering::Relaxed)] {
        let (from, to) = (range[0].load(Ordering::Relaxed), range[1].load(Ordering::Relaxed));
        if from < to && from <= end && start <= to {
            (start, end) = (start.min(from), end.max(to));
        }
    }
    let Some(slot) = RANGES.iter().position(|range| {
        let (from, to) = (range[0].load(Ordering::Relaxed), range[1].load(Ordering::Relaxed));
        from >= to || (start <= from && to <= end)
    }) else {
        return false;
    };
    RANGES[slot][0].store(start, Ordering::Release);
    RANGES[slot][1].store(end, Ordering::Release);
    USED.fetch_max(slot + 1, Ordering::AcqRel);
    for range in &RANGES[slot + 1..] {
        let (from, to) = (range[0].load(Ordering::Relaxed), range[1].load(Ordering::Relaxed));
        if from < to && start <= from && to <= end {
            range[1].store(0, Ordering::Release);
        }
    }
    true
}

/// The memory goes away. The lock of [`super::holds`] is held.
pub(super) fn remove(start: u64, end: u64) {
    for range in &RANGES[..USED.load(Ordering::Relaxed)] {
        let (from, to) = (range[0].load(Ordering::Relaxed), range[1].load(Ordering::Relaxed));
        if from >= to || to <= start || end <= from {
            continue;
        }
        if from < start {
            range[1].store(start, Ordering::Release);
            // Without room, what lies behind may be protected again only with this memory.
            if end < to && !add(end, to) {
                range[1].store(to, Ordering::Release);
            }
        } else if end < to {
            range[0].store(end, Ordering::Release);
        } else {
            range[1].store(0, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_what_lies_around_them_is_all_the_rest() {
        const AT: u64 = 0x7100_0000_0000;
        let rest = |start: u64, end: u64| {
            let mut rest = Vec::new();
            around(AT + start, AT + end, |from, to| rest.push((from - AT, to - AT)));
            rest
        };
        assert_eq!(rest(0, 100), [(0, 100)]);
        for (start, end) in [(10, 20), (40, 50), (60, 70), (20, 30), (25, 45)] {
            assert!(add(AT + start, AT + end));
        }
        assert_eq!(rest(0, 100), [(0, 10), (50, 60), (70, 100)]);
        assert_eq!((rest(10, 50), rest(15, 20), rest(5, 55)), (vec![], vec![], vec![(5, 10), (50, 55)]));
        assert!(overlaps(AT + 49, AT + 51) && !overlaps(AT + 50, AT + 60) && !overlaps(AT, AT + 10));
        remove(AT + 25, AT + 30);
        assert_eq!(rest(0, 100), [(0, 10), (25, 30), (50, 60), (70, 100)]);
        remove(AT + 45, AT + 65);
        assert_eq!(rest(0, 100), [(0, 10), (25, 30), (45, 65), (70, 100)]);
        remove(AT + 10, AT + 70);
        assert_eq!(rest(0, 100), [(0, 100)]);
    }
}
