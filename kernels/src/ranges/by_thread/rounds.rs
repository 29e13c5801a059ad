//! Which threads of a launch are followed at once, in which order.
//!
//! Owns the thread of each lane, and the lane of each thread. What the lanes calculate is in
//! `lanes`.

use super::lane_classes::LANES;

/// Threads of a block that do the same: a warp group.
const ROLE: u64 = 128;

/// The order in which the threads of a launch get lanes.
#[derive(Clone, Copy)]
pub(super) struct Rounds {
    per_block: u64,
    blocks: u64,
    /// The same warp group of all blocks comes before the next group.
    by_role: bool,
}

/// The threads that have lanes now.
#[derive(Clone, Copy)]
pub(super) struct Round {
    per_block: u64,
    first_block: u64,
    first_thread: u64,
    by_role: bool,
    /// How many there are.
    pub(super) count: usize,
    /// How many threads of the launch are like these, these included: those of a role.
    pub(super) alike: u64,
    /// How many of these threads have had lanes when this round ends.
    pub(super) done: u64,
}

impl Rounds {
    /// `by_role`: the warp groups of a block do different things. Then their lanes would never be
    /// at one block of code, and each value would be told lane by lane.
    pub(super) fn new(blocks: u64, per_block: u64, by_role: bool) -> Rounds {
        let by_role = by_role && per_block > 2 * ROLE && per_block.is_multiple_of(ROLE);
        Rounds { per_block, blocks, by_role }
    }

    /// How many threads there are.
    pub(super) fn threads(self) -> u64 {
        self.blocks.saturating_mul(self.per_block)
    }

    /// How many of them are like the first one.
    pub(super) fn alike(self) -> u64 {
        if self.by_role { self.blocks * ROLE } else { self.threads() }
    }

    pub(super) fn rounds(self) -> impl Iterator<Item = Round> {
        let (roles, alike) = (if self.by_role { self.per_block / ROLE } else { 1 }, self.alike());
        (0..roles).flat_map(move |role| {
            (0..alike).step_by(LANES).map(move |first| {
                let count = (alike - first).min(LANES as u64);
                let (first_block, first_thread) = match self.by_role {
                    true => (first / ROLE, role * ROLE),
                    false => (first / self.per_block, first % self.per_block),
                };
                let Rounds { per_block, by_role, .. } = self;
                let (count, done) = (count as usize, first + count);
                Round { per_block, first_block, first_thread, by_role, count, alike, done }
            })
        })
    }
}

impl Round {
    /// No threads, before the first round.
    pub(super) const NONE: Round =
        Round { per_block: 1, first_block: 0, first_thread: 0, by_role: false, count: 0, alike: 0, done: 0 };

    /// The block of a lane's thread, and the thread's number in the block.
    pub(super) fn thread(&self, lane: usize) -> (u64, u64) {
        let lane = lane as u64;
        if self.by_role {
            return (self.first_block + lane / ROLE, self.first_thread + lane % ROLE);
        }
        let behind = self.first_thread + lane;
        (self.first_block + behind / self.per_block, behind % self.per_block)
    }

    /// The lane of a thread.
    pub(super) fn lane(&self, block: u64, thread: u64) -> Option<usize> {
        let blocks = block.checked_sub(self.first_block)?;
        let lane = if self.by_role {
            let own = thread.checked_sub(self.first_thread).filter(|own| *own < ROLE)?;
            blocks * ROLE + own
        } else {
            (blocks * self.per_block + thread).checked_sub(self.first_thread)?
        };
        usize::try_from(lane).ok().filter(|lane| *lane < self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_thread_has_a_lane_once_and_is_found_there() {
        for (blocks, per_block) in [(1, 1), (3, 32), (7, 96), (5, 100), (4, 256), (3, 384), (5, 384), (1, 1024)] {
            for by_role in [false, true] {
                let all = Rounds::new(blocks, per_block, by_role);
                let mut seen = BTreeSet::new();
                for round in all.rounds() {
                    assert!(round.count <= LANES);
                    for lane in 0..round.count {
                        let (block, thread) = round.thread(lane);
                        assert!(block < blocks && thread < per_block && seen.insert((block, thread)));
                        assert_eq!(round.lane(block, thread), Some(lane));
                    }
                    assert_eq!(round.lane(blocks, 0), None);
                }
                assert_eq!(seen.len() as u64, all.threads());
            }
        }
    }

    #[test]
    fn a_round_by_role_has_one_warp_group() {
        let groups = |round: Round| {
            let of = |lane| round.thread(lane).1 / ROLE;
            (0..round.count).map(of).collect::<BTreeSet<u64>>().len()
        };
        assert!(Rounds::new(5, 384, true).rounds().all(|round| groups(round) == 1));
        assert!(Rounds::new(5, 384, false).rounds().any(|round| groups(round) > 1));
        let done: Vec<(u64, u64)> = Rounds::new(3, 384, true).rounds().map(|r| (r.done, r.alike)).collect();
        assert_eq!(done, [(256, 384), (384, 384)].repeat(3));
    }
}
