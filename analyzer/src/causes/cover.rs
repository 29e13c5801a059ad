//! The few waits that order many races, by where the ops stand in the order of submission.
//!
//! Owns the choice. It knows positions and streams only: what else orders two ops is found out by
//! trying ([`super::search`]).

use rustc_hash::FxHashMap;
use trace::StreamId;

/// Most pairs of groups that are compared with all races.
const MOST: usize = 4096;

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
    if firsts.len() * thens.len() <= MOST {
        candidates = firsts.iter().flat_map(|first| thens.iter().map(|then| (*first, *then))).collect();
    }
    let ordered: Vec<Vec<bool>> =
        candidates.iter().map(|wait| races.iter().map(|race| orders(*wait, race, positions)).collect()).collect();
    let ops = |wait: &(Group, Group)| {
        let of = positions.iter().filter(|((group, _), _)| group == &wait.1);
        of.map(|(_, at)| at.len()).sum::<usize>()
    };
    let mut open: Vec<bool> = vec![true; races.len()];
    let mut chosen = Vec::new();
    while open.iter().any(|open| *open) {
        let worth = |at: usize| {
            let mut left: FxHashMap<usize, bool> = FxHashMap::default();
            let mut few = 0;
            for (race, _) in open.iter().enumerate().filter(|(_, open)| **open) {
                let by = ordered[at][race];
                few += usize::from(by);
                *left.entry(races[race].pair).or_insert(true) &= by;
            }
            let whole = left.values().filter(|all| **all).count();
            let is_own = own.binary_search(&candidates[at]).is_ok();
            (whole, few, is_own, std::cmp::Reverse(ops(&candidates[at])))
        };
        let Some((best, worth)) = (0..candidates.len()).map(|at| (at, worth(at))).max_by_key(|(_, worth)| *worth)
        else {
            break;
        };
        if worth.1 == 0 {
            break;
        }
        chosen.push(candidates[best]);
        for (open, by) in open.iter_mut().zip(&ordered[best]) {
            *open &= !by;
        }
    }
    chosen
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
}
