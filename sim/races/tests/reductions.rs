//! The targets of reductions (`cp.reduce.async.bulk`), tensor maps, and scopes of waits at barrier
//! objects: each rule as a racy script and its mended twins.

use sim_races::{GROUPED, Grade, Kind, Memory, Order, Remedy, Scope};

use crate::script::{GLOBAL, Script};

use Grade::{Certain, Likely};
use Kind::{Atomic, Read, Write};

const BAR: u64 = 128;

fn clean(s: &Script) {
    assert_eq!(s.races(), []);
}

/// Where a reduction goes, and how its end is known.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Nothing,
    Phase,
    WaitRead,
    Wait,
}

/// Thread (0, 0) adds from its block's memory to a place; then a thread does something there.
fn reduced(target: (Memory, u64), end: End, user: (u32, u32), does: impl Fn(&mut Script)) -> Script {
    let mut s = Script::clustered(2, 64, 2);
    let owner = if let Memory::Shared(of) = target.0 { of } else { 0 };
    s.object_begins((owner, 0), BAR);
    s.barrier(0, 0, &[0, 1], &[]);
    let number = if end == End::Phase { 8 } else { 8 | GROUPED };
    s.bulk((0, 0), number, (Memory::Shared(0), 32), Read);
    s.bulk((0, 0), number + 1, target, Atomic);
    match end {
        End::Nothing => {}
        End::Phase => {
            s.bulk_completes(number, owner, BAR);
            s.bulk_completes(number + 1, owner, BAR);
            s.object_turns(owner, BAR);
            s.object_passes(user, owner, BAR);
        }
        End::WaitRead => s.bulk_awaited((0, 0), number),
        End::Wait => {
            s.bulk_awaited((0, 0), number);
            s.bulk_awaited((0, 0), number + 1);
        }
    }
    if user.0 == 0 {
        s.sync(0);
    }
    does(&mut s);
    s
}

#[test]
fn the_target_of_a_reduction_changes_until_its_end() {
    let at = |target: (Memory, u64), user: (u32, u32), kind: Kind| {
        move |s: &mut Script| s.access(user, target.0, target.1, 4, kind, sim_races::Strength::Plain)
    };
    for kind in [Read, Write] {
        // To another block's memory, by phase.
        let (there, user) = ((Memory::Shared(1), 64), (1, 40));
        clean(&reduced(there, End::Phase, user, at(there, user, kind)));
        let racy = reduced(there, End::Nothing, user, at(there, user, kind));
        assert_eq!(racy.surest(), Some((Certain, Remedy::AwaitGroup)), "{kind:?}");
        // To its own block's, to global memory.
        for target in [(Memory::Shared(0), 64), (GLOBAL, 64)] {
            for user in [(0, 0), (0, 40)] {
                for end in [End::Phase, End::Wait] {
                    clean(&reduced(target, end, user, at(target, user, kind)));
                }
                for end in [End::Nothing, End::WaitRead] {
                    let racy = reduced(target, end, user, at(target, user, kind));
                    assert_eq!(racy.surest(), Some((Certain, Remedy::AwaitGroup)), "{target:?} {end:?}");
                }
            }
        }
    }
    // Its source may change when it has been read.
    let source = |kind| at((Memory::Shared(0), 32), (0, 40), kind);
    for end in [End::WaitRead, End::Wait] {
        clean(&reduced((GLOBAL, 64), end, (0, 40), source(Write)));
    }
    assert!(reduced((GLOBAL, 64), End::Nothing, (0, 40), source(Write)).surest().is_some());
    clean(&reduced((GLOBAL, 64), End::Nothing, (0, 40), source(Read)));
}

#[test]
fn reductions_and_atomic_operations_do_not_race_with_each_other() {
    let mut s = Script::new(3, 32);
    for block in 0..3 {
        s.bulk((block, 0), (u64::from(block) * 2 + 1) | GROUPED, (GLOBAL, 64), Atomic);
    }
    s.strong((0, 3), 64, Atomic, Order::RELAXED, Scope::Device);
    clean(&s);
    // A store of the same proxy is no part of that, nor is a plain access.
    s.bulk((2, 1), 99 | GROUPED, (GLOBAL, 64), Write);
    assert_eq!(s.surest().map(|race| race.0), Some(Certain));
    let mut s = Script::new(2, 32);
    s.bulk((0, 0), 1 | GROUPED, (GLOBAL, 64), Atomic);
    s.write((1, 3), 64);
    assert_eq!(s.surest(), Some((Certain, Remedy::AwaitGroup)));
    let mut s = Script::new(2, 32);
    s.write((1, 3), 64);
    s.bulk((0, 0), 1 | GROUPED, (GLOBAL, 64), Atomic);
    assert_eq!(s.surest(), Some((Certain, Remedy::ReleaseAcquire)));
}

#[test]
fn a_reduction_adds_to_what_a_fence_has_made_known() {
    let run = |fence: &dyn Fn(&mut Script)| {
        let mut s = Script::new(1, 64);
        s.write((0, 40), 64);
        fence(&mut s);
        s.sync(0);
        s.bulk((0, 0), 1 | GROUPED, (GLOBAL, 64), Atomic);
        s
    };
    clean(&run(&|s| s.proxy_fence((0, 40), true, true)));
    clean(&run(&|s| s.proxy_fence((0, 40), true, false)));
    for fence in [&(|_: &mut Script| {}) as &dyn Fn(&mut Script), &|s| s.proxy_fence((0, 40), false, true)] {
        assert_eq!(run(fence).surest(), Some((Certain, Remedy::ProxyFence)));
    }
}

#[test]
fn a_reduction_hands_nothing_on() {
    // Neither does it acquire for its thread, nor does it release what that has written.
    let mut s = Script::new(2, 32);
    s.write((0, 0), 0);
    s.fence_sc((0, 0));
    s.bulk((0, 0), 1 | GROUPED, (GLOBAL, 64), Atomic);
    s.strong((1, 0), 64, Atomic, Order::RELAXED, Scope::Device);
    s.fence_sc((1, 0));
    s.read((1, 0), 0);
    assert!(s.surest().is_some());
}

/// Thread 3 writes a map; thread 0 issues a copy by it.
fn by_map(fences: impl Fn(&mut Script)) -> Script {
    let mut s = Script::new(1, 64);
    s.write((0, 3), 256);
    fences(&mut s);
    s.reads_map((0, 0), 8, 256);
    s
}

#[test]
fn a_map_is_read_behind_a_release_and_an_acquire_of_its_proxy() {
    clean(&by_map(|s| {
        s.map_fence((0, 3), false);
        s.sync(0);
        s.map_fence((0, 0), true);
    }));
    // By others on the way.
    clean(&by_map(|s| {
        s.sync(0);
        s.map_fence((0, 40), false);
        s.sync(0);
        s.map_fence((0, 41), true);
        s.sync(0);
    }));
    let racy: [&dyn Fn(&mut Script); 5] = [
        &|s| s.sync(0),
        &|s| {
            s.map_fence((0, 3), false);
            s.sync(0);
        },
        &|s| {
            s.sync(0);
            s.map_fence((0, 0), true);
        },
        // The acquire comes first.
        &|s| {
            s.map_fence((0, 0), true);
            s.map_fence((0, 3), false);
            s.sync(0);
        },
        &|s| {
            s.proxy_fence((0, 3), true, true);
            s.sync(0);
            s.proxy_fence((0, 0), true, true);
        },
    ];
    for (at, fences) in racy.into_iter().enumerate() {
        assert_eq!(by_map(fences).surest(), Some((Certain, Remedy::MapFence)), "{at}");
    }
    // Fences order no threads.
    let unordered = by_map(|s| {
        s.map_fence((0, 3), false);
        s.map_fence((0, 0), true);
    });
    assert!(unordered.surest().is_some_and(|(grade, remedy)| grade == Certain && remedy != Remedy::MapFence));
}

/// Machine code does not show that the lanes which copy a map meet: one warp is never `certain`.
/// Of another warp nothing vouches for it.
#[test]
fn in_machine_code_the_lanes_that_copy_a_map_may_have_met() {
    let read_after = |writer: u32| {
        let mut s = Script::of_machine_code(1, 64);
        s.executing = Some(u32::MAX);
        s.write((0, writer), 256);
        s.reads_map((0, 0), 8, 256);
        s.surest().map(|(grade, _)| grade)
    };
    assert!(read_after(3).is_none_or(|grade| grade == Grade::Possible), "{:?}", read_after(3));
    assert_eq!(read_after(40), Some(Certain));
}

#[test]
fn a_map_lives_until_its_copies_are_done() {
    let run = |waits: bool| {
        let mut s = Script::new(1, 64);
        s.object_begins((0, 0), BAR);
        s.reads_map((0, 0), 8, 256);
        if waits {
            s.bulk_completes(8, 0, BAR);
            s.object_turns(0, BAR);
            s.object_passes((0, 0), 0, BAR);
        }
        s.sync(0);
        s.write((0, 40), 256);
        s
    };
    clean(&run(true));
    assert_eq!(run(false).surest(), Some((Certain, Remedy::AwaitPhase)));
}

#[test]
fn a_wait_hears_of_another_block_by_its_scope() {
    let run = |first: Kind, far_arrival: bool, far_wait: bool| {
        let mut s = Script::clustered(2, 32, 2);
        s.object_begins((1, 0), BAR);
        s.shared((0, 0), 1, 32, first);
        match far_arrival {
            true => s.object_arrives_far((0, 0), 1, BAR),
            false => s.object_arrives((0, 0), 1, BAR),
        }
        s.object_turns(1, BAR);
        match far_wait {
            true => s.object_passes_far((1, 0), 1, BAR),
            false => s.object_passes((1, 0), 1, BAR),
        }
        s.shared((1, 0), 1, 32, Write);
        s
    };
    for first in [Read, Write] {
        clean(&run(first, true, true));
        // Libraries write no scope and mean the cluster's.
        clean(&run(first, false, false));
        clean(&run(first, false, true));
    }
    // What was only read may be overwritten.
    clean(&run(Read, true, false));
    assert_eq!(run(Write, true, false).surest(), Some((Likely, Remedy::WiderWait)));
    // Within a block the scope is wide enough.
    let mut s = Script::clustered(2, 32, 2);
    s.object_begins((1, 0), BAR);
    s.shared((1, 4), 1, 32, Write);
    s.object_arrives_far((1, 4), 1, BAR);
    s.object_turns(1, BAR);
    s.object_passes((1, 0), 1, BAR);
    s.shared((1, 0), 1, 32, Read);
    clean(&s);
}
