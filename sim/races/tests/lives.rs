//! Shared memory of blocks of a cluster: from when its barrier objects are known until it ends.

use sim_races::{Grade, Kind, Meeting, Memory, Remedy};

use crate::script::Script;

use Grade::{Certain, Likely};
use Kind::{Atomic, Read, Write};

const BAR: u64 = 128;

fn clean(s: &Script) {
    assert_eq!(s.races(), []);
}

/// Block 0 accesses the memory of block 1; then that ends.
fn left(kind: Kind, meets: impl Fn(&mut Script), late: bool) -> Script {
    let mut s = Script::clustered(2, 1, 2);
    let end = |s: &mut Script, block: u32| {
        s.exit((block, 0));
        s.ends(block);
    };
    if late {
        end(&mut s, 1);
    }
    s.shared((0, 0), 1, 32, kind);
    meets(&mut s);
    if !late {
        end(&mut s, 1);
    }
    end(&mut s, 0);
    s
}

#[test]
fn a_block_stays_until_others_have_left_its_memory() {
    let meet = |releases: bool| {
        move |s: &mut Script| {
            (0..2).for_each(|block| s.arrive(Meeting::Cluster, (block, 0), releases));
            (0..2).for_each(|block| s.pass(Meeting::Cluster, (block, 0)));
        }
    };
    for kind in [Read, Write, Atomic] {
        // A relaxed arrival tells that it has come.
        clean(&left(kind, meet(true), false));
        clean(&left(kind, meet(false), false));
        for late in [false, true] {
            assert_eq!(left(kind, |_| {}, late).surest(), Some((Certain, Remedy::BlockStays)), "{kind:?} {late}");
        }
    }
    // Arriving without waiting is not enough.
    let arrives = |s: &mut Script| (0..2).for_each(|block| s.arrive(Meeting::Cluster, (block, 0), true));
    assert_eq!(left(Read, arrives, false).surest(), Some((Certain, Remedy::BlockStays)));
    // Its own memory, and that of others while they run, is no matter.
    let mut s = Script::clustered(2, 1, 2);
    s.shared((1, 0), 1, 32, Write);
    s.exit((1, 0));
    s.ends(1);
    s.shared((0, 0), 0, 32, Write);
    clean(&s);
    // What came before a meeting is over, what comes behind is not.
    let mut s = Script::clustered(2, 1, 2);
    meet(false)(&mut s);
    s.shared((0, 0), 1, 32, Read);
    s.exit((1, 0));
    s.ends(1);
    assert_eq!(s.surest(), Some((Certain, Remedy::BlockStays)));
}

#[test]
fn a_copy_into_a_block_is_awaited_there_before_it_ends() {
    let run = |waits: bool| {
        let mut s = Script::clustered(2, 1, 2);
        s.object_begins((1, 0), BAR);
        s.bulk((0, 0), 9, (Memory::Shared(1), 64), Write);
        s.bulk_completes(9, 1, BAR);
        s.object_turns(1, BAR);
        if waits {
            s.object_passes((1, 0), 1, BAR);
        }
        s.exit((1, 0));
        s.ends(1);
        s
    };
    clean(&run(true));
    assert_eq!(run(false).surest(), Some((Likely, Remedy::BlockStays)));
}

#[test]
fn a_barrier_object_is_known_to_the_cluster_behind_a_barrier_of_it() {
    let run = |meets: Option<bool>, user: u32| {
        let mut s = Script::clustered(2, 1, 2);
        s.access((0, 0), Memory::Shared(0), BAR, 8, Write, sim_races::Strength::Plain);
        s.object_begins((0, 0), BAR);
        s.init_fence((0, 0));
        if let Some(releases) = meets {
            (0..2).for_each(|block| s.arrive(Meeting::Cluster, (block, 0), releases));
            (0..2).for_each(|block| s.pass(Meeting::Cluster, (block, 0)));
        }
        s.object_of((user, 0), 0, BAR);
        s
    };
    clean(&run(Some(true), 1));
    clean(&run(Some(false), 1));
    clean(&run(None, 0));
    assert_eq!(run(None, 1).surest(), Some((Certain, Remedy::ClusterBarrier)));
}
