//! Threads at a branch whose condition is data.
//!
//! Owns where such threads go on, what joins hold then, and which accesses they may have made in
//! between. Branches whose condition is a number are followed in `walk`.

use super::lane_classes::{Mask, NO_LANES, lanes};
use super::lane_value::{LaneValue, UNKNOWN};
use super::walk::{Walk, arm};
use crate::ir::BlockId;
use crate::ranges::graph::node::NodeId;
use std::rc::Rc;

/// The blocks that threads may go through before they meet again.
pub(super) struct Region {
    blocks: Vec<BlockId>,
    end: Option<BlockId>,
    /// Threads may come back to where they parted.
    returns: bool,
}

/// What a join of a region holds while threads are in it.
enum Held {
    /// What it held before.
    Before,
    /// What this node is where the threads come from.
    Brought(NodeId),
    /// What this node is in the region.
    Within(NodeId),
    Unknown,
}

impl Walk<'_> {
    /// Threads whose way from a block is not known go on where all ways meet.
    pub(super) fn skip(&mut self, from: BlockId, mask: &Mask) {
        if *mask == NO_LANES {
            return;
        }
        let region = self.region(from);
        let ways = region.end.map(|end| self.ways(end, from, &region)).unwrap_or_default();
        let joins = region.end.map(|end| self.joins[end.0 as usize].clone()).unwrap_or_default();
        // What is brought straight from here is asked before any join changes, if it is brought
        // once.
        let mut brought: Vec<(NodeId, Vec<Option<LaneValue>>)> = Vec::with_capacity(joins.len());
        for join in joins {
            let straight = |way: &BlockId| !region.returns && self.is_straight(from, *way);
            let asked: Vec<bool> = ways.iter().map(straight).collect();
            let asked = ways.iter().zip(asked).map(|(way, asked)| if asked { self.brought(join, *way) } else { None });
            brought.push((join, asked.collect()));
        }
        let left = self.enter(from, &region, mask);
        for (b, mask) in self.may_reach(from, mask, region.end) {
            self.maps.is_lost |= !self.map_steps[b.0 as usize].is_empty();
            for at in 0..self.accesses[b.0 as usize].len() {
                let k = self.accesses[b.0 as usize][at];
                self.access(k, &mask, true);
            }
        }
        let Some(end) = region.end else { return };
        // A join there holds what all ways bring, if that is the same.
        let mut new = Vec::with_capacity(brought.len());
        for (join, values) in brought {
            let all = ways.iter().zip(values).map(|(way, value)| value.or_else(|| self.brought(join, *way)));
            let all: Option<Vec<LaneValue>> = all.collect();
            new.push((join, all.and_then(|all| all.into_iter().reduce(|a, b| common(a, &b, mask)))));
        }
        // Threads that went straight to the end have what joins of the region held before.
        if ways.iter().any(|way| self.is_straight(from, *way)) {
            new.extend(left.into_iter().map(|(join, old)| (join, Some(common(old, self.lanes.get(join), mask)))));
        }
        for (join, value) in &new {
            match value {
                Some(v) => self.lanes.assign(*join, mask, v),
                None => self.lanes.forget(*join, mask),
            }
        }
        self.lanes.joined();
        self.wait(end, mask);
    }

    /// What a way brings to a join.
    fn brought(&mut self, join: NodeId, way: BlockId) -> Option<LaneValue> {
        let n = arm(self.lanes.g, join, way)?;
        Some(self.lanes.get(n).clone())
    }

    /// Gives the joins of a region what they hold while threads are in it; what those held before
    /// that also hold something at `from`, and get a value.
    fn enter(&mut self, from: BlockId, region: &Region, mask: &Mask) -> Vec<(NodeId, LaneValue)> {
        let (mut changed, mut brought, mut within, mut left) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for b in &region.blocks {
            for at in 0..self.joins[b.0 as usize].len() {
                let join = self.joins[b.0 as usize][at];
                match self.held(join, from, region) {
                    Held::Before => continue,
                    Held::Brought(n) => {
                        brought.push((join, self.lanes.get(n).clone()));
                        if self.analysis.cfg.dominates(*b, from) {
                            left.push((join, self.lanes.get(join).clone()));
                        }
                    }
                    Held::Within(n) => within.push((join, n)),
                    Held::Unknown => {}
                }
                changed.push(join);
            }
        }
        // (What a join is made of is asked when those are known that come before it.)
        for join in changed {
            self.lanes.forget(join, mask);
        }
        for (join, value) in &brought {
            self.lanes.assign(*join, mask, value);
        }
        self.lanes.joined();
        for (join, n) in within {
            let value = self.lanes.get(n).clone();
            self.lanes.assign(join, mask, &value);
            self.lanes.joined();
        }
        left
    }

    /// What a join of a region holds, however the threads go through it.
    ///
    /// A join that dominates `from` may be asked in the region before threads reach it, and holds
    /// the old value then, unless they reach it first. No other one can, because all that asks it
    /// lies behind it. So it has one value if all ways into it bring one.
    fn held(&self, join: NodeId, from: BlockId, region: &Region) -> Held {
        let (g, cfg) = (self.lanes.g, &self.analysis.cfg);
        let home = g.node(join).home;
        let is_first = || {
            cfg.succs[from.0 as usize]
                .iter()
                .all(|to| self.leads(*to, home) || region.end.is_some_and(|end| self.leads(*to, end)))
        };
        let ways = self.ways(home, from, region);
        // A loop that only waits brings the join itself.
        let mut others = Vec::new();
        for way in &ways {
            match arm(g, join, *way) {
                Some(n) if n == join => {}
                Some(n) => others.push((*way, n)),
                None => return Held::Unknown,
            }
        }
        match others[..] {
            [] if !ways.is_empty() => Held::Before,
            [(way, n)]
                if !region.returns && self.is_straight(from, way) && (!cfg.dominates(home, from) || is_first()) =>
            {
                Held::Brought(n)
            }
            [(_, n), ref rest @ ..]
                if !cfg.dominates(home, from)
                    && others.iter().all(|o| !self.is_straight(from, o.0))
                    && rest.iter().all(|r| r.1 == n) =>
            {
                Held::Within(n)
            }
            _ => Held::Unknown,
        }
    }

    /// Does nothing happen in a block that has one way in and one way out?
    fn is_plain(&self, b: BlockId) -> bool {
        let (b, cfg) = (b.0 as usize, &self.analysis.cfg);
        let is_straight = cfg.preds[b].len() == 1 && cfg.succs[b].len() == 1;
        is_straight && self.joins[b].is_empty() && self.accesses[b].is_empty() && self.map_steps[b].is_empty()
    }

    /// Do threads come from one block to another as they left it?
    fn is_straight(&self, from: BlockId, mut to: BlockId) -> bool {
        while to != from && self.is_plain(to) {
            to = self.analysis.cfg.preds[to.0 as usize][0];
        }
        to == from
    }

    /// Do threads at a block come to another one before they do anything?
    fn leads(&self, mut at: BlockId, to: BlockId) -> bool {
        while at != to && self.is_plain(at) {
            at = self.analysis.cfg.succs[at.0 as usize][0];
        }
        at == to
    }

    /// The blocks from which threads come to a block, on their way from another through a region.
    fn ways(&self, to: BlockId, from: BlockId, region: &Region) -> Vec<BlockId> {
        let before = self.analysis.cfg.preds[to.0 as usize].iter();
        before.copied().filter(|p| *p == from || region.blocks.contains(p)).collect()
    }

    /// The blocks that lanes may go through from one block to another, and which lanes: tests in
    /// between that are known come out as they do.
    fn may_reach(&mut self, from: BlockId, mask: &Mask, end: Option<BlockId>) -> Vec<(BlockId, Mask)> {
        let analysis = self.analysis;
        let mut reached: Vec<(BlockId, Mask)> = Vec::new();
        let mut work: Vec<(BlockId, Mask)> =
            analysis.cfg.succs[from.0 as usize].iter().map(|next| (*next, *mask)).collect();
        while let Some((b, new)) = work.pop() {
            if Some(b) == end {
                continue;
            }
            let at = reached.iter().position(|r| r.0 == b).unwrap_or_else(|| {
                reached.push((b, NO_LANES));
                reached.len() - 1
            });
            let before = reached[at].1;
            reached[at].1.iter_mut().zip(new).for_each(|(r, n)| *r |= n);
            let mask = reached[at].1;
            if mask == before {
                continue;
            }
            match analysis.branches[b.0 as usize] {
                Some(branch) if branch.taken != branch.fall && self.decides[b.0 as usize] => {
                    let [taken, fall, unknown] = self.lanes.get(branch.cond).decides(&mask);
                    let either = |known: Mask| std::array::from_fn(|k| known[k] | unknown[k]);
                    let ways = [(branch.taken, either(taken)), (branch.fall, either(fall))];
                    work.extend(ways.into_iter().filter_map(|(to, mask)| Some((to?, mask))));
                }
                _ => work.extend(analysis.cfg.succs[b.0 as usize].iter().map(|next| (*next, mask))),
            }
        }
        reached
    }

    fn region(&mut self, from: BlockId) -> Rc<Region> {
        if let Some(r) = self.regions.get(&from) {
            return r.clone();
        }
        let cfg = &self.analysis.cfg;
        let end = cfg.ipdom[from.0 as usize];
        let (mut blocks, mut work) = (Vec::new(), cfg.succs[from.0 as usize].to_vec());
        while let Some(b) = work.pop() {
            if Some(b) != end && !blocks.contains(&b) {
                blocks.push(b);
                work.extend(cfg.succs[b.0 as usize].iter().copied());
            }
        }
        let r = Rc::new(Region { returns: blocks.contains(&from), blocks, end });
        self.regions.insert(from, r.clone());
        r
    }
}

/// What two values have in common, for these lanes.
fn common(mut a: LaneValue, b: &LaneValue, mask: &Mask) -> LaneValue {
    if a.is_same(b) {
        return a;
    }
    for lane in lanes(mask) {
        let (tag, other) = (a.tags.at(lane), b.tags.at(lane));
        if tag != other || a.at(lane) != b.at(lane) {
            a.tags.each()[lane] = UNKNOWN;
        }
    }
    a
}
