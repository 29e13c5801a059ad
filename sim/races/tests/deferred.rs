//! Reads that are put off until something else accesses their page: they race as if they had gone
//! to the histories at once, and take little room before.

use sim_races::{Grade, Kind, LANES, Lanes, MemoryEvents, Strength};

use crate::script::{GLOBAL, Script};
use crate::twins::{DATA, races};

/// The start of a region of 64 KiB.
const REGION: u64 = 0x70_0000;

fn read(s: &mut Script, (block, warp): (u32, u32), mask: u32, address: impl Fn(u64) -> u64) {
    let addresses: [u64; LANES] = std::array::from_fn(|lane| address(lane as u64));
    s.lanes_access(Lanes { block, warp, mask }, GLOBAL, &addresses, 4, Kind::Read, Strength::Plain);
}

#[test]
fn a_write_meets_exactly_the_words_that_were_read() {
    let shapes: [fn(u64) -> u64; 6] = [
        |lane| REGION + lane * 4,
        |lane| REGION + lane * 132,
        |lane| REGION - 64 + lane * 4,
        |lane| REGION + lane % 16 * 8 + lane / 16 * 4096,
        |lane| REGION - 2048 + lane * lane * 4,
        |lane| REGION + lane * 65_536,
    ];
    for address in shapes {
        for mask in [!0, 0x00ff_0f01] {
            let words: Vec<u64> = (0..32).filter(|lane| mask >> lane & 1 != 0).map(address).collect();
            for at in words.iter().flat_map(|word| [*word, word + 4, word - 4]) {
                for block in [0, 1] {
                    let mut s = Script::new(2, 64);
                    read(&mut s, (0, 0), mask, address);
                    // In the same block a barrier is between.
                    s.sync(0);
                    s.write((block, 40), at);
                    let wanted = block == 1 && words.contains(&at);
                    assert_eq!(races(&s).is_some(), wanted, "{at:#x}, block {block}, lanes {mask:#x}");
                }
            }
        }
    }
}

#[test]
fn reads_of_all_blocks_are_one_in_whatever_order_they_come() {
    for step in [1, 7, 199] {
        let mut s = Script::new(200, 64);
        for turn in 0..200 {
            let block = turn * step % 200;
            s.site = 0;
            for warp in 0..2 {
                read(&mut s, (block, warp), !0, |lane| REGION + lane * 4);
                read(&mut s, (block, warp), !0, |lane| REGION + lane * 7 % 32 * 4);
                read(&mut s, (block, warp), !0, |lane| REGION + lane * lane % 11 * 4);
            }
        }
        assert!(s.detector.shadow_bytes() < 12_000, "{} bytes", s.detector.shadow_bytes());
        assert_eq!(s.races(), []);
        s.write((23, 5), REGION + 32);
        assert_eq!(races(&s).map(|race| race.0), Some(Grade::Certain));
    }
}

#[test]
fn what_has_no_room_goes_to_the_histories() {
    let mut s = Script::new(2, 1024);
    for turn in 0..600u64 {
        for warp in 0..32 {
            read(&mut s, (0, warp), !0, |lane| REGION + (lane * lane * 28 + turn * 132 + u64::from(warp) * 4) % 4096);
        }
        s.site = 0;
    }
    assert_eq!(s.races(), []);
    s.sync(0);
    s.write((0, 3), REGION + 128);
    assert_eq!(s.races(), []);
    s.write((1, 3), REGION + 256);
    assert_eq!(races(&s).map(|race| race.0), Some(Grade::Certain));
}

#[test]
fn new_memory_forgets_what_was_put_off() {
    let run = |start: u64, bytes: u64| {
        let mut s = Script::new(2, 32);
        read(&mut s, (0, 0), !0, |lane| DATA + lane * 4);
        read(&mut s, (0, 0), !0, |lane| DATA + 70_000 + lane * 4);
        s.detector.allocated(DATA + start, bytes);
        (0..32).for_each(|lane| s.write((1, 0), DATA + lane * 4));
        s.write((1, 0), DATA + 70_000);
        races(&s).is_some()
    };
    assert!(!run(0, 80_000));
    assert!(run(4, 80_000) && run(0, 70_000) && run(0, 0));
}
