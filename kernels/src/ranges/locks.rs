//! Critical sections: which accesses are made between taking a lock and giving it back.
//!
//! Owns the recognition. A lock is a word that is updated atomically, and whose old value decides
//! whether a thread goes on: `while (atomicCAS(&lock, 0, 1) != 0);`, `if (atomicExch(&lock, 1) ==
//! 0)`, `cuda::binary_semaphore`, a ticket. An access is *locked* when
//!
//! - branches on the result of an update lead to it, whatever way the thread takes (the first turn
//!   of a loop may be a separate copy), or the result is its own predicate;
//! - from there the thread comes to an atomic write through the same pointer, without taking the
//!   lock again: that gives it back;
//! - no such write lies between the two.
//!
//! Whether another kernel takes the same lock is not known here, nor whether the lock is meant to
//! protect these bytes. So a lock lowers a finding and does not withdraw it.

use crate::ir::cfg::Cfg;
use crate::ir::{BlockId, Reason};
use crate::ranges::graph::node::{Graph, Kind, NodeId};
use crate::ranges::graph::provenance::Provenance;
use rustc_hash::FxHashSet;

/// Nodes looked through for one condition.
const MAX_NODES: usize = 400;

/// A branch that a lock decides: its block, and the instructions that update the lock.
struct Acquisition {
    block: BlockId,
    updates: Vec<u32>,
}

/// Which accesses are locked.
pub(super) fn locked(g: &Graph, cfg: &Cfg, origins: &[Provenance]) -> Vec<bool> {
    let updates: FxHashSet<u32> =
        g.accesses.iter().filter(|a| a.kind.is_atomic() && a.kind.writes() && a.kind.reads()).map(|a| a.at).collect();
    let mut found = vec![false; g.accesses.len()];
    if updates.is_empty() {
        return found;
    }
    let branches = g.conds.iter().enumerate().filter_map(|(b, cond)| {
        let updates = updates_behind(g, (*cond)?, &updates);
        (!updates.is_empty()).then_some(Acquisition { block: BlockId(b as u32), updates })
    });
    let branches: Vec<Acquisition> = branches.collect();
    for (k, access) in g.accesses.iter().enumerate().filter(|(_, a)| !a.kind.is_atomic()) {
        let section = Section { g, cfg, origins, access: k };
        let own = access.guard.map(|guard| updates_behind(g, guard, &updates)).filter(|updates| !updates.is_empty());
        found[k] = own.is_some_and(|updates| section.is_closed(access.block, &[access.block], &updates))
            || entries(cfg, access.block, &branches).any(|(entry, taken)| {
                let blocks: Vec<BlockId> = taken.iter().map(|branch| branch.block).collect();
                let updates: Vec<u32> = taken.iter().flat_map(|branch| &branch.updates).copied().collect();
                section.is_closed(entry, &blocks, &updates)
            });
    }
    found
}

/// The blocks above `b`, and itself, that are entered from such branches only, with these; nearest
/// first.
fn entries<'a>(
    cfg: &'a Cfg,
    b: BlockId,
    branches: &'a [Acquisition],
) -> impl Iterator<Item = (BlockId, Vec<&'a Acquisition>)> {
    let above = std::iter::successors(Some(b), |b| (b.0 != 0).then(|| cfg.idom[b.0 as usize]));
    above.filter_map(|at| {
        let outside = cfg.preds[at.0 as usize].iter().filter(|p| !dominates(cfg, at, **p));
        let taken = |p: &BlockId| branches.iter().find(|a| a.block == *p && cfg.succs[p.0 as usize].len() > 1);
        let all: Option<Vec<&Acquisition>> = outside.map(taken).collect();
        Some((at, all.filter(|all| !all.is_empty())?))
    })
}

/// The updates whose results a condition rests on.
fn updates_behind(g: &Graph, cond: NodeId, updates: &FxHashSet<u32>) -> Vec<u32> {
    let (mut work, mut seen, mut found) = (vec![cond], FxHashSet::default(), Vec::new());
    while let Some(n) = work.pop() {
        if !seen.insert(n) || seen.len() > MAX_NODES {
            continue;
        }
        if let Kind::Opaque(Reason::AtomicResult) = g.node(n).kind
            && let Some(at) = g.made_at.get(&n).filter(|at| updates.contains(at))
        {
            found.push(*at);
        }
        work.extend(g.operands(n));
    }
    found
}

fn dominates(cfg: &Cfg, a: BlockId, mut b: BlockId) -> bool {
    while b != a && b.0 != 0 {
        b = cfg.idom[b.0 as usize];
    }
    b == a
}

/// What follows the taking of a lock.
struct Section<'a> {
    g: &'a Graph,
    cfg: &'a Cfg,
    origins: &'a [Provenance],
    access: usize,
}

impl Section<'_> {
    /// Is the lock given back behind the access, and not before it? `entry`: where the section
    /// begins, `taken`: the blocks in which the lock is taken.
    fn is_closed(&self, entry: BlockId, taken: &[BlockId], updates: &[u32]) -> bool {
        let accesses = &self.g.accesses;
        let own = &accesses[self.access];
        let lock: Vec<&Provenance> =
            accesses.iter().zip(self.origins).filter(|(a, _)| updates.contains(&a.at)).map(|(_, from)| from).collect();
        let same = |from: &Provenance| {
            lock.iter().any(|l| !l.words.is_disjoint(&from.words) || !l.symbols.is_disjoint(&from.symbols))
        };
        let releases = (0..accesses.len()).filter(|k| {
            let a = &accesses[*k];
            a.kind.is_atomic() && a.kind.writes() && !updates.contains(&a.at) && same(&self.origins[*k])
        });
        let behind = self.reachable(own.block, taken);
        let (mut closes, mut opens) = (false, false);
        for k in releases {
            let at = accesses[k].block;
            let (later, earlier) = (at == own.block && k > self.access, at == own.block && k < self.access);
            closes |= later || at != own.block && behind.contains(&at);
            opens |=
                (earlier || at != own.block && dominates(self.cfg, at, own.block)) && dominates(self.cfg, entry, at);
        }
        closes && !opens
    }

    /// The blocks that a thread may come to without passing some blocks.
    fn reachable(&self, from: BlockId, without: &[BlockId]) -> FxHashSet<BlockId> {
        let mut found = FxHashSet::default();
        let mut work: Vec<BlockId> = self.cfg.succs[from.0 as usize].to_vec();
        while let Some(b) = work.pop() {
            if !without.contains(&b) && found.insert(b) {
                work.extend(&self.cfg.succs[b.0 as usize]);
            }
        }
        found
    }
}
