//! The few waits that order many races, by where the ops stand in the order of submission.
//!
//! Owns the choice, and the bound on what is compared for it. Where ops stand is
//! [`super::places`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rustc_hash::{FxHashMap, FxHashSet};
use trace::StreamId;

use super::places::{Group, Lines, Occurrence, Positions};

/// Most waits that are weighed, counted for each race. Beyond, [`stab`] chooses, which sorts once.
const MOST_WEIGHED: u64 = 4 << 20;

/// Waits that order all of these races: each time the one that orders most pairs of sites that were
/// not ordered before. `weighed` grows by the work done.
pub(crate) fn cover(races: &[Occurrence], positions: &Positions, weighed: &mut u64) -> Vec<(Group, Group)> {
    let own: FxHashSet<(Group, Group)> = races.iter().map(|r| (r.first.0, r.then.0)).collect();
    let Some((candidates, by)) = candidates(races, positions, weighed) else {
        return stab(races, positions, weighed);
    };
    let mut sizes: FxHashMap<Group, usize> = FxHashMap::default();
    positions.iter().for_each(|((group, _), at)| *sizes.entry(*group).or_default() += at.len());
    let size = |(_, then): &(Group, Group)| sizes.get(then).copied().unwrap_or_default();
    let fixed: Vec<_> = candidates.iter().map(|wait| (own.contains(wait), Reverse(size(wait)))).collect();
    let mut orders: Vec<Vec<u32>> = vec![Vec::new(); candidates.len()];
    for (race, by) in (0_u32..).zip(&by) {
        by.iter().for_each(|at| orders[*at as usize].push(race));
    }
    let mut counts = Counts::of(candidates.len(), races, &by);
    let worth = |counts: &Counts, at: usize| (counts.whole[at], counts.few[at], fixed[at]);
    // Holds the present worth of each candidate, and older ones of some.
    let mut best: BinaryHeap<_> = (0..candidates.len()).map(|at| (worth(&counts, at), at)).collect();
    let mut open: Vec<bool> = vec![true; races.len()];
    let mut chosen = Vec::new();
    while counts.left > 0 {
        let Some((was, at)) = best.pop() else { break };
        if was != worth(&counts, at) {
            continue;
        }
        if counts.few[at] == 0 {
            break;
        }
        chosen.push(candidates[at]);
        let mut changed: Vec<u32> = Vec::new();
        for race in &orders[at] {
            let race = *race as usize;
            if std::mem::take(&mut open[race]) {
                counts.close(races[race].pair, &by[race], &mut changed);
            }
        }
        *weighed += changed.len() as u64;
        changed.sort_unstable();
        changed.dedup();
        best.extend(changed.into_iter().map(|at| (worth(&counts, at as usize), at as usize)));
    }
    chosen
}

/// The waits between groups of the races that order any of them, ascending, and for each race those
/// that order it. `None`: these are too many.
#[expect(clippy::type_complexity, reason = "both are local to this file")]
fn candidates(
    races: &[Occurrence],
    positions: &Positions,
    weighed: &mut u64,
) -> Option<(Vec<(Group, Group)>, Vec<Vec<u32>>)> {
    let firsts: FxHashSet<Group> = races.iter().map(|race| race.first.0).collect();
    let thens: FxHashSet<Group> = races.iter().map(|race| race.then.0).collect();
    let mut records = Lines::of(positions, |group| firsts.contains(&group));
    let mut ends = Lines::of(positions, |group| thens.contains(&group));
    let (mut from, mut to) = (Vec::new(), Vec::new());
    let mut numbers: FxHashMap<(Group, Group), u32> = FxHashMap::default();
    let mut list: Vec<(Group, Group)> = Vec::new();
    let mut by: Vec<Vec<u32>> = Vec::with_capacity(races.len());
    let mut number = |wait: (Group, Group)| {
        *numbers.entry(wait).or_insert_with(|| {
            list.push(wait);
            list.len() as u32 - 1
        })
    };
    let before = *weighed;
    for race in races {
        let ((first, start, on), (then, end, waiting)) = (race.first, race.then);
        records.firsts(on, start, end, &mut from);
        ends.lasts(waiting, start, end, &mut to);
        *weighed = before + records.work + ends.work;
        let mut these = vec![number((first, then))];
        for (record, group) in &from {
            let behind = to.iter().filter(|(at, _)| at > record);
            these.extend(behind.map(|(_, other)| number((*group, *other))));
        }
        these.sort_unstable();
        these.dedup();
        // What is looked at beside.
        records.work += (from.len() * to.len()) as u64;
        if *weighed + records.work > before + MOST_WEIGHED {
            return None;
        }
        by.push(these);
    }
    // The numbers in the order of the waits.
    let mut order: Vec<u32> = (0..list.len() as u32).collect();
    order.sort_unstable_by_key(|at| list[*at as usize]);
    let mut renumbered = vec![0_u32; list.len()];
    (0_u32..).zip(&order).for_each(|(new, old)| renumbered[*old as usize] = new);
    for these in &mut by {
        these.iter_mut().for_each(|at| *at = renumbered[*at as usize]);
        these.sort_unstable();
    }
    list.sort_unstable();
    Some((list, by))
}

/// Waits that order all of these races, chosen as points that stab intervals: of the races that are
/// not ordered yet the one that ends first gets the latest wait before its end. That is the least
/// where each group has one op on each stream; otherwise more waits may be chosen than might do.
fn stab(races: &[Occurrence], positions: &Positions, weighed: &mut u64) -> Vec<(Group, Group)> {
    let firsts: FxHashSet<Group> = races.iter().map(|race| race.first.0).collect();
    let records = Lines::of(positions, |group| firsts.contains(&group));
    let of = |group, stream| positions.get(&(group, stream)).map_or(&[][..], Vec::as_slice);
    let mut between: BTreeMap<(StreamId, StreamId), Vec<&Occurrence>> = BTreeMap::new();
    for race in races {
        between.entry((race.first.2, race.then.2)).or_default().push(race);
    }
    let (mut chosen, mut known) = (Vec::new(), FxHashSet::default());
    for ((on, waiting), mut races) in between {
        races.sort_unstable_by_key(|race| (race.then.1, race.first.1, race.pair));
        *weighed += races.len() as u64;
        // Waits that come up later, and the latest record that an earlier one waits for.
        let (mut later, mut latest) = (BinaryHeap::new(), None);
        let mut here = FxHashSet::default();
        for race in races {
            let (start, end) = (race.first.1, race.then.1);
            while let Some(Reverse((_, record))) = later.peek().filter(|Reverse((at, _))| *at <= end) {
                latest = latest.max(Some(*record));
                later.pop();
            }
            let own = (race.first.0, race.then.0);
            if latest.is_some_and(|record| record >= start) || here.contains(&own) {
                continue;
            }
            let record = records.last_before(on, end).filter(|(at, _)| *at >= start);
            let wait = (record.map_or(own.0, |(_, group)| group), own.1);
            here.insert(wait);
            if known.insert(wait) {
                chosen.push(wait);
            }
            let taken = of(wait.0, on);
            *weighed += of(wait.1, waiting).len() as u64;
            for at in of(wait.1, waiting) {
                let before = taken[..taken.partition_point(|record| record < at)].last();
                later.extend(before.map(|record| Reverse((*at, *record))));
            }
        }
    }
    chosen
}

/// How much each candidate orders of what is still open.
struct Counts {
    /// Open races.
    left: usize,
    /// Of each candidate: open races that it orders.
    few: Vec<usize>,
    /// Of each candidate: pairs of sites of which it orders all open races.
    whole: Vec<usize>,
    /// Open races of each pair.
    pairs: FxHashMap<usize, usize>,
    /// Of each pair: open races that each candidate orders, where there are any.
    of_pair: FxHashMap<usize, FxHashMap<u32, usize>>,
}

impl Counts {
    fn of(candidates: usize, races: &[Occurrence], by: &[Vec<u32>]) -> Self {
        let mut counts = Self {
            left: races.len(),
            few: vec![0; candidates],
            whole: vec![0; candidates],
            pairs: FxHashMap::default(),
            of_pair: FxHashMap::default(),
        };
        for (race, by) in races.iter().zip(by) {
            *counts.pairs.entry(race.pair).or_default() += 1;
            let of_pair = counts.of_pair.entry(race.pair).or_default();
            for at in by {
                *of_pair.entry(*at).or_default() += 1;
                counts.few[*at as usize] += 1;
            }
        }
        for (pair, of_pair) in &counts.of_pair {
            let all = counts.pairs[pair];
            of_pair.iter().filter(|(_, n)| **n == all).for_each(|(at, _)| counts.whole[*at as usize] += 1);
        }
        counts
    }

    /// A race of this pair is ordered now; `by`: the candidates that order it. Those whose counts
    /// change are added to `changed`.
    fn close(&mut self, pair: usize, by: &[u32], changed: &mut Vec<u32>) {
        self.left -= 1;
        let (Some(all), Some(of_pair)) = (self.pairs.get_mut(&pair), self.of_pair.get_mut(&pair)) else { return };
        for (at, n) in of_pair.iter() {
            self.whole[*at as usize] -= usize::from(*n == *all);
            changed.push(*at);
        }
        *all -= 1;
        for at in by {
            self.few[*at as usize] -= 1;
            if let Some(n) = of_pair.get_mut(at) {
                *n -= 1;
            }
        }
        of_pair.retain(|_, n| *n > 0);
        for (at, n) in of_pair.iter() {
            self.whole[*at as usize] += usize::from(*n == *all);
        }
    }
}

/// Races and places for tests.
#[cfg(test)]
pub(crate) mod made {
    use super::*;

    pub(crate) const A: StreamId = StreamId(1);
    pub(crate) const B: StreamId = StreamId(2);

    pub(crate) fn race(pair: usize, first: (Group, u64), then: (Group, u64)) -> Occurrence {
        Occurrence { pair, first: (first.0, first.1, A), then: (then.0, then.1, B) }
    }

    /// Some races, and where their groups stand.
    pub(crate) fn races(seed: u64) -> (Vec<Occurrence>, Positions) {
        let mut seed = seed + 1;
        let mut below = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        let groups = 1 + below(5);
        let mut races = Vec::new();
        let mut places: Positions = FxHashMap::default();
        for _ in 0..1 + below(14) {
            let (first, then) = (below(groups) as usize, (groups + below(groups)) as usize);
            let from = below(30);
            let to = from + 1 + below(10);
            places.entry((first, A)).or_default().push(from);
            places.entry((then, B)).or_default().push(to);
            races.push(race(first * 16 + then, (first, from), (then, to)));
        }
        places.values_mut().for_each(|list| {
            list.sort_unstable();
            list.dedup();
        });
        (races, places)
    }
}

#[cfg(test)]
mod tests {
    use super::made::{A, B, race};
    use super::*;
    use crate::counterfactual::causes::places::orders;

    fn at(list: &[(Group, StreamId, &[u64])]) -> Positions {
        list.iter().map(|(group, stream, at)| ((*group, *stream), at.to_vec())).collect()
    }

    #[test]
    fn one_wait_for_all_that_can_share_it_and_two_where_they_can_not() {
        // Two writes on A, then two reads on B.
        let places = at(&[(0, A, &[1]), (1, A, &[2]), (2, B, &[3]), (3, B, &[4])]);
        let races = [race(0, (0, 1), (2, 3)), race(1, (1, 2), (3, 4)), race(2, (0, 1), (3, 4))];
        assert_eq!(cover(&races, &places, &mut 0), [(1, 2)]);
        // The second write comes after the first read.
        let places = at(&[(0, A, &[1]), (1, A, &[3]), (2, B, &[2]), (3, B, &[4])]);
        let races = [race(0, (0, 1), (2, 2)), race(1, (1, 3), (3, 4))];
        let chosen = cover(&races, &places, &mut 0);
        assert_eq!(chosen.len(), 2, "{chosen:?}");
    }

    /// The same choice, counted from the start for each wait.
    fn naive(races: &[Occurrence], positions: &Positions) -> Vec<(Group, Group)> {
        let mut own: Vec<(Group, Group)> = races.iter().map(|r| (r.first.0, r.then.0)).collect();
        own.sort_unstable();
        own.dedup();
        let firsts: std::collections::BTreeSet<Group> = own.iter().map(|w| w.0).collect();
        let thens: std::collections::BTreeSet<Group> = own.iter().map(|w| w.1).collect();
        let candidates: Vec<(Group, Group)> =
            firsts.iter().flat_map(|first| thens.iter().map(|then| (*first, *then))).collect();
        let size = |wait: &(Group, Group)| {
            positions.iter().filter(|((group, _), _)| group == &wait.1).map(|(_, at)| at.len()).sum::<usize>()
        };
        let mut open: Vec<&Occurrence> = races.iter().collect();
        let mut chosen = Vec::new();
        while !open.is_empty() {
            let worth = |wait: &(Group, Group)| {
                let mut whole: FxHashMap<usize, bool> = FxHashMap::default();
                for race in &open {
                    *whole.entry(race.pair).or_insert(true) &= orders(*wait, race, positions);
                }
                let few = open.iter().filter(|race| orders(*wait, race, positions)).count();
                (whole.values().filter(|all| **all).count(), few, own.contains(wait), std::cmp::Reverse(size(wait)))
            };
            let best = *candidates.iter().max_by_key(|wait| worth(wait)).expect("one");
            if worth(&best).1 == 0 {
                break;
            }
            chosen.push(best);
            open.retain(|race| !orders(best, race, positions));
        }
        chosen
    }

    #[test]
    fn counting_on_chooses_what_counting_each_time_chooses() {
        for seed in 0..300 {
            let (races, places) = made::races(seed);
            assert_eq!(cover(&races, &places, &mut 0), naive(&races, &places), "{races:?}");
        }
    }

    #[test]
    fn stabbing_orders_all_with_few() {
        for seed in 0..300 {
            let (races, places) = made::races(seed);
            let chosen = stab(&races, &places, &mut 0);
            let is_ordered = |race: &Occurrence| chosen.iter().any(|wait| orders(*wait, race, &places));
            assert!(races.iter().all(is_ordered), "{chosen:?} of {races:?}");
            let own: FxHashSet<(Group, Group)> = races.iter().map(|race| (race.first.0, race.then.0)).collect();
            assert!(chosen.len() <= own.len().max(naive(&races, &places).len() * 3), "{chosen:?} of {races:?}");
        }
    }

    /// So many causes with so many races each, of lines of their own.
    fn regular(causes: u64, each: u64) -> (Vec<Occurrence>, Positions) {
        let all = causes * each;
        let numbers = |n: u64| (2 * each * (n / each) + n % each, 2 * each * (n / each) + each + n % each);
        let of = |n: u64| {
            let (first, then) = numbers(n);
            race(n as usize, (n as usize, first), ((all + n) as usize, then))
        };
        let races: Vec<Occurrence> = (0..all).map(of).collect();
        let places = races.iter().flat_map(|r| [((r.first.0, A), vec![r.first.1]), ((r.then.0, B), vec![r.then.1])]);
        let places = places.collect();
        (races, places)
    }

    #[test]
    fn the_work_grows_as_the_races_do_and_is_bounded_where_all_overlap() {
        let work = |causes, each| {
            let (races, places) = regular(causes, each);
            let mut weighed = 0;
            assert_eq!(cover(&races, &places, &mut weighed).len() as u64, causes);
            weighed
        };
        let (small, large) = (work(100, 10), work(1600, 10));
        assert!(large <= 17 * small, "{small} to {large}");
        // Each of the waits between two thousand writes and as many reads orders some of the races.
        assert!(work(1, 2000) < MOST_WEIGHED + (1 << 20));
        assert!(work(3, 1500) < MOST_WEIGHED + (1 << 20));
    }
}
