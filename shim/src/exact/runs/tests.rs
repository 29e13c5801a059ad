//! Runs of random and of regular bits, against the bits themselves.

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
