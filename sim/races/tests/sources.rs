//! Sources of asynchronous copies: until its thread has waited, a copy may still read. Each race
//! has a mended twin.

use sim_races::{Grade, Kind, Meeting, Remedy, Strength};

use crate::script::{GLOBAL, Script, Thread};

const SOURCE: u64 = 0x1000;
const MINE: Thread = (0, 0);

/// The surest race of a program in which a thread begins to copy a word of global memory.
fn found(program: impl FnOnce(&mut Script)) -> Option<(Grade, Remedy)> {
    let mut s = Script::new(2, 64);
    s.copy_from(MINE, SOURCE);
    s.commit(MINE);
    program(&mut s);
    s.surest()
}

fn write(s: &mut Script, thread: Thread, at: u64) {
    s.access(thread, GLOBAL, at, 4, Kind::Write, Strength::Plain);
}

const RACE: Option<(Grade, Remedy)> = Some((Grade::Certain, Remedy::AwaitCopy));

#[test]
fn the_thread_itself_waits_before_it_overwrites() {
    assert_eq!(found(|s| write(s, MINE, SOURCE)), RACE);
    for pending in [Some(0), None] {
        let mended = found(|s| {
            s.wait(MINE, pending);
            write(s, MINE, SOURCE);
        });
        assert_eq!(mended, None);
    }
    // The last byte of the word is enough, the next word is not.
    let byte = |at: u64| found(|s| s.access(MINE, GLOBAL, at, 1, Kind::Write, Strength::Plain));
    assert_eq!(byte(SOURCE + 3), RACE);
    assert_eq!((byte(SOURCE + 4), byte(SOURCE - 1)), (None, None));
}

#[test]
fn a_wait_for_an_older_group_is_none_for_this_one() {
    let run = |pending| {
        let mut s = Script::new(1, 64);
        s.copy_from(MINE, SOURCE - 4);
        s.commit(MINE);
        s.copy_from(MINE, SOURCE);
        s.commit(MINE);
        s.wait(MINE, Some(pending));
        write(&mut s, MINE, SOURCE - 4);
        assert_eq!(s.surest(), None, "the older one is done");
        write(&mut s, MINE, SOURCE);
        s.surest()
    };
    assert_eq!((run(1), run(0)), (RACE, None));
    // What is in no group is awaited with all copies only.
    let open = |pending| {
        let mut s = Script::new(1, 64);
        s.copy_from(MINE, SOURCE);
        s.wait(MINE, pending);
        write(&mut s, MINE, SOURCE);
        s.surest()
    };
    assert_eq!((open(Some(0)), open(None)), (RACE, None));
}

#[test]
fn others_need_the_wait_and_then_a_barrier() {
    let other = (0, 40);
    let early = |s: &mut Script| {
        s.sync(0);
        write(s, other, SOURCE);
        s.wait(MINE, None);
    };
    assert_eq!(found(early), RACE);
    // In another order of execution the same program has the same race.
    let late = |s: &mut Script| {
        s.sync(0);
        s.wait(MINE, None);
        write(s, other, SOURCE);
    };
    assert_eq!(found(late).map(|(grade, _)| grade), Some(Grade::Certain));
    let mended = |s: &mut Script| {
        s.wait(MINE, None);
        s.sync(0);
        write(s, other, SOURCE);
    };
    assert_eq!(found(mended), None);
    // Nobody waits for others' copies.
    let stranger = |s: &mut Script| {
        s.wait(other, None);
        s.sync(0);
        write(s, other, SOURCE);
    };
    assert_eq!(found(stranger), RACE);
}

#[test]
fn other_blocks_need_more_than_that() {
    let run = |waits: bool, meets: bool| {
        let mut s = Script::new(2, 32);
        s.copy_from(MINE, SOURCE);
        if waits {
            s.wait(MINE, None);
        }
        if meets {
            let all: Vec<Thread> = (0..2).flat_map(|block| (0..32).map(move |thread| (block, thread))).collect();
            all.iter().for_each(|&thread| s.arrive(Meeting::Grid, thread, true));
            all.iter().for_each(|&thread| s.pass(Meeting::Grid, thread));
        }
        write(&mut s, (1, 3), SOURCE);
        s.surest().map(|(grade, _)| grade)
    };
    let certain = Some(Grade::Certain);
    assert_eq!([run(false, true), run(true, false), run(true, true)], [certain, certain, None]);
}

#[test]
fn what_overwrites_nothing_is_silent() {
    // Reads, and other copies of the same word.
    let reads = |s: &mut Script| {
        s.access((0, 40), GLOBAL, SOURCE, 4, Kind::Read, Strength::Plain);
        s.access(MINE, GLOBAL, SOURCE, 4, Kind::Read, Strength::Plain);
        s.copy_from((0, 40), SOURCE);
        s.copy_from((1, 0), SOURCE);
    };
    assert_eq!(found(reads), None);
    // What the thread has written before it copies.
    let mut s = Script::new(1, 64);
    write(&mut s, MINE, SOURCE);
    s.copy_from(MINE, SOURCE);
    s.wait(MINE, None);
    assert_eq!(s.surest(), None);
    // Shared memory at that address is another memory.
    assert_eq!(found(|s| s.shared(MINE, 0, SOURCE, Kind::Write)), None);
    // Its object learns of the end.
    let object = |s: &mut Script| {
        s.copies_arrive(MINE, 128);
        write(s, MINE, SOURCE);
    };
    assert_eq!(found(object), None);
}

#[test]
fn a_race_is_told_once() {
    let mut s = Script::new(1, 64);
    s.copy_from(MINE, SOURCE);
    s.commit(MINE);
    s.sync(0);
    write(&mut s, (0, 40), SOURCE);
    s.wait(MINE, None);
    let races = s.races();
    assert_eq!(races.len(), 1, "{races:?}");
    assert_eq!(races[0].count, 1);
    assert!(races[0].sides.iter().any(|side| side.asynchronous && side.kind == Kind::Read));
}
