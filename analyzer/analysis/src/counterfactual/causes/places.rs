//! Where the ops of groups of sites stand in the order of submission, and which waits lie between
//! the two ops of a race.
//!
//! Owns the look-ups by place, whose work grows with what lies between two ops, not with the run.
//! It knows positions and streams only: what else orders two ops is found out by trying
//! ([`super::search`]).

use rustc_hash::FxHashMap;
use trace::StreamId;

/// A number for sites that are one line of the program.
pub(crate) type Group = usize;

/// One occurrence of a race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Occurrence {
    /// Which pair of sites.
    pub(crate) pair: usize,
    /// The earlier op: its group, its place in the order of submission, its stream.
    pub(crate) first: (Group, u64, StreamId),
    /// The later op.
    pub(crate) then: (Group, u64, StreamId),
}

/// Where the ops of each group stand: ascending numbers, by stream.
pub(crate) type Positions = FxHashMap<(Group, StreamId), Vec<u64>>;

/// The ops of some groups on one stream.
#[derive(Default)]
struct Line {
    /// Numbers and groups, ascending.
    ops: Vec<(u64, Group)>,
    groups: Vec<Group>,
}

/// The ops of some groups, by stream.
pub(crate) struct Lines<'a> {
    positions: &'a Positions,
    lines: FxHashMap<StreamId, Line>,
    /// Of each group, the look-up that met it last.
    met: FxHashMap<Group, u64>,
    look_ups: u64,
    /// Ops and groups that were looked at.
    pub(crate) work: u64,
}

impl<'a> Lines<'a> {
    /// The ops of these groups.
    pub(crate) fn of(positions: &'a Positions, is_wanted: impl Fn(Group) -> bool) -> Self {
        let mut lines: FxHashMap<StreamId, Line> = FxHashMap::default();
        for ((group, stream), at) in positions.iter().filter(|((group, _), _)| is_wanted(*group)) {
            let line = lines.entry(*stream).or_default();
            line.groups.push(*group);
            line.ops.extend(at.iter().map(|at| (*at, *group)));
        }
        lines.values_mut().for_each(|line| line.ops.sort_unstable());
        Self { positions, lines, met: FxHashMap::default(), look_ups: 0, work: 0 }
    }

    fn numbers(&self, group: Group, stream: StreamId) -> &'a [u64] {
        self.positions.get(&(group, stream)).map_or(&[][..], Vec::as_slice)
    }

    /// The last op before `to` on a stream.
    pub(crate) fn last_before(&self, stream: StreamId, to: u64) -> Option<(u64, Group)> {
        let ops = &self.lines.get(&stream)?.ops;
        ops[..ops.partition_point(|(at, _)| *at < to)].last().copied()
    }

    /// Of each group its first op on a stream from `from` on and before `to`.
    pub(crate) fn firsts(&mut self, stream: StreamId, from: u64, to: u64, found: &mut Vec<(u64, Group)>) {
        self.each(stream, (from, to), false, found);
    }

    /// Of each group its last op on a stream behind `from` and up to `to`.
    pub(crate) fn lasts(&mut self, stream: StreamId, from: u64, to: u64, found: &mut Vec<(u64, Group)>) {
        self.each(stream, (from + 1, to + 1), true, found);
    }

    fn each(&mut self, stream: StreamId, (from, to): (u64, u64), last: bool, found: &mut Vec<(u64, Group)>) {
        found.clear();
        let Some(line) = self.lines.get(&stream) else { return };
        let place = |number: u64| line.ops.partition_point(|(at, _)| *at < number);
        let (begin, end) = (place(from), place(to));
        if begin >= end {
            return;
        }
        self.work += (end - begin).min(line.groups.len()) as u64;
        if line.groups.len() < end - begin {
            for group in &line.groups {
                let at = self.numbers(*group, stream);
                let number = match last {
                    false => at.get(at.partition_point(|at| *at < from)),
                    true => at[..at.partition_point(|at| *at < to)].last(),
                };
                found.extend(number.filter(|at| (from..to).contains(at)).map(|at| (*at, *group)));
            }
            return;
        }
        self.look_ups += 1;
        let (met, look_up) = (&mut self.met, self.look_ups);
        let mut is_new = |group: Group| met.insert(group, look_up) != Some(look_up);
        let between = line.ops[begin..end].iter();
        match last {
            false => found.extend(between.filter(|(_, group)| is_new(*group))),
            true => found.extend(between.rev().filter(|(_, group)| is_new(*group))),
        }
    }
}

/// Whether what is submitted at `wait.1`, waiting for what was submitted at `wait.0`, comes between
/// the two ops of a race.
#[cfg(test)]
pub(crate) fn orders(wait: (Group, Group), race: &Occurrence, positions: &Positions) -> bool {
    if wait == (race.first.0, race.then.0) {
        return true;
    }
    let of = |group, stream| positions.get(&(group, stream)).map_or(&[][..], Vec::as_slice);
    let records = of(wait.0, race.first.2);
    let Some(record) = records.get(records.partition_point(|at| *at < race.first.1)) else { return false };
    let waits = of(wait.1, race.then.2);
    waits.get(waits.partition_point(|at| at <= record)).is_some_and(|at| *at <= race.then.1)
}

/// For each race, those of the waits that come between its two ops, ascending. A wait between the
/// places of the race itself always does.
pub(crate) fn ordered_by(waits: &[(Group, Group)], races: &[Occurrence], positions: &Positions) -> Vec<Vec<u32>> {
    let mut after: FxHashMap<Group, Vec<(u32, Group)>> = FxHashMap::default();
    let mut before: FxHashMap<Group, ()> = FxHashMap::default();
    for (index, (first, then)) in (0_u32..).zip(waits) {
        after.entry(*first).or_default().push((index, *then));
        before.insert(*then, ());
    }
    let mut records = Lines::of(positions, |group| after.contains_key(&group));
    let mut ends = Lines::of(positions, |group| before.contains_key(&group));
    let (mut firsts, mut lasts) = (Vec::new(), Vec::new());
    let of = |race: &Occurrence| {
        let ((from, start, on), (to, end, waiting)) = (race.first, race.then);
        records.firsts(on, start, end, &mut firsts);
        ends.lasts(waiting, start, end, &mut lasts);
        let last: FxHashMap<Group, u64> = lasts.iter().map(|(at, group)| (*group, *at)).collect();
        let mut found: Vec<u32> = Vec::new();
        for (record, group) in &firsts {
            let waits = after.get(group).into_iter().flatten();
            found
                .extend(waits.filter(|(_, then)| last.get(then).is_some_and(|at| at > record)).map(|(index, _)| index));
        }
        found.extend(after.get(&from).into_iter().flatten().filter(|(_, then)| *then == to).map(|(index, _)| index));
        found.sort_unstable();
        found.dedup();
        found
    };
    races.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counterfactual::causes::cover::made;

    #[test]
    fn a_wait_orders_only_what_lies_around_it() {
        const A: StreamId = StreamId(1);
        const B: StreamId = StreamId(2);
        let places: Positions = [((0, A), vec![1, 5]), ((1, B), vec![3, 7])].into_iter().collect();
        let race = |first: (Group, u64), then: (Group, u64)| Occurrence {
            pair: 0,
            first: (first.0, first.1, A),
            then: (then.0, then.1, B),
        };
        let orders = |wait, race: Occurrence| !ordered_by(&[wait], &[race], &places)[0].is_empty();
        assert!(orders((0, 1), race((2, 1), (3, 3))));
        assert!(!orders((0, 1), race((2, 2), (3, 3))), "the record comes too late");
        assert!(!orders((0, 1), race((2, 5), (3, 6))), "the wait comes too late");
        assert!(orders((2, 3), race((2, 5), (3, 6))), "its own places");
    }

    #[test]
    fn looking_around_a_race_finds_the_waits_that_a_look_at_each_finds() {
        for seed in 0..300 {
            let (races, places) = made::races(seed);
            let mut waits: Vec<(Group, Group)> = places
                .keys()
                .flat_map(|(first, _)| places.keys().map(|(then, _)| (*first, *then)))
                .filter(|(first, then)| first != then)
                .collect();
            waits.sort_unstable();
            waits.dedup();
            for (race, by) in races.iter().zip(ordered_by(&waits, &races, &places)) {
                let all = (0_u32..).zip(&waits).filter(|(_, wait)| orders(**wait, race, &places));
                assert_eq!(by, all.map(|(index, _)| index).collect::<Vec<_>>(), "{race:?} of {places:?}");
            }
        }
    }
}
