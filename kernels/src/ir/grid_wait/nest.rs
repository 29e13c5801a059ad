//! Parts of a kernel's code: before the waits, behind them, and in loops in between.
//!
//! Owns which part an edge leads to. Does not know what a wait is.

use crate::ir::BlockId;
use crate::ir::cfg::Cfg;

/// What a thread has done in a part of the code.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// It has not waited.
    Before,
    /// It has waited in the current iteration of this loop. The next iteration begins in another
    /// part: a loop that is entered in its middle would be control flow without structure.
    In(u32),
    /// It has waited.
    Behind,
}

/// The loops around each piece.
pub(super) struct Nest<'a> {
    cfg: &'a Cfg,
    /// The innermost loop that a piece is in.
    of: Vec<Option<u32>>,
    /// The loop around a loop.
    around: Vec<Option<u32>>,
}

impl<'a> Nest<'a> {
    pub(super) fn new(cfg: &'a Cfg) -> Self {
        let mut by_size: Vec<u32> = (0..cfg.loops.len() as u32).collect();
        by_size.sort_unstable_by_key(|l| std::cmp::Reverse(cfg.loops[*l as usize].size));
        let mut nest = Self { cfg, of: vec![None; cfg.succs.len()], around: vec![None; cfg.loops.len()] };
        if cfg.irreducible {
            return nest;
        }
        for l in by_size {
            let inner = &cfg.loops[l as usize];
            nest.around[l as usize] = nest.of[inner.header.0 as usize];
            let members = nest.of.iter_mut().zip(&inner.members).filter(|(_, member)| **member);
            members.for_each(|(of, _)| *of = Some(l));
        }
        nest
    }

    /// The part that an edge leads to. `waits`: a thread has waited at the end of the piece that it
    /// leaves.
    pub(super) fn part(&self, from: BlockId, to: BlockId, part: Stage, waits: bool) -> Stage {
        let mut pending = match part {
            Stage::Before if !waits => return Stage::Before,
            Stage::Before => self.of[from.0 as usize],
            Stage::In(pending) => Some(pending),
            Stage::Behind => None,
        };
        while let Some(l) = pending {
            let inner = &self.cfg.loops[l as usize];
            if inner.members[to.0 as usize] && inner.header != to {
                return Stage::In(l);
            }
            pending = self.around[l as usize];
        }
        Stage::Behind
    }
}
