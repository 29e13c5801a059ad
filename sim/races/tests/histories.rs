//! Histories of bytes: what is told apart, joined, hidden or forgotten must find the same races,
//! and no others.

use sim_races::{Grade, Kind, LANES, Lanes, Memory, MemoryEvents, Scope, Strength};

use crate::script::{GLOBAL, RELAXED, Script};
use crate::twins::{DATA, FLAG, races};
use Grade::{Benign, Certain, Likely, Possible};

/// Lanes of a warp that read words together: all one word, halves, pairs, each its own, or in no
/// order.
const SHAPES: [fn(u64) -> u64; 6] =
    [|_| 0, |lane| lane / 16, |lane| lane % 16, |lane| lane / 2, |lane| lane, |lane| lane * 7 % 13];

#[test]
fn lanes_that_read_together_count_as_each_by_itself() {
    // Few lanes, for the histories must have room for each by itself.
    let whole = |warp: u32, block: u32| Lanes { block, warp, mask: 0x8003_0003 };
    // Warps that read in turns, with or without barriers, and a write by a thread that is ordered
    // with some of them.
    let run = |shape: fn(u64) -> u64, apart: bool, memory: Memory, warps: u32, sync: bool, writer: (u32, u32)| {
        let mut s = Script::new(2, 32 * 9);
        s.executing = Some(0x8003_0003);
        let addresses: [u64; LANES] = std::array::from_fn(|lane| DATA + shape(lane as u64) * 4);
        for turn in 0..3 {
            for warp in 0..warps {
                s.lanes_access_apart(whole(warp, 0), memory, &addresses, 4, Kind::Read, apart);
                s.lanes_access_apart(whole(warp, 0), memory, &addresses, 4, Kind::Read, apart);
            }
            if sync {
                s.sync(0);
            }
            s.access((0, turn), memory, DATA, 4, Kind::Write, Strength::Plain);
            if sync {
                s.sync(0);
            }
        }
        for warp in 0..warps {
            s.lanes_access_apart(whole(warp, 0), memory, &addresses, 4, Kind::Read, apart);
        }
        if memory == Memory::Global || writer.0 == 0 {
            s.access(writer, memory, DATA, 4, Kind::Write, Strength::Plain);
        }
        let mut found: Vec<_> =
            s.detector.races().iter().map(|r| (r.sides.map(|s| (s.site, s.kind)), r.grade)).collect();
        found.sort();
        (found, s.detector.inexact().widened)
    };
    for shape in SHAPES {
        for memory in [Memory::Global, Memory::Shared(0)] {
            for warps in [1, 2, 3, 8] {
                for sync in [false, true] {
                    for writer in [(0, 0), (0, 32 * 8), (1, 0)] {
                        let [together, each] =
                            [false, true].map(|apart| run(shape, apart, memory, warps, sync, writer));
                        assert_eq!(together, each, "{memory:?}, {warps} warps, sync {sync}, {writer:?}");
                        if writer == (1, 0) && memory != Memory::Global {
                            assert_eq!(together.0.is_empty(), sync, "nothing is written behind the last barrier");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_table_that_all_blocks_read_may_be_written_by_none() {
    let run = |writes: Option<(u32, u32)>| {
        let mut s = Script::new(40, 128);
        for turn in 0..2 {
            for block in 0..40 {
                for warp in 0..4 {
                    let lanes = Lanes { block, warp, mask: u32::MAX };
                    s.lanes_access(lanes, GLOBAL, &[DATA; LANES], 4, Kind::Read, Strength::Plain);
                }
            }
            if let Some(thread) = writes.filter(|_| turn == 1) {
                s.write(thread, DATA);
            }
        }
        (races(&s).is_some(), s.detector.inexact().widened)
    };
    assert_eq!(run(None), (false, 0));
    for thread in [(0, 0), (39, 127), (17, 64)] {
        assert_eq!(run(Some(thread)), (true, 0), "{thread:?}");
    }
}

#[test]
fn an_initialisation_is_not_hidden_by_atomics_that_follow_it() {
    let run = |sync: bool| {
        let mut s = Script::new(1, 64);
        s.write((0, 0), FLAG);
        s.strong((0, 0), FLAG, Kind::Atomic, RELAXED, Scope::Device);
        if sync {
            s.sync(0);
        }
        s.strong((0, 40), FLAG, Kind::Atomic, RELAXED, Scope::Device);
        races(&s).map(|race| race.0)
    };
    assert_eq!((run(false), run(true)), (Some(Certain), None));
}

#[test]
fn bytes_are_told_apart() {
    for shift in 0..4u32 {
        let size = 1 << shift;
        for first in 0..16 / size {
            for second in 0..16 / size {
                let mut s = Script::new(1, 64);
                // The cells begin large.
                s.access((0, 1), GLOBAL, DATA + 64, 16, Kind::Read, Strength::Plain);
                s.access((0, 0), GLOBAL, DATA + u64::from(first * size), size, Kind::Write, Strength::Plain);
                s.access((0, 40), GLOBAL, DATA + u64::from(second * size), size, Kind::Write, Strength::Plain);
                assert_eq!(races(&s).is_some(), first == second, "{size} bytes at {first} and {second}");
            }
        }
        for byte in 0..16 {
            let mut s = Script::new(1, 64);
            s.access((0, 0), GLOBAL, DATA, size, Kind::Write, Strength::Plain);
            s.access((0, 40), GLOBAL, DATA + byte, 1, Kind::Read, Strength::Plain);
            assert_eq!(races(&s).is_some(), byte < u64::from(size));
        }
    }
}

#[test]
fn same_values_are_benign_and_hide_nothing() {
    let mut s = Script::new(1, 64);
    s.write((0, 0), DATA);
    s.unchanged = true;
    s.write((0, 40), DATA);
    assert_eq!(races(&s).map(|race| race.0), Some(Benign));
    s.unchanged = false;
    s.read((0, 50), DATA);
    let grades: Vec<Grade> = s.races().iter().map(|race| race.grade).collect();
    assert_eq!(grades, [Certain, Benign, Benign]);
}

/// Which threads a wide access is of is forgotten: who knows some of them may know them all.
#[test]
fn a_race_with_many_threads_of_which_some_are_known_is_possible() {
    let run = |readers: u32, meet: bool| {
        let mut s = Script::new(1, 128);
        (0..readers).for_each(|thread| s.read((0, thread), DATA));
        if meet {
            let members: Vec<u32> = (0..readers).chain([100]).collect();
            s.barrier(1, 0, &members, &[]);
        }
        s.write((0, 100), DATA);
        races(&s).map(|race| race.0)
    };
    assert_eq!((run(40, true), run(40, false)), (None, Some(Certain)));
    assert_eq!((run(64, true), run(64, false)), (Some(Possible), Some(Certain)));
}

#[test]
fn memory_that_is_allocated_has_no_past() {
    let run = |bytes: u64| {
        let mut s = Script::new(2, 32);
        for at in (0..4096).step_by(4) {
            s.write((0, 0), DATA + at);
        }
        s.detector.allocated(DATA + 64, bytes);
        (64..64 + 2048).step_by(4).for_each(|at| s.write((1, 0), DATA + at));
        races(&s).is_some()
    };
    assert!(!run(2048) && !run(4000));
    assert!(run(2044) && run(1) && run(0));
}

/// A table that every thread reads costs no history for each, and a write to it is found.
#[test]
fn tables_that_all_read_are_kept_as_spans_of_blocks() {
    let mut s = Script::new(5_000, 64);
    for block in 0..5_000 {
        // All blocks execute the same instructions.
        s.site = 0;
        for warp in 0..2 {
            let lanes = Lanes { block, warp, mask: !0 };
            s.lanes_access(lanes, GLOBAL, &[DATA; LANES], 4, Kind::Read, Strength::Plain);
        }
    }
    assert!(s.detector.shadow_bytes() < 40_000, "{}", s.detector.shadow_bytes());
    assert_eq!(s.races(), []);
    assert_eq!(s.detector.inexact().widened, 0);
    s.write((17, 3), DATA);
    assert_eq!(races(&s).map(|race| race.0), Some(Certain));
}

/// The way to an atomic operation that the device lacks: read, compute, compare and swap.
#[test]
fn a_guess_in_front_of_a_compare_and_swap_is_checked_by_that() {
    let run = |swap: bool, compares: bool, kind: Kind| {
        let mut s = Script::new(2, 32);
        s.compares = compares;
        for thread in [(0, 0), (1, 0)] {
            s.read(thread, DATA);
            if swap {
                s.strong(thread, DATA, Kind::Atomic, RELAXED, Scope::Device);
            }
        }
        s.access((1, 1), GLOBAL, DATA, 4, kind, Strength::Strong(RELAXED, Scope::Device));
        s.races().iter().filter(|race| race.sides.iter().any(|side| side.site == 1)).map(|race| race.grade).max()
    };
    assert_eq!(run(true, true, Kind::Atomic), Some(Possible));
    // A guard, as in `if (x > *p) atomicMax(p, x)`: nothing checks what was read.
    assert_eq!(run(true, false, Kind::Atomic), Some(Likely));
    assert_eq!(run(false, false, Kind::Atomic), Some(Certain));
    assert_eq!(run(false, false, Kind::Write), Some(Certain));
}

/// All threads set one variable to one value and use it at once.
#[test]
fn a_thread_that_wrote_the_value_itself_reads_it_whoever_else_writes_it() {
    // Thread 0 writes; thread 70 perhaps another value; thread 40 what is there, or a value of its
    // own; then one of them reads.
    let run = |between: bool, same: bool, reader: u32| {
        let mut s = Script::new(1, 96);
        s.write((0, 0), DATA);
        if between {
            s.write((0, 70), DATA);
        }
        s.unchanged = same;
        s.write((0, 40), DATA);
        s.unchanged = false;
        s.read((0, reader), DATA);
        s.detector
            .races()
            .iter()
            .filter(|race| race.sides.iter().any(|side| side.kind == Kind::Read))
            .map(|race| race.grade)
            .max()
    };
    assert_eq!(run(false, true, 40), Some(Benign));
    assert_eq!(run(false, true, 41), Some(Certain), "it has written nothing");
    assert_eq!(run(true, true, 40), Some(Certain), "the first write may have left another value");
    assert_eq!(run(false, false, 40), Some(Certain), "it wrote another value");
    assert_eq!(run(false, true, 0), Some(Benign), "what it meets changes nothing");
}

/// Each block fills one table with the same values, meets at its barrier, and reads.
#[test]
fn a_block_that_wrote_the_value_reads_it_behind_its_barrier_whichever_block_else_writes_it() {
    let run = |between: bool, same: bool, synced: bool| {
        let mut s = Script::new(3, 96);
        s.write((0, 0), DATA);
        if between {
            s.write((2, 0), DATA);
        }
        s.unchanged = same;
        s.write((1, 40), DATA);
        s.unchanged = false;
        if synced {
            s.sync(1);
        }
        s.read((1, 70), DATA);
        let of_reads = |race: &&sim_races::Race| race.sides.iter().any(|side| side.kind == Kind::Read);
        s.detector.races().iter().filter(of_reads).map(|race| race.grade).max()
    };
    assert_eq!(run(false, true, true), Some(Benign));
    assert_eq!(run(false, true, false), Some(Certain), "its own block's write may come later");
    assert_eq!(run(true, true, true), Some(Certain), "the first write may have left another value");
    assert_eq!(run(false, false, true), Some(Certain), "its own block wrote another value");
}

/// Who draws the last number sets the counter back, and others of its block come behind that.
#[test]
fn what_a_thread_has_observed_stays_behind_it_when_its_own_access_is_covered() {
    let run = |synced: bool, reader: (u32, u32)| {
        let mut s = Script::new(3, 64);
        for block in 0..3 {
            s.strong((block, 0), FLAG, Kind::Atomic, RELAXED, Scope::Device);
        }
        s.write((2, 0), FLAG);
        if synced {
            s.sync(2);
        }
        s.read(reader, FLAG);
        races(&s).map(|race| race.0)
    };
    assert_eq!(run(true, (2, 40)), None);
    assert_eq!(run(false, (2, 40)), Some(Certain));
    assert_eq!(run(true, (1, 0)), Some(Certain));
}

/// A read of a half observes what it reads, too.
#[test]
fn an_observer_counts_behind_one_of_another_size() {
    let run = |observes: bool| {
        let mut s = Script::new(2, 64);
        s.strong((0, 0), FLAG, Kind::Write, RELAXED, Scope::Device);
        if observes {
            s.strong((1, 0), FLAG, Kind::Read, RELAXED, Scope::Device);
        }
        let half = Strength::Strong(RELAXED, Scope::Device);
        s.access((1, 0), GLOBAL, FLAG, 2, Kind::Atomic, half);
        s.write((1, 0), FLAG);
        let of_first = |race: &&sim_races::Race| race.sides.iter().any(|side| side.site == 1);
        s.races().iter().filter(of_first).map(|race| race.grade).max()
    };
    assert_eq!((run(true), run(false)), (None, Some(Certain)));
}

/// All lanes of a warp write it by one instruction, so that each has written what it reads.
#[test]
fn a_warp_that_wrote_the_value_reads_it_whichever_warp_else_writes_it() {
    let run = |same: bool, readers: u32| {
        let mut s = Script::new(1, 96);
        let of = |warp: u32, mask: u32| Lanes { block: 0, warp, mask };
        let at = [DATA; LANES];
        s.lanes_access(of(0, !0), GLOBAL, &at, 8, Kind::Write, Strength::Plain);
        s.unchanged = same;
        s.lanes_access(of(1, 0xffff), GLOBAL, &at, 8, Kind::Write, Strength::Plain);
        s.unchanged = false;
        s.lanes_access(of(1, readers), GLOBAL, &at, 8, Kind::Read, Strength::Plain);
        let read = s.site;
        let of_reads = |race: &&sim_races::Race| race.sides.iter().any(|side| side.site == read);
        s.races().iter().filter(of_reads).map(|race| race.grade).max()
    };
    assert!(run(true, 0xffff) < Some(Certain));
    assert_eq!(run(true, !0), Some(Certain), "some of them have written nothing");
    assert_eq!(run(false, 0xffff), Some(Certain), "it wrote another value");
}
