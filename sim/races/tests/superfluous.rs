//! What is told again without a fence or a barrier: each kind needed and superfluous.

use sim_races::{
    Answer, Detector, FenceOrder, Kind, LANES, Lanes, Memory, MemoryEvents, Proxies, Reading, Scope, Strength,
    SyncKind, WarpAccess,
};

const SHARED: Memory = Memory::Shared(0);

/// Tells a launch of one block, as an interpreter does.
struct Launch<'d> {
    events: sim_races::GridEvents<'d>,
    site: u32,
}

fn lane(thread: u32) -> Lanes {
    Lanes { block: 0, warp: thread / 32, mask: 1 << (thread % 32) }
}

impl Launch<'_> {
    fn access(&mut self, thread: u32, memory: Memory, at: u64, kind: Kind, strength: Strength, bulk: Option<u64>) {
        self.site += 1;
        let lanes = lane(thread);
        self.events.access(&WarpAccess {
            block: 0,
            warp: lanes.warp,
            lanes: lanes.mask,
            executing: lanes.mask,
            site: 1000 + self.site,
            memory,
            addresses: &[at; LANES],
            size: 4,
            kind,
            strength,
            unchanged: 0,
            alike: false,
            asynchronous: false,
            object: false,
            compares: false,
            keeps: [0; 4],
            bulk,
            map: false,
        });
    }

    fn write(&mut self, thread: u32, at: u64) {
        self.access(thread, SHARED, at, Kind::Write, Strength::Plain, None);
    }

    fn read(&mut self, thread: u32, at: u64) {
        self.access(thread, SHARED, at, Kind::Read, Strength::Plain, None);
    }

    /// `__syncthreads()`
    fn barrier(&self, site: u32) {
        self.barrier_of(&[site, site]);
    }

    /// Each warp comes to the barrier at its own place.
    fn barrier_of(&self, sites: &[u32; 2]) {
        for (warp, &site) in sites.iter().enumerate() {
            self.events.synchronises(Some((site, SyncKind::BlockBarrier)));
            self.events.barrier_arrives(0, Lanes { block: 0, warp: warp as u32, mask: u32::MAX }, true);
        }
        self.events.barrier_completes(0, 0, true);
    }

    /// `fence.proxy.async`
    fn proxy_fence(&self, site: u32, thread: u32) {
        self.events.synchronises(Some((site, SyncKind::ProxyFence)));
        self.events.proxy_fence(lane(thread), Proxies { global: true, shared: true });
    }
}

/// The answers for instructions of a launch of two warps, each tried by itself.
fn answers<const N: usize>(sites: [u32; N], run: impl FnOnce(&mut Launch<'_>)) -> [Answer; N] {
    let detector = Detector::new(Reading::default()).recording();
    let events = detector.grid(None, 1, 0);
    events.block_starts(0, 64, 0);
    run(&mut Launch { events, site: 0 });
    let (_, mut trials) = detector.trials(usize::MAX).unwrap();
    sites.map(|site| trials.without(&[site]))
}

use Answer::{Needed, Superfluous, Unknown};

#[test]
fn a_barrier_between_a_write_and_a_read_of_another_thread_is_needed() {
    let found = answers([1, 2, 3], |l| {
        l.barrier(1);
        l.write(40, 0);
        l.barrier(2);
        l.read(0, 0);
        l.barrier(3);
    });
    assert_eq!(found, [Superfluous, Needed, Superfluous]);
    // The same thread, or other bytes.
    let found = answers([1, 2], |l| {
        l.write(40, 0);
        l.barrier(1);
        l.read(40, 0);
        l.write(0, 4);
        l.barrier(2);
        l.read(40, 8);
    });
    assert_eq!(found, [Superfluous, Superfluous]);
    // Of two in a row each is superfluous by itself.
    let found = answers([1, 2], |l| {
        l.write(40, 0);
        l.barrier(1);
        l.barrier(2);
        l.read(0, 0);
    });
    assert_eq!(found, [Superfluous, Superfluous]);
}

#[test]
fn a_barrier_is_needed_if_one_of_its_instances_is() {
    let found = answers([1], |l| {
        for turn in 0..3 {
            if turn == 1 {
                l.write(40, 0);
            }
            l.barrier(1);
            if turn == 1 {
                l.read(0, 0);
            }
        }
    });
    assert_eq!(found, [Needed]);
}

#[test]
fn threads_that_come_to_one_barrier_in_two_places_are_not_judged_alone() {
    let run = |l: &mut Launch<'_>| {
        l.write(40, 0);
        l.barrier_of(&[1, 2]);
        l.write(40, 0);
    };
    assert_eq!(answers([1, 2], run), [Unknown, Unknown]);
    let detector = Detector::new(Reading::default()).recording();
    let events = detector.grid(None, 1, 0);
    events.block_starts(0, 64, 0);
    run(&mut Launch { events, site: 0 });
    let (all, mut trials) = detector.trials(usize::MAX).unwrap();
    assert_eq!(all.iter().map(|one| (one.site, one.count)).collect::<Vec<_>>(), [(1, 1), (2, 1)]);
    assert_eq!(trials.without(&[1, 2]), Superfluous);
}

#[test]
fn a_fence_between_proxies_is_needed_behind_writes_only() {
    let run = |writes: bool| {
        answers([1, 2], |l| {
            if writes {
                l.write(40, 0);
            } else {
                l.read(40, 0);
            }
            l.proxy_fence(1, 40);
            l.barrier(2);
            l.access(0, SHARED, 0, Kind::Read, Strength::Plain, Some(sim_races::GROUPED | 1));
        })
    };
    assert_eq!(run(true), [Needed, Needed]);
    assert_eq!(run(false), [Superfluous, Superfluous]);
}

#[test]
fn fences_beside_a_flag_are_needed_and_others_are_not() {
    let relaxed = Strength::Strong(sim_races::Order::RELAXED, Scope::Device);
    let found = answers([1, 2, 3], |l| {
        let fence = |l: &Launch<'_>, site: u32, thread: u32| {
            l.events.synchronises(Some((site, SyncKind::Fence)));
            l.events.fence(lane(thread), Scope::Device, FenceOrder::Sequential);
        };
        l.access(40, Memory::Global, 64, Kind::Write, Strength::Plain, None);
        fence(l, 1, 40);
        l.access(40, Memory::Global, 128, Kind::Write, relaxed, None);
        l.access(0, Memory::Global, 128, Kind::Read, relaxed, None);
        fence(l, 2, 0);
        l.access(0, Memory::Global, 64, Kind::Read, Strength::Plain, None);
        fence(l, 3, 0);
    });
    assert_eq!(found, [Needed, Needed, Superfluous]);
}

#[test]
fn a_barrier_of_a_warp_is_needed_between_its_lanes() {
    let found = answers([1, 2], |l| {
        let meet = |l: &Launch<'_>, site: u32| {
            l.events.synchronises(Some((site, SyncKind::WarpBarrier)));
            l.events.warp_meets(Lanes { block: 0, warp: 0, mask: u32::MAX });
        };
        l.write(1, 0);
        meet(l, 1);
        l.read(2, 0);
        meet(l, 2);
        l.read(1, 0);
    });
    assert_eq!(found, [Needed, Superfluous]);
    // Lanes come to it in two places.
    let found = answers([1, 2, 3], |l| {
        l.events.synchronises(Some((3, SyncKind::WarpBarrier)));
        l.events.warp_meets(Lanes { block: 0, warp: 0, mask: u32::MAX });
        l.write(1, 0);
        for site in [1, 2] {
            l.events.synchronises(Some((site, SyncKind::Divided)));
        }
        l.events.synchronises(None);
        l.events.warp_meets(Lanes { block: 0, warp: 0, mask: u32::MAX });
        l.write(1, 4);
    });
    assert_eq!(found, [Unknown, Unknown, Superfluous]);
}

#[test]
fn a_race_that_is_there_anyway_excuses_nothing() {
    // Two accesses race already; without the barrier one more does.
    let found = answers([1], |l| {
        l.write(40, 0);
        l.read(0, 0);
        l.write(40, 4);
        l.barrier(1);
        l.read(0, 4);
    });
    assert_eq!(found, [Needed]);
}

#[test]
fn what_others_tell_is_not_left_out() {
    // A barrier that does more than to order, behind a fence.
    let found = answers([1], |l| {
        l.write(40, 0);
        l.proxy_fence(1, 40);
        l.events.synchronises(None);
        for warp in 0..2 {
            l.events.barrier_arrives(0, Lanes { block: 0, warp, mask: u32::MAX }, true);
        }
        l.events.barrier_completes(0, 0, true);
        l.read(0, 0);
    });
    assert_eq!(found, [Superfluous]);
}

#[test]
fn a_launch_that_launches_has_no_answer() {
    let detector = Detector::new(Reading::default()).recording();
    let events = detector.grid(None, 1, 0);
    events.block_starts(0, 64, 0);
    assert!(detector.trials(usize::MAX).is_some());
    events.launches(sim_races::ThreadOf { block: 0, thread: 1 }, sim_races::Stream::Detached);
    assert!(detector.trials(usize::MAX).is_none());
    // Nothing was kept, and there is no time.
    assert!(Detector::new(Reading::default()).trials(usize::MAX).is_none());
    let detector = Detector::new(Reading::default()).recording();
    let events = detector.grid(None, 1, 0);
    events.block_starts(0, 64, 0);
    Launch { events, site: 0 }.barrier(1);
    let (_, mut trials) = detector.trials(0).unwrap();
    assert_eq!(trials.without(&[1]), Unknown);
}
