//! Proof, without a trial, that a wait is needed: a race that only this wait could order.
//!
//! Owns the argument. An added wait never waits for a later record, and the program's own waits
//! take what was submitted before them. So whatever orders two ops was submitted between them: of
//! waits that are left out together, one whose record or whose wait lies elsewhere has no part in
//! it. A race that lies around one of them only is there as well when nothing but that one is left
//! out.
//!
//! A wait for a value may be met by a later write, so a run with such waits is left to trials
//! ([`super::search`]).

use rustc_hash::FxHashMap;

/// Most steps that are taken. Beyond, nothing more is proved.
const MOST: usize = 4 << 20;

/// Where waits that were left out would have acted.
#[derive(Default)]
pub(crate) struct ActingPlaces {
    /// Where it waits, the latest place that it waits for, and its number. Ascending.
    list: Vec<(u64, u64, usize)>,
    given_up: bool,
}

impl ActingPlaces {
    /// Adds a wait at `before` for what was submitted at `after`, both ascending.
    pub(crate) fn add(&mut self, wait: usize, after: &[u64], before: &[u64]) {
        let mut last = None;
        for at in before {
            let record = after[..after.partition_point(|record| record < at)].last();
            // The same record from further away tells nothing new.
            if let Some(record) = record.filter(|record| last != Some(**record)) {
                self.list.push((*at, *record, wait));
                last = Some(*record);
            }
        }
        self.given_up |= self.list.len() > MOST;
    }

    /// Adds a wait that takes whatever a stream has run: it acts at these places alone.
    pub(crate) fn add_places(&mut self, wait: usize, at: &[u64]) {
        self.list.extend(at.iter().map(|at| (*at, *at, wait)));
        self.given_up |= self.list.len() > MOST;
    }

    /// The waits that are needed, each with the pairs of sites that race without it. `races`: the
    /// pair and the places of the two ops.
    pub(crate) fn needed(mut self, races: impl Iterator<Item = (usize, u64, u64)>) -> Vec<(usize, usize)> {
        self.list.sort_unstable();
        let mut steps = 0;
        let mut found: FxHashMap<(usize, usize), ()> = FxHashMap::default();
        for (pair, start, end) in races {
            let mut only = None;
            let mut others = false;
            for (at, record, wait) in &self.list[self.list.partition_point(|(at, ..)| *at < start)..] {
                steps += 1;
                if *at > end || others || steps > MOST {
                    break;
                }
                if *record >= start {
                    others = only.is_some_and(|only| only != *wait);
                    only = Some(*wait);
                }
            }
            if self.given_up || steps > MOST {
                break;
            }
            if let Some(wait) = only.filter(|_| !others) {
                found.insert((wait, pair), ());
            }
        }
        let mut found: Vec<(usize, usize)> = found.into_keys().collect();
        found.sort_unstable();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(races: &[(usize, u64, u64)]) -> Vec<(usize, usize)> {
        let mut spans = ActingPlaces::default();
        spans.add(0, &[1, 11, 21], &[3, 13, 23]);
        spans.add(1, &[5], &[7]);
        spans.add_places(2, &[30]);
        spans.needed(races.iter().copied())
    }

    #[test]
    fn a_race_around_one_wait_alone_proves_it_needed() {
        assert_eq!(needed(&[(8, 1, 3), (9, 0, 4)]), [(0, 8), (0, 9)]);
        assert_eq!(needed(&[(8, 4, 8), (9, 30, 30)]), [(1, 8), (2, 9)]);
        // Around both, around neither, around a wait without its record.
        assert_eq!(needed(&[(8, 1, 7)]), []);
        assert_eq!(needed(&[(8, 8, 10), (8, 2, 4), (8, 1, 2), (8, 29, 29)]), []);
        // Twice around the same one.
        assert_eq!(needed(&[(8, 8, 25)]), [(0, 8)]);
        // A later wait takes the newest record only.
        assert_eq!(needed(&[(8, 1, 14)]), []);
        assert_eq!(needed(&[(8, 12, 28)]), [(0, 8)]);
    }
}
