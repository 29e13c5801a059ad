//! A cluster: blocks that begin together, run on one thread, see each other's shared memory and
//! meet at a barrier of their own. A launch without clusters has clusters of one block.
//!
//! An address in the window of shared memory is an offset into a block's memory; the high byte says
//! which block's. (Shared memory of a block is smaller than 16 MiB.) In PTX zero is the block's
//! own, and other values are the rank of a block of the cluster plus one. Machine code has the rank
//! there, its own too.

use super::block::{Block, BlockState, Progress};
use super::env::Env;
use super::warp::Warp;

/// Where the rank is in an address of the window of shared memory.
pub(crate) const RANK_SHIFT: u32 = 24;

/// The blocks of a cluster as each of them knows them, by rank. They stay where they are as long as
/// the cluster runs.
#[derive(Debug, Default)]
pub(crate) struct Members(Vec<*mut BlockState>);

impl Members {
    /// How many blocks the cluster has.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// First byte of the shared memory of the block of that rank, and how many bytes it has.
    pub(crate) fn shared(&self, rank: usize) -> Option<(u64, u32)> {
        let member = *self.0.get(rank)?;
        // SAFETY: the cluster keeps its blocks while any of them runs, and runs all of them on this
        // thread; nothing refers to the member's fields now.
        unsafe { Some(((*member).shared_start(), (*member).shared_end)) }
    }

    /// What the blocks share, of the block of that rank.
    ///
    /// # Safety
    /// Nothing else refers to it as long as the result is used.
    pub(crate) unsafe fn state<'s>(&self, rank: usize) -> Option<&'s mut BlockState> {
        // SAFETY: as above, and the caller's promise.
        self.0.get(rank).map(|&member| unsafe { &mut *member })
    }

    /// How often barrier objects of the blocks were changed.
    pub(crate) fn object_changes(&self) -> u64 {
        // SAFETY: as above.
        self.0.iter().map(|&member| unsafe { (*member).bulk.changes }).sum()
    }

    /// The linear number of the block of that rank.
    pub(crate) fn linear(&self, rank: usize) -> Option<u64> {
        let member = *self.0.get(rank)?;
        // SAFETY: as above.
        Some(unsafe { (*member).linear })
    }

    /// True when all threads of all blocks have arrived for a phase of the cluster's barrier.
    pub(crate) fn passed(&self, phase: u32) -> bool {
        // SAFETY: as above.
        self.0.iter().all(|&member| unsafe { (*member).cluster_phase_over(phase) })
    }
}

/// A cluster that runs or is about to. It can be used for one after the other.
pub(crate) struct Cluster<'b> {
    env: &'b Env<'b>,
    blocks: Vec<Block<'b>>,
    done: Vec<bool>,
    culprit: usize,
}

impl<'b> Cluster<'b> {
    pub(crate) fn new(env: &'b Env<'b>) -> Self {
        let size = env.cluster.iter().product::<u32>() as usize;
        let mut blocks: Vec<Block<'b>> = (0..size).map(|_| Block::new(env)).collect();
        let states: Vec<*mut BlockState> = blocks.iter_mut().map(Block::state).collect();
        for block in &mut blocks {
            block.join(Members(states.clone()));
        }
        Cluster { env, blocks, done: vec![false; size], culprit: 0 }
    }

    /// Makes it the cluster of that linear number, about to begin.
    pub(crate) fn start(&mut self, linear: u64) {
        let first = self.env.block_of_cluster(linear, 0);
        for (rank, block) in self.blocks.iter_mut().enumerate() {
            block.start(self.env.block_of_cluster(linear, rank as u32), first);
            self.done[rank] = false;
        }
    }

    /// As [`Block::run`], for all blocks of the cluster.
    pub(crate) fn run(&mut self, turns: u32, impatient: bool) -> Progress {
        if let [block] = self.blocks.as_mut_slice() {
            return block.run(turns, impatient);
        }
        for _ in 0..turns {
            let (mut stuck, mut rests) = (true, false);
            for (rank, block) in self.blocks.iter_mut().enumerate() {
                if self.done[rank] {
                    continue;
                }
                match block.run(1, true) {
                    Progress::Done => {
                        self.done[rank] = true;
                        stuck = false;
                    }
                    Progress::Paused => stuck = false,
                    Progress::Blocked => {}
                    Progress::Rests => rests = true,
                    Progress::Fault(warp) => {
                        self.culprit = rank;
                        return Progress::Fault(warp);
                    }
                }
            }
            if self.done.iter().all(|&done| done) {
                return Progress::Done;
            }
            if rests {
                if stuck {
                    return Progress::Rests;
                }
                continue;
            }
            if self.blocks.iter().any(Block::is_in_vain)
                && self.blocks.iter().zip(&self.done).all(|(block, &done)| done || block.is_stuck())
            {
                self.culprit = self.blocks.iter().position(Block::is_in_vain).unwrap_or(0);
                return self.blocks[self.culprit].give_up_polling();
            }
            if stuck && !self.blocks.iter_mut().any(Block::can_go_on) {
                self.culprit = self.done.iter().position(|done| !done).unwrap_or(0);
                return self.blocks[self.culprit].give_up();
            }
        }
        Progress::Paused
    }

    /// All threads that are left poll barriers of the system's in vain, or wait for those who do.
    /// `changes`: how often these have been changed so far.
    pub(crate) fn polls_in_vain(&self, changes: u64) -> bool {
        // One block alone does not say here whether it is done.
        let is_done = |rank: usize| self.blocks.len() > 1 && self.done[rank];
        let running = || self.blocks.iter().enumerate().filter(|(rank, _)| !is_done(*rank)).map(|(_, block)| block);
        running().any(Block::polls_long) && running().all(|block| block.only_polls(changes))
    }

    /// Gives up at a block that polls in vain, as `waiting` of `all` blocks do; of these are all
    /// that have not ended (`alone`), or others of other threads may be. The warp at fault.
    pub(crate) fn give_up_system(&mut self, (waiting, all): (u64, u64), alone: bool) -> usize {
        self.culprit = self.blocks.iter().position(Block::polls_long).unwrap_or(0);
        let others = match all - waiting {
            0 => String::new(),
            ended if alone => format!("; {ended} of {all} blocks have ended"),
            _ => "; other blocks wait as well, or have ended".to_owned(),
        };
        self.blocks[self.culprit].give_up_system(&others)
    }

    /// The index of the block and the warp that are at fault, for reports.
    pub(crate) fn culprit(&self, warp: usize) -> ([u32; 3], &Warp<'b>) {
        self.blocks[self.culprit].culprit(warp)
    }
}
