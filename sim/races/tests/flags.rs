//! Counters and flags: what strong accesses say of each other without an acquire, and `volatile`
//! data that are neither.

use sim_races::{Grade, Kind, Scope, Strength};

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
