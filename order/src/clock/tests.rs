//! Clocks: joins, floors, and the base that clocks of one lineage share.

use super::*;

const NOTHING: FloorRef<'static> = FloorRef { times: &[], all_before: 0, version: 0, now: 1 };

fn e(slot: u32, time: u64) -> Entry {
    Entry { slot, time }
}

#[test]
fn spills_and_still_answers() {
    let mut c = Clock::default();
    for i in (1..100).rev() {
        c.raise(e(i, u64::from(i) * 10), 50, NOTHING);
    }
    for i in 1..100 {
        assert_eq!(c.get(i), if i == 50 { 0 } else { u64::from(i) * 10 });
    }
    c.raise(e(7, 3), 50, NOTHING);
    assert_eq!(c.get(7), 70, "a clock never forgets");
    c.raise(e(7, 300), 50, NOTHING);
    assert_eq!(c.get(7), 300);
}

#[test]
fn join_is_the_maximum() {
    let (mut a, mut b) = (Clock::default(), Clock::default());
    for i in 1..40 {
        a.raise(e(i, 100 + u64::from(i % 2) * 50), 1000, FloorRef { now: 5, ..NOTHING });
        b.raise(e(i + 20, 120), 1001, FloorRef { now: 6, ..NOTHING });
    }
    let mut j = a.clone();
    j.join(&b, 1002, FloorRef { now: 7, ..NOTHING });
    for i in 1..70 {
        assert_eq!(j.get(i), a.get(i).max(b.get(i)), "slot {i}");
    }
}

#[test]
fn an_adopted_base_replaces_older_inline_entries() {
    let mut big = Clock::default();
    for i in 1..40 {
        big.raise(e(i, 20), 100, NOTHING);
    }
    let mut c = Clock::default();
    c.raise(e(3, 10), 101, NOTHING);
    c.raise(e(4, 30), 101, NOTHING);
    c.join(&big, 101, NOTHING);
    assert_eq!((c.get(3), c.get(4), c.get(5)), (20, 30, 20));
}

#[test]
fn clocks_of_no_timeline_have_no_lineage() {
    let of = |from: u32, now| {
        let mut c = Clock::default();
        let mut many: Vec<_> = (from..from + 20).map(|i| e(i, 5)).collect();
        c.raise_many(&mut many, NO_LINEAGE, FloorRef { now, ..NOTHING });
        c
    };
    let mut c = of(1, 3);
    c.join(&of(30, 4), 200, FloorRef { now: 5, ..NOTHING });
    assert_eq!((c.get(1), c.get(30)), (5, 5));
}

#[test]
fn floor_entries_are_dropped() {
    let times = vec![10; 64];
    let floor = FloorRef { times: &times, all_before: 0, version: 1, now: 9 };
    let mut c = Clock::default();
    let mut many: Vec<_> = (1..40).map(|i| e(i, if i % 4 == 0 { 11 } else { 9 })).collect();
    c.raise_many(&mut many, 0, floor);
    assert_eq!(c.entries().count(), 9);
    assert_eq!((c.get(4), c.get(5)), (11, 0));
    let later = FloorRef { all_before: 10, times: &[20; 64], version: 2, now: 11 };
    let mut d = Clock::default();
    d.join(&c, 0, later);
    assert!(d.is_empty(), "what everybody knows is not carried on");
}

#[test]
fn meet_is_the_minimum() {
    let (mut a, mut b) = (Clock::default(), Clock::default());
    a.raise(e(1, 5), 9, NOTHING);
    a.raise(e(2, 7), 9, NOTHING);
    b.raise(e(2, 6), 8, NOTHING);
    b.raise(e(3, 1), 8, NOTHING);
    let m = a.meet(|s| b.get(s), 0, NOTHING);
    assert_eq!((m.get(1), m.get(2), m.get(3)), (0, 6, 0));
}
