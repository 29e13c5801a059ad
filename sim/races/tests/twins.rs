//! Each rule of the model in two scripts: one that races, and one that the rule orders.

use sim_races::{Grade, Kind, Lanes, Meeting, Memory, Remedy, Scope, Strength};

use crate::script::{ACQUIRE, GLOBAL, RELAXED, RELEASE, Script};
use Grade::{Benign, Certain, Likely, Possible};

pub const DATA: u64 = 0x1000;
pub const FLAG: u64 = 0x10_0000;

pub fn races(script: &Script) -> Option<(Grade, Remedy)> {
    script.surest()
}

/// Scripts of two threads: the first has written, `between` may order, and the second reads.
pub fn handed_over(blocks: u32, second: (u32, u32), between: impl Fn(&mut Script)) -> Option<(Grade, Remedy)> {
    let mut script = Script::new(blocks, 64);
    script.write((0, 0), DATA);
    between(&mut script);
    script.read(second, DATA);
    races(&script)
}

#[test]
fn barriers_of_the_block_order_those_who_take_part() {
    let block = |between: &dyn Fn(&mut Script)| handed_over(1, (0, 40), between);
    assert_eq!(block(&|_| {}), Some((Certain, Remedy::BlockBarrier)));
    assert_eq!(block(&|s| s.sync(0)), None);
    for number in [1, 7, 15] {
        assert_eq!(block(&|s| s.barrier(number, 0, &[0, 40], &[])), None);
        assert_eq!(block(&|s| s.barrier(number, 0, &[0, 41], &[])), Some((Certain, Remedy::BlockBarrier)));
        assert_eq!(block(&|s| s.barrier(number, 0, &[40], &[0])), None, "bar.arrive gives");
        assert_eq!(
            block(&|s| s.barrier(number, 0, &[0], &[40])).map(|race| race.0),
            Some(Certain),
            "and takes nothing"
        );
    }
    // Who arrives goes on: what it does then is behind no barrier.
    let late = |wait: bool| {
        let mut s = Script::new(1, 64);
        s.barrier(1, 0, if wait { &[0, 40] } else { &[40] }, if wait { &[] } else { &[0] });
        s.write((0, 0), DATA);
        s.sync(0);
        s.read((0, 40), DATA);
        races(&s)
    };
    assert_eq!((late(true), late(false)), (None, None));
    // Through a third thread.
    assert_eq!(
        block(&|s| {
            s.barrier(1, 0, &[0, 5], &[]);
            s.barrier(2, 0, &[5, 40], &[])
        }),
        None
    );
    assert!(
        block(&|s| {
            s.barrier(2, 0, &[5, 40], &[]);
            s.barrier(1, 0, &[0, 5], &[])
        })
        .is_some()
    );
    // A barrier of another block.
    assert!(
        handed_over(2, (1, 0), |s| {
            s.sync(0);
            s.sync(1)
        })
        .is_some()
    );
}

#[test]
fn barriers_order_in_both_directions_and_for_many_phases() {
    for phases in [0, 1, 2, 1023, 1024, 70_000] {
        let mut s = Script::new(1, 64);
        for _ in 0..phases {
            s.sync(0);
        }
        s.read((0, 3), DATA);
        s.sync(0);
        s.write((0, 60), DATA);
        assert_eq!(races(&s), None, "after {phases} barriers");
        s.read((0, 4), DATA);
        assert_eq!(races(&s).map(|race| race.0), Some(Certain), "after {phases} barriers");
    }
}

#[test]
fn threads_that_have_ended_hold_up_no_barrier() {
    let mut s = Script::new(1, 64);
    s.write((0, 1), DATA);
    for thread in 1..32 {
        s.exit((0, thread));
    }
    let rest: Vec<u32> = std::iter::once(0).chain(32..64).collect();
    s.barrier_of(0, 0, &rest, &[], false);
    s.read((0, 40), DATA);
    assert!(races(&s).is_some(), "they do not take part in a barrier of a number of threads");
    let mut s = Script::new(1, 64);
    s.write((0, 1), DATA);
    (1..32).for_each(|thread| s.exit((0, thread)));
    s.barrier(0, 0, &rest, &[]);
    s.read((0, 40), DATA);
    assert_eq!(races(&s), None);
    s.write((0, 0), DATA);
    s.read((0, 40), DATA);
    assert!(races(&s).is_some());
}

#[test]
fn a_warp_has_a_barrier_and_lockstep_is_none() {
    let run = |executing: Option<u32>, mask: u32| {
        let mut s = Script::new(1, 32);
        s.executing = executing;
        s.write((0, 0), DATA);
        if mask != 0 {
            s.warp_sync(0, 0, mask);
        }
        s.read((0, 5), DATA);
        races(&s)
    };
    assert_eq!(run(None, 0), Some((Certain, Remedy::WarpBarrier)));
    assert_eq!(run(Some(u32::MAX), 0), Some((Possible, Remedy::WarpBarrier)));
    assert_eq!((run(None, u32::MAX), run(None, 0x21)), (None, None));
    assert_eq!(run(None, 0x41), Some((Certain, Remedy::WarpBarrier)));
}

#[test]
fn lanes_that_write_one_address_race_with_each_other() {
    let run = |alike: bool, apart: bool, kind: Kind| {
        let mut s = Script::new(1, 32);
        s.unchanged = alike;
        let at = std::array::from_fn(|lane| DATA + if apart { lane as u64 * 4 } else { 0 });
        s.lanes_access(Lanes { block: 0, warp: 0, mask: !0 }, GLOBAL, &at, 4, kind, Strength::Plain);
        races(&s)
    };
    assert_eq!(run(false, false, Kind::Write), Some((Certain, Remedy::Atomic)));
    assert_eq!(run(true, false, Kind::Write), Some((Benign, Remedy::Atomic)));
    for alike in [false, true] {
        assert_eq!(run(alike, true, Kind::Write), None);
        assert_eq!((run(alike, false, Kind::Read), run(alike, false, Kind::Atomic)), (None, None));
    }
}

/// Message passing through a flag, in all forms and scopes.
#[test]
fn releases_meet_acquires_if_each_reaches_the_other() {
    for writer in Scope::ALL {
        for reader in Scope::ALL {
            for (far, second) in [(false, (0, 40)), (true, (1, 0))] {
                let reach = !far || (writer, reader) == (Scope::Device, Scope::Device);
                for form in 0..8 {
                    let (fence_before, fence_behind, atomic) = (form & 1 != 0, form & 2 != 0, form & 4 != 0);
                    let got = handed_over(2, second, |s| {
                        if fence_before {
                            s.fence((0, 0), writer);
                        }
                        let order = if fence_before { RELAXED } else { RELEASE };
                        s.strong((0, 0), FLAG, Kind::Write, order, if fence_before { Scope::Device } else { writer });
                        let kind = if atomic { Kind::Atomic } else { Kind::Read };
                        let order = if fence_behind { RELAXED } else { ACQUIRE };
                        s.strong(second, FLAG, kind, order, if fence_behind { Scope::Device } else { reader });
                        if fence_behind {
                            s.fence(second, reader);
                        }
                    });
                    assert_eq!(got.is_none(), reach, "{writer:?} to {reader:?}, far {far}, form {form}: {got:?}");
                }
            }
        }
    }
}

#[test]
fn a_flag_without_its_fences_orders_nothing() {
    let pass = |before: bool, behind: bool, volatile: bool| {
        handed_over(2, (1, 0), |s| {
            let strength = if volatile { Strength::Volatile } else { Strength::Strong(RELAXED, Scope::Device) };
            if before {
                s.fence((0, 0), Scope::Device);
            }
            s.access((0, 0), GLOBAL, FLAG, 4, Kind::Write, strength);
            s.access((1, 0), GLOBAL, FLAG, 4, Kind::Read, strength);
            if behind {
                s.fence((1, 0), Scope::Device);
            }
        })
    };
    for volatile in [false, true] {
        assert_eq!(pass(true, true, volatile), None);
        for (before, behind) in [(false, false), (false, true), (true, false)] {
            assert_eq!(pass(before, behind, volatile), Some((Certain, Remedy::ReleaseAcquire)));
        }
    }
    // A fence behind the flag is none before it.
    let late = handed_over(2, (1, 0), |s| {
        s.strong((0, 0), FLAG, Kind::Write, RELAXED, Scope::Device);
        s.fence((0, 0), Scope::Device);
        s.strong((1, 0), FLAG, Kind::Read, ACQUIRE, Scope::Device);
    });
    assert!(late.is_some());
}

/// `__threadfence(); __syncthreads(); if (threadIdx.x == 0) atomicExch(flag, 1);`
#[test]
fn fences_before_a_barrier_order_what_is_written_behind_it() {
    let pass_to = |fence: bool, sc: bool, meet: bool, behind: bool, late: bool| {
        let mut s = Script::new(2, 64);
        s.write((0, 40), DATA);
        match (fence, sc) {
            (true, true) => s.fence_sc((0, 40)),
            (true, false) => s.fence((0, 40), Scope::Device),
            _ => {}
        }
        if meet {
            s.sync(0);
        }
        s.strong((0, 0), FLAG, Kind::Write, RELAXED, Scope::Device);
        s.strong((1, 0), FLAG, Kind::Atomic, RELAXED, Scope::Device);
        if behind && !late {
            s.fence_sc((1, 0));
        }
        s.sync(1);
        if behind && late {
            s.fence_sc((1, 40));
        }
        s.read((1, 40), DATA);
        races(&s).is_none()
    };
    let pass = |fence, sc, meet, behind| {
        let both = [false, true].map(|late| pass_to(fence, sc, meet, behind, late));
        assert_eq!(both[0], both[1], "a fence behind the reader's barrier is as good");
        both[0]
    };
    assert!(pass(true, true, true, true));
    assert!(!pass(true, false, true, true), "a fence that is not of sequential consistency is its thread's alone");
    assert!(!pass(false, true, true, true) && !pass(true, true, false, true) && !pass(true, true, true, false));
    // Fences alone, in whichever order they come.
    let mut s = Script::new(2, 64);
    s.write((0, 0), DATA);
    s.fence_sc((0, 0));
    s.fence_sc((1, 0));
    s.read((1, 0), DATA);
    assert!(races(&s).is_some());
}

#[test]
fn read_modify_writes_carry_a_release_on_and_writes_end_it() {
    let pass = |kind: Kind, strength: Strength| {
        let mut s = Script::new(3, 32);
        s.write((0, 0), DATA);
        s.strong((0, 0), FLAG, Kind::Write, RELEASE, Scope::Device);
        s.access((1, 0), GLOBAL, FLAG, 4, kind, strength);
        s.strong((2, 0), FLAG, Kind::Read, ACQUIRE, Scope::Device);
        s.read((2, 0), DATA);
        let on_data = |race: &sim_races::Race| race.address == DATA;
        s.races().iter().any(on_data)
    };
    let relaxed = Strength::Strong(RELAXED, Scope::Device);
    assert!(!pass(Kind::Atomic, relaxed));
    assert!(!pass(Kind::Read, relaxed));
    assert!(pass(Kind::Write, relaxed));
    assert!(pass(Kind::Write, Strength::Plain));
}

#[test]
fn strong_accesses_race_where_their_scopes_or_sizes_part() {
    let pair = |kinds: [Kind; 2], strengths: [Strength; 2], sizes: [u32; 2], second: (u32, u32)| {
        let mut s = Script::new(2, 64);
        s.access((0, 0), GLOBAL, FLAG, sizes[0], kinds[0], strengths[0]);
        s.access(second, GLOBAL, FLAG, sizes[1], kinds[1], strengths[1]);
        races(&s)
    };
    let strong = |scope| Strength::Strong(RELAXED, scope);
    for kinds in [[Kind::Atomic; 2], [Kind::Write, Kind::Read], [Kind::Read, Kind::Atomic], [Kind::Write; 2]] {
        for first in Scope::ALL {
            for second in Scope::ALL {
                let strengths = [strong(first), strong(second)];
                assert_eq!(pair(kinds, strengths, [4, 4], (0, 40)), None, "in one block");
                let reach = (first, second) == (Scope::Device, Scope::Device);
                let want = if reach { None } else { Some((Certain, Remedy::WiderScope)) };
                assert_eq!(pair(kinds, strengths, [4, 4], (1, 0)), want, "{first:?} {second:?}");
            }
        }
        let wide = strong(Scope::Device);
        assert_eq!(pair(kinds, [wide; 2], [4, 8], (1, 0)).map(|race| race.0), Some(Possible));
        // Nothing orders the two; whether that is meant the model leaves open.
        let kept = Some((Possible, Remedy::ReleaseAcquire));
        assert_eq!(pair(kinds, [wide, Strength::Volatile], [4, 4], (1, 0)), kept);
        let of_warp = Some((Possible, Remedy::WarpBarrier));
        assert_eq!(pair(kinds, [wide, Strength::Volatile], [4, 4], (0, 1)), of_warp, "in one warp");
    }
    let plain = [Kind::Atomic, Kind::Read];
    assert_eq!(pair(plain, [strong(Scope::Device), Strength::Plain], [4, 4], (1, 0)), Some((Certain, Remedy::Atomic)));
    let flag = [Kind::Write, Kind::Read];
    assert_eq!(pair(flag, [Strength::Volatile, Strength::Plain], [4, 4], (1, 0)), Some((Likely, Remedy::Atomic)));
    assert_eq!(pair(flag, [Strength::Volatile, Strength::Plain], [4, 4], (0, 40)), Some((Possible, Remedy::Atomic)));
}

#[test]
fn clusters_meet_unless_the_arrival_is_relaxed() {
    let run = |releases: bool, cluster: u32| {
        let mut s = Script::clustered(2, 32, cluster);
        s.shared((0, 0), 0, 16, Kind::Write);
        for block in 0..2 {
            for thread in 0..32 {
                s.arrive(Meeting::Cluster, (block, thread), releases);
            }
        }
        for block in 0..2 {
            for thread in 0..32 {
                s.pass(Meeting::Cluster, (block, thread));
            }
        }
        s.shared((1, 3), 0, 16, Kind::Read);
        races(&s)
    };
    assert_eq!(run(true, 2), None);
    assert_eq!(run(false, 2), Some((Certain, Remedy::ClusterBarrier)));
    // Threads that have ended are behind the next phase.
    let mut s = Script::clustered(2, 32, 2);
    s.shared((1, 5), 0, 16, Kind::Write);
    s.exit((1, 5));
    let rest = |block: u32| (0..32).filter(move |&thread| (block, thread) != (1, 5)).map(move |thread| (block, thread));
    (0..2).flat_map(rest).for_each(|thread| s.arrive(Meeting::Cluster, thread, true));
    (0..2).flat_map(rest).for_each(|thread| s.pass(Meeting::Cluster, thread));
    s.shared((0, 3), 0, 16, Kind::Read);
    assert_eq!(races(&s), None);
    // Between arrival and wait nothing is ordered.
    let mut s = Script::clustered(2, 32, 2);
    for block in 0..2 {
        for thread in 0..32 {
            s.arrive(Meeting::Cluster, (block, thread), true);
        }
    }
    s.shared((0, 0), 0, 16, Kind::Write);
    s.pass(Meeting::Cluster, (1, 3));
    s.shared((1, 3), 0, 16, Kind::Read);
    assert!(races(&s).is_some());
}

#[test]
fn the_grid_meets() {
    for leave in [false, true] {
        for meet in [false, true] {
            let mut s = Script::new(4, 64);
            s.write((1, 7), DATA);
            let all = (0..4).flat_map(|block| (0..64).map(move |thread| (block, thread)));
            let all: Vec<(u32, u32)> = all.filter(|&(_, thread)| !leave || thread != 63).collect();
            if meet {
                for &thread in &all {
                    s.arrive(Meeting::Grid, thread, true);
                }
                if leave {
                    (0..4).for_each(|block| s.exit((block, 63)));
                }
                for &thread in &all {
                    s.pass(Meeting::Grid, thread);
                }
            }
            s.read((3, 40), DATA);
            assert_eq!(races(&s).is_none(), meet, "leave {leave}");
        }
    }
}

#[test]
fn barrier_objects_pass_on_what_arrivals_release() {
    let run = |copies: bool, arrives: bool, order| {
        let mut s = Script::new(1, 64);
        let plain = Strength::Plain;
        s.access((0, 0), Memory::Shared(0), 128, 8, Kind::Write, plain);
        s.sync(0);
        if copies {
            s.copy((0, 0), 32);
            if arrives {
                s.copies_arrive((0, 0), 128);
            }
            s.object((0, 0), 128, Kind::Atomic, order);
        } else {
            s.shared((0, 0), 0, 32, Kind::Write);
            s.object((0, 0), 128, Kind::Atomic, order);
        }
        // Polled by a plain load, as machine code does.
        s.access((0, 40), Memory::Shared(0), 128, 8, Kind::Read, plain);
        s.shared((0, 40), 0, 32, Kind::Read);
        races(&s)
    };
    assert_eq!(run(false, false, RELEASE), None);
    assert_eq!(run(true, true, RELEASE), None);
    assert_eq!(run(true, false, RELEASE), Some((Certain, Remedy::AwaitCopy)));
    assert!(run(false, false, RELAXED).is_some());
}

/// Every block adds to a counter behind a fence, and the last one reads what all have written.
#[test]
fn the_last_block_has_all_others_behind_it() {
    let run = |fence: bool, behind: bool, sync: bool| {
        let mut s = Script::new(200, 64);
        for block in 0..200u32 {
            for thread in [0, 33u32] {
                s.write((block, thread), DATA + u64::from(block * 64 + thread) * 4);
            }
            if fence {
                s.fence((block, 0), Scope::Device);
                s.fence((block, 33), Scope::Device);
            }
            if sync {
                s.sync(block);
            }
            if fence {
                s.fence((block, 0), Scope::Device);
            }
            s.strong((block, 0), FLAG, Kind::Atomic, RELAXED, Scope::Device);
        }
        if behind {
            s.fence((199, 0), Scope::Device);
        }
        s.sync(199);
        for block in 0..200u32 {
            s.read((199, 40), DATA + u64::from(block * 64 + 33) * 4);
        }
        s.races().iter().filter(|race| race.grade == Certain).count()
    };
    assert_eq!(run(true, true, true), 0);
    assert_eq!(run(false, true, true), 199);
    assert_eq!(run(true, false, true), 199);
    assert_eq!(run(true, true, false), 199);
}
