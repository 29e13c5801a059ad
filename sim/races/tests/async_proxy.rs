//! Bulk operations and barrier objects by phase: each rule as a racy script and its mended twins.

use sim_races::{GROUPED, Grade, Kind, Memory, Remedy, Scope};

use crate::script::{GLOBAL, Script};

use Grade::{Certain, Possible};
use Kind::{Read, Write};

const TILE: (Memory, u64) = (Memory::Shared(0), 32);
const BAR: u64 = 128;

fn clean(s: &Script) {
    assert_eq!(s.races(), []);
}

/// A load by thread 0 of one block of 64 threads, into the tile.
fn loaded() -> Script {
    let mut s = Script::new(1, 64);
    s.object_begins((0, 0), BAR);
    s.sync(0);
    s.bulk((0, 0), 1, (GLOBAL, 64), Read);
    s.bulk((0, 0), 1, TILE, Write);
    s
}

#[test]
fn a_load_is_done_for_those_who_pass_its_phase() {
    // Nobody has waited: not even the thread that issued it has it behind it.
    for reader in [0, 5, 40] {
        let mut s = loaded();
        s.shared((0, reader), 0, 32, Read);
        assert_eq!(s.surest(), Some((Certain, Remedy::AwaitPhase)), "{reader}");
    }
    // A barrier of the block waits for no copy.
    let mut s = loaded();
    s.sync(0);
    s.shared((0, 40), 0, 32, Read);
    assert_eq!(s.surest(), Some((Certain, Remedy::AwaitPhase)));
    for reader in [0, 40] {
        let mut s = loaded();
        s.object_arrives((0, 0), 0, BAR);
        s.bulk_completes(1, 0, BAR);
        s.object_turns(0, BAR);
        s.object_passes((0, reader), 0, BAR);
        s.shared((0, reader), 0, 32, Read);
        s.shared((0, reader), 0, 32, Write);
        clean(&s);
        // Others have not passed.
        s.shared((0, 41), 0, 32, Read);
        assert!(s.surest().is_some());
    }
    // Who has passed hands it on.
    let mut s = loaded();
    s.bulk_completes(1, 0, BAR);
    s.object_turns(0, BAR);
    s.object_passes((0, 7), 0, BAR);
    s.sync(0);
    s.shared((0, 40), 0, 32, Read);
    clean(&s);
}

#[test]
fn a_phase_before_says_nothing_of_a_load() {
    // A wait with the parity of the phase before passes at once.
    let mut s = loaded();
    s.object_passes((0, 40), 0, BAR);
    s.shared((0, 40), 0, 32, Read);
    assert_eq!(s.surest(), Some((Certain, Remedy::AwaitPhase)));
    // Its bytes came in the second phase only.
    let run = |second: bool| {
        let mut s = loaded();
        s.object_turns(0, BAR);
        s.bulk_completes(1, 0, BAR);
        if second {
            s.object_turns(0, BAR);
        }
        s.object_passes((0, 40), 0, BAR);
        s.shared((0, 40), 0, 32, Read);
        s
    };
    assert_eq!(run(false).surest(), Some((Certain, Remedy::AwaitPhase)));
    clean(&run(true));
}

#[test]
fn arrivals_release_by_phase() {
    let run = |arrives: bool, turns: bool, late: bool| {
        let mut s = Script::new(1, 64);
        s.object_begins((0, 0), BAR);
        s.sync(0);
        if late {
            // The phase is over before the writer arrives.
            s.object_turns(0, BAR);
        }
        s.shared((0, 1), 0, 32, Write);
        if arrives {
            s.object_arrives((0, 1), 0, BAR);
        }
        if turns && !late {
            s.object_turns(0, BAR);
        }
        s.object_passes((0, 40), 0, BAR);
        s.shared((0, 40), 0, 32, Read);
        s
    };
    clean(&run(true, true, false));
    for (arrives, turns, late) in [(false, true, false), (true, false, false), (true, true, true)] {
        assert_eq!(
            run(arrives, turns, late).surest(),
            Some((Certain, Remedy::BlockBarrier)),
            "{arrives} {turns} {late}"
        );
    }
}

#[test]
fn an_elected_lane_arrives_for_itself_only() {
    let run = |all: bool, warp: bool| {
        let mut s = Script::new(1, 64);
        s.object_begins((0, 0), BAR);
        s.sync(0);
        (0..32).for_each(|lane| s.shared((0, lane), 0, 32 + 4 * u64::from(lane), Write));
        if warp {
            s.warp_sync(0, 0, u32::MAX);
        }
        (0..if all { 32 } else { 1 }).for_each(|lane| s.object_arrives((0, lane), 0, BAR));
        s.object_turns(0, BAR);
        s.object_passes((0, 40), 0, BAR);
        s.shared((0, 40), 0, 32 + 4 * 9, Read);
        s
    };
    assert_eq!(run(false, false).surest(), Some((Certain, Remedy::BlockBarrier)));
    clean(&run(false, true));
    clean(&run(true, false));
}

/// What is missing in front of a bulk operation.
fn stored(fence: impl Fn(&mut Script), kind: Kind) -> Script {
    let mut s = Script::new(1, 64);
    s.shared((0, 3), 0, 32, Write);
    fence(&mut s);
    s.bulk((0, 0), 8 | GROUPED, TILE, kind);
    s
}

#[test]
fn a_bulk_store_reads_what_a_fence_has_made_known() {
    let none = |s: &mut Script| s.sync(0);
    assert_eq!(stored(none, Read).surest(), Some((Certain, Remedy::ProxyFence)));
    let wrong_space = |s: &mut Script| {
        s.proxy_fence((0, 3), true, false);
        s.sync(0);
    };
    assert_eq!(stored(wrong_space, Read).surest(), Some((Certain, Remedy::ProxyFence)));
    let another = |s: &mut Script| {
        s.proxy_fence((0, 4), true, true);
        s.sync(0);
    };
    assert_eq!(stored(another, Read).surest(), Some((Certain, Remedy::ProxyFence)));
    let early = |s: &mut Script| {
        s.proxy_fence((0, 3), true, true);
        s.shared((0, 3), 0, 32, Write);
        s.sync(0);
    };
    assert_eq!(stored(early, Read).surest(), Some((Certain, Remedy::ProxyFence)));
    // The fence without the barrier.
    let alone = |s: &mut Script| s.proxy_fence((0, 3), false, true);
    assert_eq!(stored(alone, Read).surest(), Some((Certain, Remedy::WarpBarrier)));
    // By the writer before the barrier, or by the issuer behind it: both are on the way.
    let writer = |s: &mut Script| {
        s.proxy_fence((0, 3), false, true);
        s.sync(0);
    };
    clean(&stored(writer, Read));
    let issuer = |s: &mut Script| {
        s.sync(0);
        s.proxy_fence((0, 0), true, true);
    };
    clean(&stored(issuer, Read));
    let third = |s: &mut Script| {
        s.sync(0);
        s.proxy_fence((0, 9), true, true);
        s.sync(0);
    };
    clean(&stored(third, Read));
}

#[test]
fn the_thread_itself_needs_the_fence_too() {
    let run = |fence: bool| {
        let mut s = Script::new(1, 32);
        s.shared((0, 0), 0, 32, Write);
        if fence {
            s.proxy_fence((0, 0), false, true);
        }
        s.bulk((0, 0), 8 | GROUPED, TILE, Read);
        s
    };
    assert_eq!(run(false).surest(), Some((Certain, Remedy::ProxyFence)));
    clean(&run(true));
}

#[test]
fn two_writes_without_a_fence_are_possible_at_most() {
    assert_eq!(stored(|s| s.sync(0), Write).surest(), Some((Possible, Remedy::ProxyFence)));
    assert_eq!(stored(|_| {}, Write).surest().map(|race| race.0), Some(Certain));
    let fence = |s: &mut Script| {
        s.sync(0);
        s.proxy_fence((0, 0), false, true);
    };
    clean(&stored(fence, Write));
}

#[test]
fn a_load_overwrites_what_users_have_read() {
    let run = |arrives: bool| {
        let mut s = Script::new(1, 64);
        s.object_begins((0, 0), BAR);
        s.sync(0);
        s.shared((0, 40), 0, 32, Read);
        if arrives {
            s.object_arrives((0, 40), 0, BAR);
        }
        s.object_turns(0, BAR);
        s.object_passes((0, 0), 0, BAR);
        s.bulk((0, 0), 1, TILE, Write);
        s
    };
    assert_eq!(run(false).surest(), Some((Certain, Remedy::AwaitUsers)));
    // Reads need no fence between the proxies.
    clean(&run(true));
}

#[test]
fn a_group_is_done_for_the_thread_that_waits() {
    let run = |waits: Option<u32>, writer: u32, sync: bool| {
        let mut s = Script::new(1, 64);
        s.bulk((0, 0), 8 | GROUPED, TILE, Read);
        if let Some(thread) = waits {
            s.bulk_awaited((0, thread), 8 | GROUPED);
        }
        if sync {
            s.sync(0);
        }
        s.shared((0, writer), 0, 32, Write);
        s
    };
    for (waits, writer, sync) in [(None, 0, false), (None, 40, true), (Some(0), 40, false)] {
        assert_eq!(run(waits, writer, sync).surest(), Some((Certain, Remedy::AwaitGroup)), "{writer}");
    }
    clean(&run(Some(0), 0, false));
    clean(&run(Some(0), 40, true));
}

#[test]
fn operations_of_one_thread_are_in_no_order() {
    let run = |waits: bool| {
        let mut s = Script::new(1, 32);
        s.bulk((0, 0), 8 | GROUPED, TILE, Read);
        if waits {
            s.bulk_awaited((0, 0), 8 | GROUPED);
        }
        s.bulk((0, 0), 2, TILE, Write);
        s
    };
    assert_eq!(run(false).surest(), Some((Certain, Remedy::AwaitGroup)));
    clean(&run(true));
    // Two loads of one source.
    let mut s = Script::new(1, 32);
    s.bulk((0, 0), 1, (GLOBAL, 0), Read);
    s.bulk((0, 0), 2, (GLOBAL, 0), Read);
    clean(&s);
}

#[test]
fn global_memory_has_proxies_too() {
    let run = |fence: bool| {
        let mut s = Script::new(1, 64);
        s.write((0, 3), 64);
        if fence {
            s.proxy_fence((0, 3), true, false);
        }
        s.sync(0);
        s.bulk((0, 0), 1, (GLOBAL, 64), Read);
        s
    };
    assert_eq!(run(false).surest(), Some((Certain, Remedy::ProxyFence)));
    clean(&run(true));
}

#[test]
fn copies_of_the_generic_proxy_need_the_fence_as_well() {
    let run = |fence: bool| {
        let mut s = Script::new(1, 32);
        s.copy((0, 0), 32);
        s.commit((0, 0));
        s.wait((0, 0), Some(0));
        if fence {
            s.proxy_fence((0, 0), false, true);
        }
        s.bulk((0, 0), 8 | GROUPED, TILE, Read);
        s
    };
    assert_eq!(run(false).surest().map(|race| race.0), Some(Certain));
    clean(&run(true));
}

#[test]
fn a_ring_of_stages_is_silent_and_its_early_release_is_not() {
    // Two stages, a producer (thread 0), two users; each user arrives behind its last read.
    let run = |early: bool| {
        let mut s = Script::new(1, 96);
        let (full, empty) = ([128, 136], [144, 152]);
        for at in full.into_iter().chain(empty) {
            s.object_begins((0, 0), at);
        }
        s.sync(0);
        for step in 0..8u64 {
            let stage = (step % 2) as usize;
            let tile = 32 + 8 * stage as u64;
            if step >= 2 {
                s.object_passes((0, 0), 0, empty[stage]);
            }
            s.bulk((0, 0), 1 + step, (Memory::Shared(0), tile), Write);
            s.object_arrives((0, 0), 0, full[stage]);
            s.bulk_completes(1 + step, 0, full[stage]);
            s.object_turns(0, full[stage]);
            for user in [33, 64] {
                s.object_passes((0, user), 0, full[stage]);
                if !early {
                    s.shared((0, user), 0, tile, Read);
                }
                s.object_arrives((0, user), 0, empty[stage]);
                if early {
                    s.shared((0, user), 0, tile, Read);
                }
            }
            s.object_turns(0, empty[stage]);
        }
        s
    };
    clean(&run(false));
    assert_eq!(run(true).surest(), Some((Certain, Remedy::AwaitUsers)));
}

#[test]
fn a_fence_of_inits_serves_a_relaxed_arrival_in_the_cluster() {
    let run = |fence: bool| {
        let mut s = Script::clustered(2, 32, 2);
        s.access((0, 0), Memory::Shared(0), BAR, 8, Write, sim_races::Strength::Plain);
        s.object_begins((0, 0), BAR);
        if fence {
            s.init_fence((0, 0));
        }
        for thread in [(0, 0), (1, 0)] {
            s.arrive(sim_races::Meeting::Cluster, thread, false);
        }
        s.pass(sim_races::Meeting::Cluster, (1, 0));
        s.access((1, 0), Memory::Shared(0), BAR, 8, Kind::Atomic, sim_races::Strength::Plain);
        s
    };
    assert!(run(false).surest().is_some());
    clean(&run(true));
}

/// PTX ISA, memory consistency model, release and acquire patterns: a fence and a relaxed operation
/// behind it release, a relaxed operation and a fence behind it acquire.
#[test]
fn a_fence_beside_a_relaxed_operation_of_an_object_serves() {
    for (of, reader, scope) in [(0, (0, 40), Scope::Block), (1, (1, 40), Scope::Cluster)] {
        for mask in 0..16 {
            let [arrives, passes, before, behind] = [1, 2, 4, 8].map(|bit| mask & bit != 0);
            let mut s = Script::clustered(2, 64, 2);
            s.object_begins((of, 0), BAR);
            s.barrier(0, 0, &[0, 1], &[]);
            s.write((0, 0), 0);
            if before {
                s.fence((0, 0), scope);
            }
            match arrives {
                true => s.object_arrives((0, 0), of, BAR),
                false => s.object_arrives_relaxed((0, 0), of, BAR),
            }
            s.object_turns(of, BAR);
            match passes {
                true => s.object_passes(reader, of, BAR),
                false => s.object_passes_relaxed(reader, of, BAR),
            }
            if behind {
                s.fence(reader, scope);
            }
            s.read(reader, 0);
            let ordered = (arrives || before) && (passes || behind);
            assert_eq!(s.surest().is_none(), ordered, "{arrives} {passes} {before} {behind} {scope:?}");
        }
    }
    // A fence of the block does not reach another one's thread.
    let mut s = Script::clustered(2, 64, 2);
    s.write((0, 0), 0);
    s.fence((0, 0), Scope::Block);
    s.object_arrives_relaxed((0, 0), 1, BAR);
    s.object_turns(1, BAR);
    s.object_passes((1, 40), 1, BAR);
    s.read((1, 40), 0);
    assert!(s.surest().is_some());
}

#[test]
fn a_fence_before_a_relaxed_arrival_at_the_clusters_barrier_serves() {
    let run = |scope: Option<Scope>| {
        let mut s = Script::clustered(2, 32, 2);
        s.write((0, 0), 0);
        if let Some(scope) = scope {
            s.fence((0, 0), scope);
        }
        for thread in [(0, 0), (1, 0)] {
            s.arrive(sim_races::Meeting::Cluster, thread, false);
        }
        s.pass(sim_races::Meeting::Cluster, (1, 0));
        s.read((1, 0), 0);
        s
    };
    for scope in [Scope::Cluster, Scope::Device] {
        clean(&run(Some(scope)));
    }
    assert!(run(None).surest().is_some() && run(Some(Scope::Block)).surest().is_some());
}
