//! Critical sections: which accesses are made between taking a lock and giving it back.
//!
//! Owns the recognition. A lock is a word that is updated atomically, and whose old value decides
//! whether a thread goes on: `while (atomicCAS(&lock, 0, 1) != 0);`, `if (atomicExch(&lock, 1) ==
//! 0)`, `cuda::binary_semaphore`, a ticket. An access is *locked* when
//!
//! - branches on the result of an update lead to it, whatever way the thread takes (the first turn
//!   of a loop may be a separate copy), or the result is its own predicate;
//! - from there the thread comes to an atomic write through the same pointer, or to the same
//!   address, without taking the lock again: that gives it back;
//! - no such write lies between the two.
//!
//! The *words* of a lock are what its updates go through. A lock that is given back through
//! another address than it is taken through has more than one word (a ticket and the number that
//! is served, Peterson's flags): then the words that give it back belong to it.
//!
//! Whether another kernel takes the same lock is decided for each pair of launches, by the
//! addresses of the words. Whether the lock is meant to protect these bytes is not known. So a lock
//! lowers a finding and does not withdraw it.

use crate::ir::cfg::Cfg;
use crate::ir::{BlockId, Reason};
use crate::ranges::graph::node::{Graph, Kind, NodeId, Target};
use crate::ranges::graph::provenance::Provenance;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// Nodes looked through for one condition.
const MAX_NODES: usize = 400;

/// A branch that a lock decides: its block, and the instructions that update the lock.
struct Acquisition {
    block: BlockId,
    updates: Vec<u32>,
}

/// The words of the locks that are held during an access: the numbers of the accesses that take
/// them, or give them back. None: it is not locked.
pub(super) type Words = SmallVec<[u32; 2]>;

/// Under which locks each access is made.
pub(super) fn locks(g: &Graph, cfg: &Cfg, origins: &[Provenance]) -> Vec<Words> {
    let updates: FxHashSet<u32> =
        g.accesses.iter().filter(|a| a.kind.is_atomic() && a.kind.writes() && a.kind.reads()).map(|a| a.at).collect();
    let mut found = vec![Words::new(); g.accesses.len()];
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
        if let Some(updates) = own {
            section.close(access.block, &[access.block], &updates, &mut found[k]);
        }
        for (entry, taken) in entries(cfg, access.block, &branches) {
            let blocks: Vec<BlockId> = taken.iter().map(|branch| branch.block).collect();
            let updates: Vec<u32> = taken.iter().flat_map(|branch| &branch.updates).copied().collect();
            section.close(entry, &blocks, &updates, &mut found[k]);
        }
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
    /// If the lock is given back behind the access, and not before it: adds its words. `entry`:
    /// where the section begins, `taken`: the blocks in which the lock is taken.
    fn close(&self, entry: BlockId, taken: &[BlockId], updates: &[u32], words: &mut Words) {
        let accesses = &self.g.accesses;
        let own = &accesses[self.access];
        let takes: Vec<usize> = (0..accesses.len()).filter(|k| updates.contains(&accesses[*k].at)).collect();
        let address = |k: usize| match accesses[k].target {
            Target::Address(address) => Some(address),
            _ => None,
        };
        let at_one_address = |k: usize| address(k).is_some() && takes.iter().any(|t| address(*t) == address(k));
        let same = |k: usize| {
            let from = &self.origins[k];
            let mut locks = takes.iter().map(|k| &self.origins[*k]);
            locks.any(|l| !l.words.is_disjoint(&from.words) || !l.symbols.is_disjoint(&from.symbols))
                || at_one_address(k)
        };
        let is_release = |k: &usize| {
            let a = &accesses[*k];
            a.kind.is_atomic() && a.kind.writes() && !updates.contains(&a.at) && same(*k)
        };
        let releases: Vec<usize> = (0..accesses.len()).filter(is_release).collect();
        let behind = self.reachable(own.block, taken);
        let (mut closes, mut opens) = (false, false);
        for &k in &releases {
            let at = accesses[k].block;
            let (later, earlier) = (at == own.block && k > self.access, at == own.block && k < self.access);
            closes |= later || at != own.block && behind.contains(&at);
            opens |=
                (earlier || at != own.block && dominates(self.cfg, at, own.block)) && dominates(self.cfg, entry, at);
        }
        if !closes || opens {
            return;
        }
        let others = if releases.iter().any(|k| at_one_address(*k)) { &[][..] } else { &releases };
        for word in takes.iter().chain(others).map(|k| *k as u32) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
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
