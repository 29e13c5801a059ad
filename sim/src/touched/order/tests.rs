//! What is marked of small launches, for each way to order accesses and each mistake.

use std::collections::BTreeSet;

use super::*;
use crate::interp::AccessOrder;
use AccessKind::{Atomic, AtomicRead, AtomicWrite, Read, Write};
use OrderEvent::{BlockMeets, Fence, GridMeets};

const DATA: u64 = 0x1000;
const OTHER: u64 = 0x1800;
const FLAG: u64 = 0x2000;
const LOCK: u64 = 0x3000;

/// A launch under observation, one block or two of them. The flag is memory of the host.
struct Launch {
    order: LaunchOrder,
    pages: TouchedPages,
}

impl Launch {
    fn new() -> Launch {
        let launch = Launch { order: LaunchOrder::default(), pages: TouchedPages::new() };
        (0..2).for_each(|block| launch.event(block, 0, OrderEvent::Begins { system: true }));
        launch
    }

    fn event(&self, block: u32, warp: u32, event: OrderEvent) {
        self.order.event([block, 0, 0], warp, event, &self.pages);
    }

    fn access(&self, block: u32, thread: u32, kind: AccessKind, at: u64, order: AccessOrder) {
        let lanes = [(at, thread)];
        let accesses = Accesses { kind, size: 4, lanes: &lanes, block: [block, 0, 0], line: 0, source: None, order };
        self.order.observe_with(&accesses, &self.pages, |at| at == FLAG);
    }

    fn plain(&self, block: u32, thread: u32, kind: AccessKind, at: u64) {
        self.access(block, thread, kind, at, AccessOrder::default());
    }

    fn strong(&self, block: u32, thread: u32, kind: AccessKind, at: u64, reach: Reach, order: (bool, bool)) {
        let order = AccessOrder { strong: Some(reach), acquire: order.0, release: order.1 };
        self.access(block, thread, kind, at, order);
    }

    fn relaxed(&self, block: u32, kind: AccessKind, at: u64, reach: Reach) {
        self.strong(block, 0, kind, at, reach, (false, false));
    }

    /// What is marked of some words, when both blocks have ended.
    fn marked(mut self, at: &[u64]) -> Vec<BTreeSet<u64>> {
        (0..2).for_each(|block| self.event(block, 0, OrderEvent::Ends));
        let wanted = self.order.finish(&self.pages);
        self.pages.read(wanted, |pages| {
            let is_set = |page: &&cuda_sys::TouchedPage, at: u64| {
                let bit = at.wrapping_sub(page.address);
                // SAFETY: a page has 128 words.
                bit < 4096 && unsafe { *page.bits.add(bit as usize / 32) } >> (bit % 32) & 1 != 0
            };
            let of =
                |at: &u64| pages.iter().filter(|page| is_set(page, *at)).map(|page| u64::from(page.kind)).collect();
            at.iter().map(of).collect()
        })
    }
}

fn set(kinds: &[u64]) -> BTreeSet<u64> {
    kinds.iter().copied().collect()
}

/// A critical section, with fences of a reach on either side or without.
#[test]
fn a_lock_orders_by_its_fences() {
    let fences = [None, Some(Reach::Near), Some(Reach::Device), Some(Reach::System)];
    for (taken, given) in fences.iter().flat_map(|taken| fences.map(|given| (*taken, given))) {
        for release in [Atomic, AtomicWrite] {
            let launch = Launch::new();
            for _turn in 0..2 {
                launch.relaxed(0, Atomic, LOCK, Reach::Device);
                taken.into_iter().for_each(|reach| launch.event(0, 0, Fence(reach)));
                launch.plain(0, 0, Write, DATA);
                given.into_iter().for_each(|reach| launch.event(0, 0, Fence(reach)));
                launch.relaxed(0, release, LOCK, Reach::Device);
            }
            let is_wide = |fence: Option<Reach>| fence >= Some(Reach::Device);
            let marked = launch.marked(&[DATA]).remove(0);
            // The fence that gives the lock back is one behind a look at the lock, too: a program
            // that has one of them only is not followed further.
            if taken.is_some() == given.is_some() || is_wide(taken) {
                assert_eq!(marked.contains(&NOT_ACQUIRED), !is_wide(taken), "{taken:?} {given:?}");
            }
            assert_eq!(marked.contains(&NOT_RELEASED), !is_wide(given), "{taken:?} {given:?}");
        }
    }
}

#[test]
fn acquires_and_releases_are_orders_of_accesses_too() {
    for reach in [Reach::Device, Reach::System] {
        let launch = Launch::new();
        launch.strong(0, 0, Atomic, LOCK, reach, (true, false));
        launch.plain(0, 0, Read, DATA);
        launch.strong(0, 0, AtomicWrite, LOCK, reach, (false, true));
        launch.plain(0, 0, Read, OTHER);
        let untold = if reach == Reach::System { &[][..] } else { &[NOT_TOLD] };
        let behind = set(&[NOT_ACQUIRED, NOT_RELEASED, NOT_TOLD]);
        assert_eq!(launch.marked(&[DATA, OTHER]), [set(untold), behind], "{reach:?}");
    }
}

/// Another lane that tries in vain does not take the lock away from the one that holds it.
#[test]
fn lanes_try_in_vain() {
    let launch = Launch::new();
    let try_it = |thread| launch.strong(0, thread, Atomic, LOCK, Reach::Device, (false, false));
    (0..4).for_each(try_it);
    launch.event(0, 0, Fence(Reach::Device));
    (1..4).for_each(try_it);
    launch.plain(0, 0, Write, DATA);
    launch.event(0, 0, Fence(Reach::Device));
    try_it(0);
    assert_eq!(launch.marked(&[DATA]), [set(&[NOT_TOLD])]);
}

/// Who tells the host of the data of two blocks, or of two warps.
#[test]
fn the_host_is_told_by_a_release_of_the_system_behind_the_access() {
    for (kind, reach) in [(AtomicWrite, Reach::System), (Write, Reach::Near), (Atomic, Reach::Device)] {
        for fence in [None, Some(Reach::Near), Some(Reach::Device), Some(Reach::System)] {
            let launch = Launch::new();
            launch.plain(0, 0, Write, DATA);
            fence.into_iter().for_each(|fence| launch.event(0, 0, Fence(fence)));
            match kind {
                Write => launch.plain(0, 0, Write, FLAG),
                _ => launch.relaxed(0, kind, FLAG, reach),
            }
            launch.plain(0, 0, Read, OTHER);
            let marked = launch.marked(&[DATA, OTHER]);
            assert_eq!(marked[0].contains(&NOT_TOLD), fence != Some(Reach::System), "{kind:?} {fence:?}");
            assert!(marked[1].contains(&NOT_TOLD), "it came too late");
        }
    }
}

#[test]
fn barriers_take_the_accesses_of_other_warps_along() {
    // With the fence in front of the barrier, by each warp, and behind it, by one.
    for (fence, behind) in [(None, false), (Some(Reach::Device), true), (Some(Reach::System), true)] {
        for front in [false, true] {
            for meets in [false, true] {
                let launch = Launch::new();
                for warp in [0, 1] {
                    launch.plain(0, 32 * warp, Write, if warp == 0 { DATA } else { OTHER });
                    fence.into_iter().filter(|_| front).for_each(|fence| launch.event(0, warp, Fence(fence)));
                }
                if meets {
                    launch.event(0, 0, BlockMeets);
                }
                fence.into_iter().filter(|_| !front).for_each(|fence| launch.event(0, 0, Fence(fence)));
                launch.relaxed(0, AtomicWrite, FLAG, Reach::System);
                let marked = launch.marked(&[DATA, OTHER]);
                let told = fence == Some(Reach::System);
                assert_eq!(marked[0].contains(&NOT_RELEASED), !behind, "{fence:?} {front} {meets}");
                assert_eq!(marked[1].contains(&NOT_RELEASED), !(behind && meets), "{fence:?} {front} {meets}");
                assert_eq!(marked[0].contains(&NOT_TOLD), !told, "{fence:?} {front} {meets}");
                assert_eq!(marked[1].contains(&NOT_TOLD), !(told && meets), "{fence:?} {front} {meets}");
            }
        }
    }
}

/// The block that comes last tells of all that were released. (A fence counts as an acquire of
/// these.) Without a counter it tells of itself only.
#[test]
fn the_last_block_tells_of_the_others() {
    for counts in [false, true] {
        let launch = Launch::new();
        for block in [0, 1] {
            launch.plain(block, 0, Write, [DATA, OTHER][block as usize]);
            launch.event(block, 0, Fence(Reach::Device));
            if counts {
                launch.relaxed(block, Atomic, LOCK, Reach::Device);
            }
        }
        launch.event(1, 0, Fence(Reach::Device));
        launch.strong(1, 0, AtomicWrite, FLAG, Reach::System, (false, true));
        let marked = launch.marked(&[DATA, OTHER]);
        assert_eq!(marked[0].contains(&NOT_TOLD), !counts, "{counts}");
        assert!(!marked[1].contains(&NOT_TOLD));
    }
}

#[test]
fn a_barrier_of_the_grid_releases_and_acquires() {
    let launch = Launch::new();
    launch.plain(0, 0, Write, DATA);
    (0..2).for_each(|block| launch.event(block, 0, GridMeets));
    (0..2).for_each(|block| launch.event(block, 0, GridMeets));
    launch.plain(1, 0, Write, OTHER);
    launch.event(1, 0, Fence(Reach::System));
    launch.relaxed(1, AtomicWrite, FLAG, Reach::System);
    assert_eq!(launch.marked(&[DATA, OTHER]), [set(&[NOT_ACQUIRED]), set(&[])]);
}

/// What the host has told of by a flag may be touched until the kernel says that it is done.
#[test]
fn what_was_acquired_from_the_host_is_not_marked() {
    for (word, reach) in [(FLAG, Reach::System), (FLAG, Reach::Device), (LOCK, Reach::System)] {
        for acquire in [true, false] {
            let launch = Launch::new();
            launch.strong(0, 0, AtomicRead, word, reach, (acquire, false));
            launch.plain(0, 0, Read, DATA);
            let told = word == FLAG && reach == Reach::System && acquire;
            assert_eq!(launch.marked(&[DATA])[0].contains(&NOT_TOLD), !told, "{word:#x} {reach:?} {acquire}");
        }
    }
}

#[test]
fn without_strong_accesses_the_device_is_not_judged() {
    let launch = Launch::new();
    launch.plain(0, 0, Write, DATA);
    assert_eq!(launch.marked(&[DATA]), [set(&[NOT_TOLD])]);
}

/// Accesses that nobody said the block of are not looked at.
#[test]
fn blocks_that_do_not_begin_are_left_alone() {
    let launch = Launch::new();
    launch.plain(5, 0, Write, DATA);
    launch.relaxed(0, AtomicWrite, FLAG, Reach::System);
    assert_eq!(launch.marked(&[DATA]), [set(&[])]);
}
