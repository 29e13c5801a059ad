//! Counters and flags: what strong accesses say of each other without an acquire, and `volatile`
//! data that are neither.

use sim_races::{Grade, Kind, Memory, Scope, Strength};

use crate::script::{GLOBAL, RELAXED, Script};
use Grade::{Certain, Possible};

const DATA: u64 = 0x1000;
const FLAG: u64 = 0x10_0000;

/// Whoever draws the last number sets the counter back, and needs no fence for that: atomic
/// operations before its own have been observed. Later ones, data, and broken chains have not.
#[test]
fn what_was_observed_is_behind() {
    let count = |s: &mut Script, block: u32, scope: Scope| {
        s.strong((block, 0), FLAG, Kind::Atomic, RELAXED, scope);
    };
    let run = |blocks: u32, between: &dyn Fn(&mut Script)| {
        let mut s = Script::new(blocks, 64);
        (0..blocks).for_each(|block| count(&mut s, block, Scope::Device));
        between(&mut s);
        s.write((blocks - 1, 0), FLAG);
        s.surest().map(|race| race.0)
    };
    for blocks in [2, 5, 40, 100] {
        assert_eq!(run(blocks, &|_| {}), None, "{blocks} blocks");
    }
    assert_eq!(run(5, &|s| count(s, 0, Scope::Device)), Some(Certain), "a later one");
    assert_eq!(run(40, &|s| count(s, 3, Scope::Device)), Some(Certain), "a later one of many");
    // Another thread of the block, with and without a barrier behind the last number.
    let other = |sync: bool| {
        let mut s = Script::new(3, 64);
        (0..3).for_each(|block| count(&mut s, block, Scope::Device));
        if sync {
            s.sync(2);
        }
        s.write((2, 40), FLAG);
        s.surest().map(|race| race.0)
    };
    assert_eq!((other(true), other(false)), (None, Some(Certain)));
    // What the others did before is not behind.
    let mut s = Script::new(2, 64);
    s.write((0, 0), DATA);
    (0..2).for_each(|block| count(&mut s, block, Scope::Device));
    s.read((1, 0), DATA);
    assert_eq!(s.surest().map(|race| race.0), Some(Certain));
    // A number of another scope is no link, and neither is a plain write.
    let broken = |break_it: &dyn Fn(&mut Script)| {
        let mut s = Script::new(3, 64);
        count(&mut s, 0, Scope::Device);
        break_it(&mut s);
        count(&mut s, 2, Scope::Device);
        s.write((2, 0), FLAG);
        s.races().iter().any(|race| race.sides.iter().any(|side| side.block == 0) && race.sides[1].block == 2)
    };
    assert!(!broken(&|s| count(s, 1, Scope::Device)));
    assert!(broken(&|s| s.write((1, 0), FLAG)));
}

/// A volatile flag that is polled is a flag, whenever it is raised; data that nobody waits for is
/// not.
#[test]
fn volatile_data_are_no_flags() {
    let run = |polls: &[bool], fences: bool| {
        let mut s = Script::new(2, 64);
        let site = 100;
        for &raised in polls {
            if raised {
                if fences {
                    s.fence((0, 0), Scope::Device);
                }
                s.access((0, 0), GLOBAL, FLAG, 4, Kind::Write, Strength::Volatile);
            } else {
                s.site = site - 1;
                s.access((1, 0), GLOBAL, FLAG, 4, Kind::Read, Strength::Volatile);
            }
        }
        s.surest().map(|race| race.0)
    };
    for fences in [false, true] {
        assert_eq!(run(&[false, false, true, false], fences), None, "the flag is polled");
        assert_eq!(run(&[false, true, false], fences), None, "raised between two polls");
        // It is raised already: the release says that it is a flag.
        assert_eq!(run(&[true, false], fences), if fences { None } else { Some(Possible) });
        assert_eq!(run(&[false, true], fences), Some(Possible), "nobody sees it");
    }
}

/// In machine code shared memory has flags as well: a polled load (told as volatile) is one, and a
/// store (told as unsaid) behind a fence releases. The flag itself is not judged, data without the
/// fence are.
#[test]
fn polled_loads_of_shared_memory_acquire_in_machine_code() {
    let run = |early: bool, fence: bool, polls: bool| {
        let mut s = Script::of_machine_code(1, 64);
        let shared = Memory::Shared(0);
        let (writer, reader) = ((0, 0), (0, 32));
        let poll = |s: &mut Script| {
            let strength = if polls { Strength::Volatile } else { Strength::Plain };
            s.access(reader, shared, 64, 4, Kind::Read, strength);
        };
        if early {
            poll(&mut s);
        }
        s.access(writer, shared, 0, 4, Kind::Write, Strength::Unsaid);
        if fence {
            s.fence(writer, Scope::Block);
        }
        s.access(writer, shared, 64, 4, Kind::Write, Strength::Unsaid);
        poll(&mut s);
        s.access(reader, shared, 0, 4, Kind::Read, Strength::Plain);
        (s.races().len(), s.surest().map(|race| race.0))
    };
    for early in [false, true] {
        assert_eq!(run(early, true, true), (0, None), "early: {early}");
        assert_eq!(run(early, false, true), (1, Some(Certain)), "no fence, early: {early}");
        assert_eq!(run(early, true, false).1, Some(Certain), "nobody polls, early: {early}");
    }
    // A store without a fence of its own ends what was released there.
    let mut s = Script::of_machine_code(1, 96);
    let (shared, third) = (Memory::Shared(0), (0, 64));
    s.access((0, 0), shared, 0, 4, Kind::Write, Strength::Unsaid);
    s.fence((0, 0), Scope::Block);
    s.access((0, 0), shared, 64, 4, Kind::Write, Strength::Unsaid);
    s.access(third, shared, 64, 4, Kind::Write, Strength::Unsaid);
    s.access((0, 32), shared, 64, 4, Kind::Read, Strength::Volatile);
    s.access((0, 32), shared, 0, 4, Kind::Read, Strength::Plain);
    let data = s.races().iter().filter(|race| race.address == 0).count();
    assert_eq!(data, 1);
}

/// Warp-synchronous code with `volatile` in place of `__syncwarp()`: the model has no race, and
/// nothing orders the lanes.
#[test]
fn volatile_in_place_of_a_barrier_of_the_warp_is_possible() {
    let run = |volatile: bool, sync: bool| {
        let mut s = Script::new(1, 32);
        s.executing = Some(u32::MAX);
        let strength = if volatile { Strength::Volatile } else { Strength::Plain };
        s.access((0, 1), Memory::Shared(0), 64, 4, Kind::Write, strength);
        if sync {
            s.warp_sync(0, 0, u32::MAX);
        }
        s.access((0, 0), Memory::Shared(0), 64, 4, Kind::Read, strength);
        s.surest().map(|race| race.0)
    };
    for volatile in [false, true] {
        assert_eq!((run(volatile, false), run(volatile, true)), (Some(Possible), None), "volatile: {volatile}");
    }
}

/// CCTL.IVALL is the acquire half of a fence, and releases nothing.
#[test]
fn an_acquire_alone_releases_nothing() {
    let run = |releases: &dyn Fn(&mut Script), acquires: &dyn Fn(&mut Script)| {
        let mut s = Script::of_machine_code(2, 64);
        s.write((0, 0), DATA);
        releases(&mut s);
        s.strong((0, 0), FLAG, Kind::Write, RELAXED, Scope::Device);
        s.strong((1, 0), FLAG, Kind::Read, RELAXED, Scope::Device);
        acquires(&mut s);
        s.read((1, 0), DATA);
        s.surest().map(|race| race.0)
    };
    let fence = |s: &mut Script| s.fence((0, 0), Scope::Device);
    let acquire = |block: u32| move |s: &mut Script| s.acquire((block, 0), Scope::Device);
    assert_eq!(run(&fence, &acquire(1)), None);
    assert_eq!(run(&fence, &|s| s.fence((1, 0), Scope::Device)), None);
    let whole = |s: &mut Script| {
        fence(s);
        acquire(0)(s);
    };
    assert_eq!(run(&whole, &acquire(1)), None, "MEMBAR and CCTL.IVALL");
    assert_eq!(run(&acquire(0), &acquire(1)), Some(Certain), "no release");
    assert_eq!(run(&fence, &|_| {}), Some(Certain), "no acquire");
    // What was acquired goes on with the next release.
    let chain = |releases: bool| {
        let mut s = Script::of_machine_code(3, 64);
        s.write((0, 0), DATA);
        s.fence((0, 0), Scope::Device);
        s.strong((0, 0), FLAG, Kind::Write, RELAXED, Scope::Device);
        s.strong((1, 0), FLAG, Kind::Read, RELAXED, Scope::Device);
        s.acquire((1, 0), Scope::Device);
        if releases {
            s.fence((1, 0), Scope::Device);
        }
        s.strong((1, 0), FLAG + 8, Kind::Write, RELAXED, Scope::Device);
        s.strong((2, 0), FLAG + 8, Kind::Read, RELAXED, Scope::Device);
        s.acquire((2, 0), Scope::Device);
        s.read((2, 0), DATA);
        s.surest().map(|race| race.0)
    };
    assert_eq!((chain(true), chain(false)), (None, Some(Certain)));
}

/// A swap of a word that changes one byte of it: others may write its neighbours.
#[test]
fn a_swap_of_a_word_keeps_the_neighbours_of_its_byte() {
    let strong = Strength::Strong(RELAXED, Scope::Device);
    let swap = |s: &mut Script, thread, keeps| {
        (s.compares, s.keeps) = (true, keeps);
        s.access(thread, GLOBAL, DATA, 4, Kind::Atomic, strong);
        (s.compares, s.keeps) = (false, 0);
    };
    for guess in [None, Some(Strength::Plain), Some(strong)] {
        for first in [false, true] {
            let run = |keeps: u8, kind: Kind, at: u64, size: u32| {
                let mut s = Script::new(2, 64);
                let other = |s: &mut Script| s.access((1, 0), GLOBAL, DATA + at, size, kind, Strength::Plain);
                if first {
                    other(&mut s);
                }
                if let Some(strength) = guess {
                    s.access((0, 0), GLOBAL, DATA, 4, Kind::Read, strength);
                }
                swap(&mut s, (0, 0), keeps);
                if !first {
                    other(&mut s);
                }
                s.surest().map(|race| race.0)
            };
            for kind in [Kind::Read, Kind::Write] {
                for at in 0..4 {
                    let of_byte = |at: u64| if at == 0 { Some(Certain) } else { Some(Possible) };
                    assert_eq!(run(0b1110, kind, at, 1), of_byte(at), "{guess:?} {first} {kind:?} of byte {at}");
                    assert_eq!(run(0, kind, at, 1), Some(Certain));
                }
                assert_eq!(run(0b1100, kind, 0, 2), Some(Certain));
                assert_eq!(run(0b1100, kind, 2, 2), Some(Possible));
                assert_eq!(run(0b1100, kind, 0, 4), Some(Certain), "the whole word");
            }
        }
    }
    // One for itself keeps the neighbours if the instruction changes parts of words. Else it reads.
    for (partial, grade) in [(true, Possible), (false, Certain)] {
        let mut s = Script::new(2, 64);
        for (keeps, at) in [(if partial { 0b1101 } else { 0b1111 }, DATA + 64), (0b1111, DATA)] {
            s.site = 100;
            (s.compares, s.keeps) = (true, keeps);
            s.access((0, 0), GLOBAL, at, 4, Kind::Atomic, strong);
        }
        (s.compares, s.keeps) = (false, 0);
        s.access((1, 0), GLOBAL, DATA + 1, 1, Kind::Write, Strength::Plain);
        assert_eq!(s.surest().map(|race| race.0), Some(grade));
    }
    // One that changes the byte is not hidden by one that does not.
    for keeps in [[0b1110, 0b1101], [0b1101, 0b1110]] {
        let mut s = Script::new(3, 64);
        swap(&mut s, (0, 0), keeps[0]);
        swap(&mut s, (1, 0), keeps[1]);
        s.access((2, 0), GLOBAL, DATA + 1, 1, Kind::Write, Strength::Plain);
        assert_eq!(s.surest().map(|race| race.0), Some(Certain));
    }
}

/// In machine code a swap of 2 bytes reads its word first: what was read before is a guess still.
#[test]
fn a_guess_of_two_bytes_is_one_behind_a_read_of_their_word() {
    let strong = Strength::Strong(RELAXED, Scope::Device);
    let run = |word: u64, swaps: bool| {
        let mut s = Script::of_machine_code(2, 64);
        s.compares = true;
        s.access((0, 0), GLOBAL, DATA + 2, 2, Kind::Read, Strength::Plain);
        s.access((1, 0), GLOBAL, DATA, 4, Kind::Atomic, strong);
        s.access((0, 0), GLOBAL, word, 4, Kind::Read, Strength::Plain);
        if swaps {
            s.access((0, 0), GLOBAL, word, 4, Kind::Atomic, strong);
        }
        s.races().iter().find(|race| race.sides[0].site == 1).map(|race| race.grade)
    };
    assert_eq!(run(DATA, true), Some(Possible));
    assert_eq!(run(DATA, false), Some(Certain), "no swap follows");
    assert_eq!(run(DATA + 4, true), Some(Certain), "of another word");
}
