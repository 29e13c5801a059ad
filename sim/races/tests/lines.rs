//! Rows of words that whole warps access: what is kept of a warp as one finds the same races as
//! what is kept of each lane.

use sim_races::{Grade, Kind, LANES, Lanes, MemoryEvents, Scope, Strength};

use crate::script::{GLOBAL, RELAXED, Script};
use crate::twins::{DATA, races};
use Grade::Certain;

/// A warp accesses a row of words, which begins at that word, with some lanes.
fn row(s: &mut Script, (block, warp): (u32, u32), mask: u32, word: u64, kind: Kind) {
    let addresses: [u64; LANES] = std::array::from_fn(|lane| DATA + (word + lane as u64) * 4);
    let strength = match kind {
        Kind::Atomic => Strength::Strong(RELAXED, Scope::Device),
        _ => Strength::Plain,
    };
    s.lanes_access(Lanes { block, warp, mask }, GLOBAL, &addresses, 4, kind, strength);
}

#[test]
fn rows_race_where_they_overlap_and_no_barrier_is_between() {
    for (first, second) in [(0, 0), (0, 5), (31, 0), (0, 32), (7, 40), (60, 30), (100, 68)] {
        for masks in [(!0, !0), (0x0000_ffff, 0xffff_0000), (0x1111_1111, 0x2222_2222), (!0, 1)] {
            for kinds in [(Kind::Write, Kind::Read), (Kind::Read, Kind::Write), (Kind::Read, Kind::Read)] {
                let run = |sync: bool| {
                    let mut s = Script::new(1, 64);
                    row(&mut s, (0, 0), masks.0, first, kinds.0);
                    if sync {
                        s.sync(0);
                    }
                    row(&mut s, (0, 1), masks.1, second, kinds.1);
                    races(&s).is_some()
                };
                let words =
                    |mask: u32, start: u64| (0..32).filter(move |lane| mask >> lane & 1 != 0).map(move |l| start + l);
                let meet = words(masks.0, first).any(|word| words(masks.1, second).any(|other| other == word));
                let conflict = kinds != (Kind::Read, Kind::Read);
                assert_eq!(run(false), meet && conflict, "rows at {first} and {second}, {masks:x?}, {kinds:?}");
                assert!(!run(true));
            }
        }
    }
}

#[test]
fn a_word_or_a_byte_of_a_row_is_told_apart() {
    let run = |size: u32, at: u64, sync: bool| {
        let mut s = Script::new(1, 64);
        row(&mut s, (0, 0), 0x00ff_ff00, 3, Kind::Write);
        if sync {
            s.sync(0);
        }
        s.access((0, 40), GLOBAL, DATA + at, size, Kind::Read, Strength::Plain);
        races(&s).is_some()
    };
    let (first, end) = (11 * 4, 27 * 4);
    for size in [1, 2, 4, 8, 16] {
        for at in (0..160).step_by(size as usize) {
            let meets = at + u64::from(size) > first && at < end;
            assert_eq!((run(size, at, false), run(size, at, true)), (meets, false), "{size} bytes at {at}");
        }
    }
}

#[test]
fn a_thread_that_accesses_the_word_of_another_lane_races_with_it() {
    // The second row is moved against the first one: other lanes are at each word.
    let run = |moved: u64, meets: bool| {
        let mut s = Script::new(1, 32);
        row(&mut s, (0, 0), !0, 0, Kind::Write);
        if meets {
            s.warp_sync(0, 0, !0);
        }
        row(&mut s, (0, 0), !0, moved, Kind::Read);
        races(&s).is_some()
    };
    assert_eq!([run(0, false), run(1, false), run(31, false), run(32, false)], [false, true, true, false]);
    assert!(![0, 1, 31].into_iter().any(|moved| run(moved, true)));
}

#[test]
fn atomics_of_rows_race_with_plain_accesses_only() {
    let run = |kind: Kind, sync: bool, block: u32| {
        let mut s = Script::new(2, 64);
        for warp in [0, 1] {
            row(&mut s, (0, warp), !0, 0, Kind::Atomic);
        }
        if sync {
            s.sync(0);
        }
        row(&mut s, (block, 0), !0, 16, kind);
        races(&s).is_some()
    };
    for sync in [false, true] {
        assert!(!run(Kind::Atomic, sync, 0) && !run(Kind::Atomic, sync, 1));
        assert!(run(Kind::Read, sync, 1) && run(Kind::Write, sync, 1), "a barrier of one block only");
    }
    assert_eq!((run(Kind::Read, false, 0), run(Kind::Read, true, 0)), (true, false));
    assert_eq!((run(Kind::Write, false, 0), run(Kind::Write, true, 0)), (true, false));
}

#[test]
fn new_memory_has_no_rows_of_before() {
    let run = |start: u64, bytes: u64| {
        let mut s = Script::new(2, 32);
        (0..64).for_each(|at| row(&mut s, (0, 0), !0, at * 32, Kind::Write));
        s.detector.allocated(DATA + start, bytes);
        (0..64).for_each(|at| row(&mut s, (1, 0), !0, at * 32, Kind::Read));
        races(&s).is_some()
    };
    assert!(!run(0, 8192));
    assert!(run(4, 8188) && run(0, 8188) && run(0, 0));
}

/// A barrier lets go of what is behind it, and rows cost less than four times what they are of.
#[test]
fn rows_take_little_memory() {
    let mut s = Script::new(1, 256);
    for _ in 0..20 {
        for warp in 0..8 {
            for at in 0..16 {
                row(&mut s, (0, warp), !0, u64::from(warp) * 512 + at * 32, Kind::Read);
                row(&mut s, (0, warp), !0, u64::from(warp) * 512 + at * 32, Kind::Write);
            }
        }
        s.sync(0);
    }
    assert_eq!(s.races(), []);
    let touched = 8 * 512 * 4;
    assert!(s.detector.shadow_bytes() <= 4 * touched, "{} bytes for {touched}", s.detector.shadow_bytes());
}

/// Rows that many blocks read are kept as those of whole blocks, whatever the epochs.
#[test]
fn a_write_to_a_row_that_all_blocks_read_is_found() {
    let run = |writer: Option<(u32, u32)>, syncs: bool| {
        let mut s = Script::new(40, 128);
        for block in 0..40 {
            // All blocks execute the same instructions.
            s.site = 0;
            if syncs {
                (0..block / 20).for_each(|_| s.sync(block));
            }
            for warp in 0..4 {
                for moved in [0, 8, 0] {
                    row(&mut s, (block, warp), !0, moved, Kind::Read);
                }
                row(&mut s, (block, warp), 0xf0f0, 5, Kind::Read);
            }
        }
        if let Some(thread) = writer {
            s.write(thread, DATA + 12 * 4);
        }
        (races(&s).map(|race| race.0), s.detector.inexact().widened, s.detector.shadow_bytes())
    };
    for syncs in [false, true] {
        let (found, widened, bytes) = run(None, syncs);
        assert_eq!((found, widened), (None, 0));
        assert!(bytes < 40_000, "{bytes} bytes");
        for writer in [(0, 0), (39, 127), (17, 64)] {
            assert_eq!(run(Some(writer), syncs).0, Some(Certain), "{writer:?}");
        }
    }
}
