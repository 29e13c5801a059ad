//! The few waits that order many races, by where the ops stand in the order of submission.
//!
//! Owns the choice. It knows positions and streams only: what else orders two ops is found out by
//! trying ([`super::search`]).

use rustc_hash::FxHashMap;
use trace::StreamId;

/// Most pairs of groups that are compared with all races.
const MOST: usize = 4096;

/// Most comparisons of a pair of groups with a race. Beyond, each race gets the wait of its own
/// places: all are ordered, by more waits than might do.
const MOST_COMPARED: usize = 8 << 20;

/// A number for sites that are one line of the program.
pub type Group = usize;

/// One occurrence of a race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occurrence {
    /// Which pair of sites.
    pub pair: usize,
    /// The earlier op: its group, its place in the order of submission, its stream.
    pub first: (Group, u64, StreamId),
    /// The later op.
    pub then: (Group, u64, StreamId),
}

/// Where the ops of each group stand: ascending numbers, by stream.
pub type Positions = FxHashMap<(Group, StreamId), Vec<u64>>;

/// Whether what is submitted at `wait.1`, waiting for what was submitted at `wait.0`, comes between
/// the two ops of a race.
pub fn orders(wait: (Group, Group), race: &Occurrence, positions: &Positions) -> bool {
    if wait == (race.first.0, race.then.0) {
        return true;
    }
    let of = |group, stream| positions.get(&(group, stream)).map_or(&[][..], Vec::as_slice);
    let records = of(wait.0, race.first.2);
    let Some(record) = records.get(records.partition_point(|at| *at < race.first.1)) else { return false };
    let waits = of(wait.1, race.then.2);
    waits.get(waits.partition_point(|at| at <= record)).is_some_and(|at| *at <= race.then.1)
}

/// Waits that order all of these races: each time the one that orders most pairs of sites that were
/// not ordered before.
pub fn cover(races: &[Occurrence], positions: &Positions) -> Vec<(Group, Group)> {
    let mut own: Vec<(Group, Group)> = races.iter().map(|r| (r.first.0, r.then.0)).collect();
    own.sort_unstable();
    own.dedup();
    let mut candidates = own.clone();
    let each = |side: fn(&(Group, Group)) -> Group| {
        let mut list: Vec<Group> = own.iter().map(side).collect();
        list.sort_unstable();
        list.dedup();
        list
    };
    let (firsts, thens) = (each(|w| w.0), each(|w| w.1));
    if firsts.len() * thens.len() <= MOST && firsts.len() * thens.len() * races.len() <= MOST_COMPARED {
        candidates = firsts.iter().flat_map(|first| thens.iter().map(|then| (*first, *then))).collect();
    }
    let Some(by) = ordering(&candidates, races, positions) else { return own };
    let ops = |wait: &(Group, Group)| {
        let of = positions.iter().filter(|((group, _), _)| group == &wait.1);
        of.map(|(_, at)| at.len()).sum::<usize>()
    };
    let sizes: Vec<usize> = candidates.iter().map(ops).collect();
    let is_own: Vec<bool> = candidates.iter().map(|wait| own.binary_search(wait).is_ok()).collect();
    let mut counts = Counts::of(candidates.len(), races, &by);
    let mut open: Vec<bool> = vec![true; races.len()];
    let mut chosen = Vec::new();
    while counts.left > 0 {
        let worth = |at: usize| (counts.whole[at], counts.few[at], is_own[at], std::cmp::Reverse(sizes[at]));
        let Some(best) = (0..candidates.len()).max_by_key(|at| worth(*at)) else { break };
        if counts.few[best] == 0 {
            break;
        }
        chosen.push(candidates[best]);
        for race in 0..races.len() {
            if open[race] && by[race].binary_search(&(best as u32)).is_ok() {
                open[race] = false;
                counts.close(races[race].pair, &by[race]);
            }
        }
    }
    chosen
}

/// For each race, the candidates that order it, ascending. `None`: that is too much to look at.
fn ordering(candidates: &[(Group, Group)], races: &[Occurrence], positions: &Positions) -> Option<Vec<Vec<u32>>> {
    if candidates.len().saturating_mul(races.len()) > MOST_COMPARED {
        return None;
    }
    let of = |race: &Occurrence| {
        let numbered = (0_u32..).zip(candidates);
        numbered.filter(|(_, wait)| orders(**wait, race, positions)).map(|(at, _)| at).collect()
    };
    Some(races.iter().map(of).collect())
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

    /// A race of this pair is ordered now; `by`: the candidates that order it.
    fn close(&mut self, pair: usize, by: &[u32]) {
        self.left -= 1;
        let (Some(all), Some(of_pair)) = (self.pairs.get_mut(&pair), self.of_pair.get_mut(&pair)) else { return };
        for (at, n) in of_pair.iter() {
            self.whole[*at as usize] -= usize::from(*n == *all);
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

#[cfg(test)]
mod tests {
    use super::*;

    const A: StreamId = StreamId(1);
    const B: StreamId = StreamId(2);

    fn at(list: &[(Group, StreamId, &[u64])]) -> Positions {
        list.iter().map(|(group, stream, at)| ((*group, *stream), at.to_vec())).collect()
    }

    fn race(pair: usize, first: (Group, u64), then: (Group, u64)) -> Occurrence {
        Occurrence { pair, first: (first.0, first.1, A), then: (then.0, then.1, B) }
    }

    #[test]
    fn one_wait_for_all_that_can_share_it_and_two_where_they_can_not() {
        // Two writes on A, then two reads on B.
        let places = at(&[(0, A, &[1]), (1, A, &[2]), (2, B, &[3]), (3, B, &[4])]);
        let races = [race(0, (0, 1), (2, 3)), race(1, (1, 2), (3, 4)), race(2, (0, 1), (3, 4))];
        assert_eq!(cover(&races, &places), [(1, 2)]);
        // The second write comes after the first read.
        let places = at(&[(0, A, &[1]), (1, A, &[3]), (2, B, &[2]), (3, B, &[4])]);
        let races = [race(0, (0, 1), (2, 2)), race(1, (1, 3), (3, 4))];
        let chosen = cover(&races, &places);
        assert_eq!(chosen.len(), 2, "{chosen:?}");
    }

    #[test]
    fn a_wait_orders_only_what_lies_around_it() {
        let places = at(&[(0, A, &[1, 5]), (1, B, &[3, 7])]);
        assert!(orders((0, 1), &race(0, (2, 1), (3, 3)), &places));
        assert!(!orders((0, 1), &race(0, (2, 2), (3, 3)), &places), "the record comes too late");
        assert!(!orders((0, 1), &race(0, (2, 5), (3, 6)), &places), "the wait comes too late");
        assert!(orders((2, 3), &race(0, (2, 5), (3, 6)), &places), "its own places");
    }

    /// The same choice, counted anew for each wait.
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
    fn counting_on_chooses_what_counting_anew_chooses() {
        let mut seed = 1_u64;
        let mut below = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        for _ in 0..300 {
            let groups = 1 + below(5);
            let mut races = Vec::new();
            let mut places: FxHashMap<(Group, StreamId), Vec<u64>> = FxHashMap::default();
            for _ in 0..1 + below(14) {
                let (first, then) = (below(groups) as usize, (groups + below(groups)) as usize);
                let from = below(30);
                let to = from + 1 + below(10);
                places.entry((first, A)).or_default().push(from);
                places.entry((then, B)).or_default().push(to);
                races.push(race(first * 16 + then, (first, from), (then, to)));
            }
            places.values_mut().for_each(|list| list.sort_unstable());
            assert_eq!(cover(&races, &places), naive(&races, &places), "{races:?}");
        }
    }

    #[test]
    fn too_many_to_compare_get_the_waits_of_their_own_places() {
        let many = 4000;
        let races: Vec<Occurrence> =
            (0..many).map(|n| race(n, (n, 2 * n as u64), (many + n, 2 * n as u64 + 1))).collect();
        let places = races.iter().flat_map(|r| [((r.first.0, A), vec![r.first.1]), ((r.then.0, B), vec![r.then.1])]);
        let chosen = cover(&races, &places.collect());
        assert_eq!(chosen.len(), many);
    }
}
