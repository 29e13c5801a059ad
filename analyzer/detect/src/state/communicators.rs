//! Communicators of NCCL: in which order each member enqueues the collectives of several.
//!
//! Owns the log of them, and the rule by which two members disagree: one enqueues A before B, and
//! another one B before A. NCCL's kernels wait for those of the other members, so where a device
//! has no room for both, or a call waits for all that runs, each member waits for ever for what the
//! other one has not begun (NCCL's user guide, "Using multiple NCCL communicators concurrently":
//! operations are to be submitted in the same order across ranks). What orders the two on one
//! device is not asked: none of it mends this. Where all members agree there is nothing to say,
//! though the two are unordered on every device. NCCL launches the calls of one group together:
//! they are in no order. Nor are sends and receives, which not all members make.

use rustc_hash::{FxHashMap, FxHashSet};
use trace::{ContextId, StackId, StreamId};

/// Operations that are remembered of each member's device.
const MOST: usize = 1 << 15;

/// Communicators whose order is compared with that of others.
const MOST_COMMUNICATORS: usize = 32;

/// A collective operation that was enqueued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enqueued {
    /// Its communicator.
    pub communicator: u64,
    /// Its number among those of this communicator and this member.
    pub number: u64,
    /// The group of calls that it was launched with; 0: none.
    pub group: u64,
    /// Where it was called.
    pub stack: StackId,
    /// On which stream.
    pub stream: StreamId,
}

impl Enqueued {
    fn is_with(&self, other: &Enqueued) -> bool {
        self.group != 0 && self.group == other.group
    }
}

/// What was enqueued on one device, in that order.
pub type Place = Vec<Enqueued>;

/// Two operations of two communicators that two members enqueue in different orders.
#[derive(Clone, Copy, Debug)]
pub struct Disagreement {
    /// One member's order.
    pub here: [Enqueued; 2],
    /// How many operations of the second communicator are concerned.
    pub count: u64,
}

/// The two communicators of a disagreement, in no order.
pub type Pair = (u64, u64);

/// All that one process has enqueued.
#[derive(Debug, Default)]
pub struct Communicators {
    places: FxHashMap<ContextId, Place>,
    /// Communicators of which not all operations are known.
    lost: FxHashSet<u64>,
    seen: FxHashSet<u64>,
}

impl Communicators {
    /// A member enqueues an operation. A stream that is none: its operations are not followed.
    pub fn enqueued(&mut self, context: Option<ContextId>, members: u32, operation: Enqueued) {
        let place = context.filter(|_| !operation.stream.is_none());
        let Some(place) = place else {
            self.lost.insert(operation.communicator);
            return;
        };
        // Of less than two members nothing waits for another one.
        if members < 2 {
            return;
        }
        if self.seen.len() < MOST_COMMUNICATORS {
            self.seen.insert(operation.communicator);
        }
        let place = self.places.entry(place).or_default();
        if place.len() < MOST {
            place.push(operation);
        }
    }

    /// What was enqueued on each device, if there are several communicators.
    pub fn places(&self) -> Vec<Place> {
        let seen: FxHashSet<u64> = self.seen.difference(&self.lost).copied().collect();
        if seen.len() < 2 {
            return Vec::new();
        }
        let mut places: Vec<(&ContextId, &Place)> = self.places.iter().collect();
        places.sort_by_key(|(context, _)| context.0);
        let known = |place: &Place| place.iter().filter(|of| seen.contains(&of.communicator)).copied().collect();
        places.into_iter().map(|(_, place)| known(place)).collect()
    }

    /// Communicators of which not all operations are known.
    pub fn lost(&self) -> impl Iterator<Item = u64> {
        self.lost.iter().copied()
    }
}

/// Where two members disagree, once for each two communicators. Those in `known` are left out, and
/// what is found is added.
pub fn disagreements(here: &Place, there: &Place, known: &mut FxHashSet<Pair>) -> Vec<Disagreement> {
    let there: FxHashMap<(u64, u64), (usize, &Enqueued)> =
        there.iter().enumerate().map(|(at, of)| ((of.communicator, of.number), (at, of))).collect();
    let mut earlier: FxHashMap<u64, Vec<&Enqueued>> = FxHashMap::default();
    let mut found: Vec<(Pair, Disagreement)> = Vec::new();
    for second in here {
        let Some((at, second_there)) = there.get(&(second.communicator, second.number)) else { continue };
        for (communicator, operations) in &earlier {
            if *communicator == second.communicator {
                continue;
            }
            // Of one communicator the last one is behind all others, with both members.
            let first = operations.iter().rev().find(|first| !first.is_with(second));
            let Some(first) = first else { continue };
            let (first_at, first_there) = there[&(first.communicator, first.number)];
            if first_at < *at || first_there.is_with(second_there) {
                continue;
            }
            let pair = (second.communicator.min(*communicator), second.communicator.max(*communicator));
            match found.iter_mut().find(|(of, _)| *of == pair) {
                Some((_, disagreement)) => disagreement.count += 1,
                None if known.insert(pair) => {
                    found.push((pair, Disagreement { here: [**first, *second], count: 1 }));
                }
                None => {}
            }
        }
        earlier.entry(second.communicator).or_default().push(second);
    }
    found.into_iter().map(|(_, disagreement)| disagreement).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters are communicators, in the order of their calls; those in brackets are one group.
    fn place(text: &str) -> Place {
        let (mut group, mut groups, mut numbers) = (0, 0, FxHashMap::<u64, u64>::default());
        let mut place = Place::new();
        for letter in text.chars() {
            match letter {
                '(' => {
                    groups += 1;
                    group = groups;
                }
                ')' => group = 0,
                letter => {
                    let communicator = u64::from(letter);
                    let number = numbers.entry(communicator).or_default();
                    place.push(Enqueued {
                        communicator,
                        number: *number,
                        group,
                        stack: StackId::NONE,
                        stream: StreamId(1),
                    });
                    *number += 1;
                }
            }
        }
        place
    }

    fn found(here: &str, there: &str) -> usize {
        disagreements(&place(here), &place(there), &mut FxHashSet::default()).len()
    }

    #[test]
    fn members_disagree_where_one_enqueues_the_other_way_round() {
        for (here, there) in [("ab", "ba"), ("aab", "aba"), ("abab", "abba"), ("a(aa)b", "ab(aa)"), ("aaaab", "baaaa")]
        {
            assert_eq!(found(here, there), 1, "{here} {there}");
            assert_eq!(found(there, here), 1, "{there} {here}");
        }
        assert_eq!(found("abc", "cba"), 3);
    }

    #[test]
    fn members_agree() {
        let alike = [
            ("ab", "ab"),
            ("abab", "ab"),
            ("ab", "abab"),
            ("(ab)", "ba"),
            ("(ab)", "(ba)"),
            ("a(ab)b", "aabb"),
            ("a(ab)b", "abab"),
            ("aac", "bab"),
            ("aaa", "bbb"),
            ("", "ab"),
        ];
        for (here, there) in alike {
            assert_eq!(found(here, there), 0, "{here} {there}");
            assert_eq!(found(there, here), 0, "{there} {here}");
        }
    }

    #[test]
    fn a_communicator_that_is_lost_is_compared_with_nothing() {
        let mut process = Communicators::default();
        for of in place("abab") {
            process.enqueued(Some(ContextId(1)), 2, of);
        }
        assert_eq!(process.places(), [place("abab")]);
        let lost = Enqueued { stream: StreamId::NONE, ..place("b")[0] };
        process.enqueued(Some(ContextId(1)), 2, lost);
        assert!(process.places().is_empty());
    }
}
