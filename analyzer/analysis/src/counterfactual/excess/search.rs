//! The sets of sites that can go together.
//!
//! Owns the search over sets, given a way to try one. A *conflict* is a set of sites that can not
//! all go although each subset can. The largest set that can go leaves out one site of each
//! conflict at least: conflicts are found by trying what avoids those known so far, until a trial
//! succeeds. This is the hitting-set duality of Reiter's diagnosis (1987); conflicts are shrunk by
//! Junker's QuickXplain (2004).

use std::collections::VecDeque;

/// Steps of the exact search for the fewest sites to keep, before a good answer has to do.
const EFFORT: usize = 200_000;
/// Sets that are looked at to find further conflicts.
const NODES: usize = 20_000;

/// Tries whether all sites of a sorted set can go.
pub(crate) type Try<'f> = dyn FnMut(&[u32]) -> bool + 'f;

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct SiteSets {
    /// The largest set that can go.
    pub(crate) largest: Vec<u32>,
    /// The conflicts.
    pub(crate) conflicts: Vec<Vec<u32>>,
    /// Whether the set is the largest and the conflicts are all that count: each site that is in
    /// any conflict is in one of these.
    pub(crate) is_complete: bool,
}

/// Searches among these sites, each of which can go alone. `budget`: the number of trials.
pub(crate) fn search(sites: &[u32], budget: usize, can_go: &mut Try<'_>) -> SiteSets {
    let mut search = Search { can_go, conflicts: Vec::new(), fine: Vec::new(), left: budget };
    let mut exact = true;
    let largest = loop {
        let (kept, is_least) = fewest(&search.conflicts, sites);
        exact &= is_least;
        let rest: Vec<u32> = sites.iter().copied().filter(|site| !kept.contains(site)).collect();
        match search.conflict_in(&rest) {
            Verdict::Fine => break rest,
            Verdict::Conflict(_) => {}
            // Nothing is offered that was not tried.
            Verdict::OutOfTrials => {
                exact = false;
                break search.fine.iter().max_by_key(|set| set.len()).cloned().unwrap_or_default();
            }
        }
    };
    let complete = search.find_others(sites);
    SiteSets { largest, conflicts: search.conflicts, is_complete: exact && complete }
}

enum Verdict {
    Fine,
    Conflict(usize),
    OutOfTrials,
}

struct Search<'f, 'g> {
    can_go: &'f mut Try<'g>,
    conflicts: Vec<Vec<u32>>,
    /// Sets that can go.
    fine: Vec<Vec<u32>>,
    left: usize,
}

impl Search<'_, '_> {
    /// Whether a set can go. `None`: no trials are left.
    fn fine(&mut self, set: &[u32]) -> Option<bool> {
        if set.len() < 2 || self.fine.iter().any(|known| includes(known, set)) {
            return Some(true);
        }
        if self.conflicts.iter().any(|known| includes(set, known)) {
            return Some(false);
        }
        self.left = self.left.checked_sub(1)?;
        let fine = (self.can_go)(set);
        if fine {
            self.fine.push(set.to_vec());
        }
        Some(fine)
    }

    /// A conflict in a set, if there is one.
    fn conflict_in(&mut self, set: &[u32]) -> Verdict {
        if let Some(known) = self.conflicts.iter().position(|known| includes(set, known)) {
            return Verdict::Conflict(known);
        }
        match self.fine(set) {
            None => Verdict::OutOfTrials,
            Some(true) => Verdict::Fine,
            Some(false) => match self.shrink(&[], false, set) {
                Some(mut conflict) => {
                    conflict.sort_unstable();
                    self.conflicts.push(conflict);
                    Verdict::Conflict(self.conflicts.len() - 1)
                }
                None => Verdict::OutOfTrials,
            },
        }
    }

    /// The part of `set` that makes a conflict with `base`.
    fn shrink(&mut self, base: &[u32], has_grown: bool, set: &[u32]) -> Option<Vec<u32>> {
        if has_grown && !self.fine(&sorted(base, &[]))? {
            return Some(Vec::new());
        }
        if set.len() < 2 {
            return Some(set.to_vec());
        }
        let (left, right) = set.split_at(set.len() / 2);
        let of_right = self.shrink(&sorted(base, left), true, right)?;
        let mut of_left = self.shrink(&sorted(base, &of_right), !of_right.is_empty(), left)?;
        of_left.extend(of_right);
        Some(of_left)
    }

    /// Looks for the conflicts that the largest set did not need: every smallest set of sites that
    /// can be kept is visited. False: that was too much.
    fn find_others(&mut self, sites: &[u32]) -> bool {
        let mut keeps: Vec<Vec<u32>> = Vec::new();
        let mut next = VecDeque::from([Vec::new()]);
        let mut seen: std::collections::BTreeSet<Vec<u32>> = std::collections::BTreeSet::new();
        while let Some(kept) = next.pop_front() {
            if keeps.iter().any(|known| includes(&kept, known)) {
                continue;
            }
            let rest: Vec<u32> = sites.iter().copied().filter(|site| !kept.contains(site)).collect();
            match self.conflict_in(&rest) {
                Verdict::Fine => keeps.push(kept),
                Verdict::OutOfTrials => return false,
                Verdict::Conflict(number) => {
                    for site in self.conflicts[number].clone() {
                        let more = sorted(&kept, &[site]);
                        if seen.len() >= NODES {
                            return false;
                        }
                        if seen.insert(more.clone()) {
                            next.push_back(more);
                        }
                    }
                }
            }
        }
        true
    }
}

fn sorted(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut all: Vec<u32> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether a sorted set includes another.
fn includes(set: &[u32], part: &[u32]) -> bool {
    part.len() <= set.len() && part.iter().all(|site| set.binary_search(site).is_ok())
}

/// The fewest sites of which each conflict has one. Second: whether they are surely the fewest.
fn fewest(conflicts: &[Vec<u32>], sites: &[u32]) -> (Vec<u32>, bool) {
    let mut best = sites.to_vec();
    let mut effort = EFFORT;
    descend(conflicts, &mut Vec::new(), &mut best, &mut effort);
    (best, effort > 0)
}

fn descend(conflicts: &[Vec<u32>], kept: &mut Vec<u32>, best: &mut Vec<u32>, effort: &mut usize) {
    let open: Vec<&Vec<u32>> = conflicts.iter().filter(|c| !c.iter().any(|site| kept.contains(site))).collect();
    let Some(smallest) = open.iter().min_by_key(|c| c.len()) else {
        if kept.len() < best.len() {
            best.clone_from(kept);
        }
        return;
    };
    // Conflicts that share nothing need a site each.
    let mut apart: Vec<u32> = Vec::new();
    let mut least = 0;
    for conflict in &open {
        if !conflict.iter().any(|site| apart.contains(site)) {
            apart.extend(*conflict);
            least += 1;
        }
    }
    if kept.len() + least >= best.len() || *effort == 0 {
        return;
    }
    *effort -= 1;
    let mut choices: Vec<u32> = smallest.to_vec();
    choices.sort_by_key(|site| std::cmp::Reverse(open.iter().filter(|c| c.contains(site)).count()));
    for site in choices {
        kept.push(site);
        descend(conflicts, kept, best, effort);
        kept.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All sets of fewer than 32 sites, tried one by one.
    fn brute(count: u32, can_go: impl Fn(u32) -> bool) -> (usize, u32) {
        let fine: Vec<bool> = (0..1_u32 << count).map(&can_go).collect();
        let largest = (0..1_u32 << count).filter(|set| fine[*set as usize]).map(u32::count_ones).max().unwrap_or(0);
        let mut matter = 0;
        for set in 0..1_u32 << count {
            for site in 0..count {
                let with = set | 1 << site;
                if with != set && fine[set as usize] && !fine[with as usize] {
                    matter |= 1 << site;
                }
            }
        }
        (largest as usize, matter)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn the_search_agrees_with_trying_all(conflicts in prop::collection::vec(prop::collection::btree_set(0_u32..8, 2..5), 0..7)) {
            let bits = |set: &[u32]| set.iter().fold(0_u32, |bits, site| bits | 1 << site);
            let masks: Vec<u32> = conflicts.iter().map(|c| bits(&c.iter().copied().collect::<Vec<_>>())).collect();
            let can_go = |set: u32| masks.iter().all(|mask| set & mask != *mask);
            let (largest, matter) = brute(8, can_go);
            let found = search(&(0..8).collect::<Vec<_>>(), 10_000, &mut |set| can_go(bits(set)));
            prop_assert!(found.is_complete);
            prop_assert_eq!(found.largest.len(), largest);
            prop_assert!(can_go(bits(&found.largest)));
            let together = found.conflicts.iter().fold(0, |all, conflict| all | bits(conflict));
            prop_assert_eq!(together, matter);
        }
    }

    #[test]
    fn without_trials_nothing_is_offered() {
        let found = search(&[0, 1, 2], 0, &mut |_| panic!("no trial is left"));
        assert_eq!(found, SiteSets::default());
    }
}
