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
//! - no write to the same address lies between the two. (Of a write to another address through the
//!   same pointer, nothing says which lock it gives back: locks that nest may be elements of one
//!   array.)
//! - an acquire lies on each way from the taking to the access, and a release on each way from
//!   there to a write that gives the lock back: a fence of the device or the system, or the order
//!   of the update itself. A lock without them excludes threads but orders no memory ("Memory
//!   Consistency Model", PTX ISA; "Atomic Functions", programming guide). Where a call is not
//!   followed, its code may have them. [`Fenced::IfMeasured`] leaves this out: where the code has
//!   fences on some ways only, a measured launch tells which it has executed.
//!
//! A launch may be asked for the lock: `if (locked) take(lock);`. Then the branches that rest on
//! nothing but the launch, and lead past atomic accesses on one side only, are taken to lead to
//! them. An access that is locked so counts as locked in launches that take all these branches.
//!
//! Such an access may be made under more locks, which a thread takes only if it needs them: `if
//! (second != first) take(second);`. They count too.
//!
//! The *words* of a lock are what its updates go through. A lock that is given back through
//! another address than it is taken through has more than one word (a ticket and the number that
//! is served, Peterson's flags): then the words that give it back belong to it.
//!
//! Whether another kernel takes the same lock is decided for each pair of launches, by the
//! addresses of the words. Whether the lock is meant to protect these bytes is not known. So a lock
//! lowers a finding and does not withdraw it.

use crate::ir::cfg::Cfg;
use crate::ir::{BlockId, Reason, Special, Sync};
use crate::ranges::eval::conditions::Branch;
use crate::ranges::graph::node::{Access, Graph, Kind, NodeId, Target};
use crate::ranges::graph::provenance::Provenance;
use crate::ranges::ways::{self, Edge, Point, Stops};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Nodes looked through for one condition.
const MAX_NODES: usize = 400;

/// A branch that a lock decides: its block, and the instructions that update the lock.
struct Acquisition {
    block: BlockId,
    updates: Vec<Update>,
}

/// An instruction that updates memory and asks for the old value: its block, and its place in the
/// code. A function that is called twice has two of them at one place.
pub(super) type Update = (BlockId, u32);

/// The words of the locks that are held during an access: the numbers of the accesses that take
/// them, or give them back. None: it is not locked.
pub(super) type Words = SmallVec<[u32; 2]>;

/// The words that order an access: the numbers of the accesses that go through them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Held {
    /// The locks that are held during the access.
    pub(super) words: Words,
    /// They are held only where the launch takes the locks that it may be asked for: see
    /// [`asked_for`].
    pub(super) asked: bool,
    /// The words that the thread has claimed before the access: see [`crate::ranges::claims`].
    pub(super) claims: Words,
    /// The words that tell others that the access was made: see [`crate::ranges::handovers`].
    pub(super) gives: Words,
    /// The words that tell that it may be made.
    pub(super) awaits: Words,
}

impl Held {
    /// Nothing orders the access.
    pub(super) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// The accesses that go through any of the words.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> + '_ {
        let orders = self.gives.iter().chain(&self.awaits);
        self.words.iter().chain(&self.claims).chain(orders).copied()
    }
}

/// Which fences count as executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fenced {
    /// Those that lie on each way.
    Surely,
    /// All that are needed: a measurement says which were.
    IfMeasured,
}

/// Under which locks each access is made, and the branches that launches have to take for those
/// which they are asked for.
pub(super) fn held(
    g: &Graph,
    cfg: &Cfg,
    branches: &[Option<Branch>],
    origins: &[Provenance],
    fenced: Fenced,
) -> (Vec<Held>, Vec<(NodeId, bool)>) {
    let of = |words: Words| Held { words, ..Held::default() };
    let mut found: Vec<Held> = locks(g, cfg, origins, fenced).into_iter().map(of).collect();
    let takes = |a: &Access| a.kind.is_atomic() && a.kind.writes() && a.kind.reads();
    if !g.accesses.iter().any(takes) {
        return (found, Vec::new());
    }
    let (asked, cut) = asked_for(g, cfg, branches);
    if asked.is_empty() {
        return (found, Vec::new());
    }
    let mut used = false;
    for (held, words) in found.iter_mut().zip(locks(g, &cfg.without(&cut), origins, fenced)) {
        if held.words.is_empty() && !words.is_empty() {
            (held.words, held.asked, used) = (words, true, true);
        }
    }
    (found, if used { asked } else { Vec::new() })
}

/// A condition, and whether a launch asks for atomic accesses where it holds.
type Asked = (NodeId, bool);

/// The branches by which a launch is asked for atomic accesses (`if (locked) take(lock);`): their
/// conditions, and whether they ask where they hold. And the edges that lead past those accesses.
fn asked_for(g: &Graph, cfg: &Cfg, branches: &[Option<Branch>]) -> (Vec<Asked>, Vec<Edge>) {
    let (mut asked, mut cut) = (Vec::new(), Vec::new());
    for (b, branch) in branches.iter().enumerate() {
        let Some(Branch { cond, taken: Some(taken), fall: Some(fall) }) = *branch else { continue };
        let (block, Some(meet)) = (BlockId(b as u32), cfg.ipdom[b]) else { continue };
        let updates = |way: BlockId| {
            let inside = reachable(cfg, way, &[meet, block]);
            let is_inside = |a: &Access| a.kind.is_atomic() && (a.block == way || inside.contains(&a.block));
            way != meet && g.accesses.iter().any(is_inside)
        };
        if is_uniform(g, cond) {
            let (yes, no) = (updates(taken), updates(fall));
            if yes != no {
                asked.push((cond, yes));
                cut.push((block, if yes { fall } else { taken }));
            }
        }
    }
    (asked, cut)
}

/// Whether a condition rests on nothing but what is the same in all threads of a launch.
pub(super) fn is_uniform(g: &Graph, cond: NodeId) -> bool {
    let (mut work, mut seen) = (vec![cond], FxHashSet::default());
    while let Some(n) = work.pop() {
        if !seen.insert(n) {
            continue;
        }
        match &g.node(n).kind {
            Kind::Param(..) | Kind::Const(_) | Kind::Special(Special::Ntid(_) | Special::Nctaid(_)) => {}
            kind if !kind.is_made() || seen.len() > MAX_NODES || g.operands(n).is_empty() => return false,
            _ => work.extend(g.operands(n)),
        }
    }
    true
}

/// Under which locks each access is made.
fn locks(g: &Graph, cfg: &Cfg, origins: &[Provenance], fenced: Fenced) -> Vec<Words> {
    let is_update = |a: &&Access| a.kind.is_atomic() && a.kind.writes() && a.kind.reads();
    let updates: FxHashSet<Update> = g.accesses.iter().filter(is_update).map(|a| (a.block, a.at)).collect();
    let mut found = vec![Words::new(); g.accesses.len()];
    if updates.is_empty() {
        return found;
    }
    let branches = g.conds.iter().enumerate().filter_map(|(b, cond)| {
        let updates = updates_behind(g, (*cond)?, &updates);
        (!updates.is_empty()).then_some(Acquisition { block: BlockId(b as u32), updates })
    });
    let branches: Vec<Acquisition> = branches.collect();
    let fences = Fences::of(g, cfg, fenced);
    for (k, access) in g.accesses.iter().enumerate().filter(|(_, a)| !a.kind.is_atomic()) {
        let section = Section { g, cfg, origins, fences: &fences, access: k };
        let own = access.guard.map(|guard| updates_behind(g, guard, &updates)).filter(|updates| !updates.is_empty());
        if let Some(updates) = own {
            section.close(access.block, &[access.block], &updates, &mut found[k]);
        }
        for (entry, taken) in entries(cfg, access.block, &branches) {
            let blocks: Vec<BlockId> = taken.iter().map(|branch| branch.block).collect();
            let updates: Vec<Update> = taken.iter().flat_map(|branch| &branch.updates).copied().collect();
            section.close(entry, &blocks, &updates, &mut found[k]);
        }
    }
    let mut reached: Vec<Option<MayHold>> = branches.iter().map(|_| None).collect();
    for (k, words) in found.iter_mut().enumerate().filter(|(_, words)| !words.is_empty()) {
        for (branch, reached) in branches.iter().zip(&mut reached) {
            let may_hold = reached.get_or_insert_with(|| MayHold::behind(g, cfg, branch));
            if may_hold.during(g, cfg, k) {
                let more: Words = may_hold.takes.iter().copied().filter(|word| !words.contains(word)).collect();
                words.extend(more);
            }
        }
    }
    found
}

/// Where a thread may hold a lock that it has taken.
struct MayHold {
    /// The block behind which it is held.
    branch: BlockId,
    /// The accesses that take it.
    takes: Words,
    /// The accesses that give it back.
    gives: Words,
    /// The blocks that a thread may come to without giving it back before.
    blocks: FxHashSet<BlockId>,
}

impl MayHold {
    fn behind(g: &Graph, cfg: &Cfg, branch: &Acquisition) -> MayHold {
        let (mut takes, mut gives) = (Words::new(), Words::new());
        let is_taken = |a: &Access| branch.updates.contains(&(a.block, a.at));
        takes.extend((0_u32..).zip(&g.accesses).filter(|(_, a)| is_taken(a)).map(|(k, _)| k));
        for (k, a) in (0_u32..).zip(&g.accesses) {
            let Target::Address(to) = a.target else { continue };
            let at_one_address = |t: &u32| match g.accesses[*t as usize].target {
                Target::Address(from) => same_value(g, from, to),
                _ => false,
            };
            if a.kind.is_atomic() && a.kind.writes() && !is_taken(a) && takes.iter().any(at_one_address) {
                gives.push(k);
            }
        }
        let without: Vec<BlockId> = gives.iter().map(|k| g.accesses[*k as usize].block).collect();
        MayHold { branch: branch.block, takes, gives, blocks: reachable(cfg, branch.block, &without) }
    }

    fn during(&self, g: &Graph, cfg: &Cfg, access: usize) -> bool {
        let block = g.accesses[access].block;
        let mut given = self.gives.iter().filter(|k| g.accesses[**k as usize].block == block).peekable();
        if given.peek().is_none() {
            return self.blocks.contains(&block);
        }
        // The block is entered with the lock, and it is given back behind the access only.
        let entered = cfg.preds[block.0 as usize].iter().any(|p| self.blocks.contains(p) || *p == self.branch);
        entered && given.all(|k| *k as usize > access)
    }
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
fn updates_behind(g: &Graph, cond: NodeId, updates: &FxHashSet<Update>) -> Vec<Update> {
    let (mut work, mut seen, mut found) = (vec![cond], FxHashSet::default(), Vec::new());
    while let Some(n) = work.pop() {
        if !seen.insert(n) || seen.len() > MAX_NODES {
            continue;
        }
        if let Kind::Opaque(Reason::AtomicResult) = g.node(n).kind
            && let Some(update) = g.made_at.get(&n).map(|at| (g.node(n).home, *at)).filter(|u| updates.contains(u))
        {
            found.push(update);
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

/// Where a kernel orders memory.
struct Fences {
    acquires: Stops,
    releases: Stops,
    /// Calls that are not followed may order it, too; or it is not asked whether it is ordered.
    unseen: bool,
}

impl Fences {
    fn of(g: &Graph, cfg: &Cfg, fenced: Fenced) -> Fences {
        let [acquires, releases] =
            [Sync::acquires, Sync::releases].map(|is: fn(Sync) -> bool| ways::stops(g, cfg.succs.len(), is));
        let unseen = fenced == Fenced::IfMeasured
            || g.accesses.iter().any(|a| matches!(a.target, Target::Passed(_) | Target::Unknown(_)));
        Fences { acquires, releases, unseen }
    }

    /// Whether all ways from one access to another pass one of these.
    fn lie_between(g: &Graph, cfg: &Cfg, stops: &Stops, (from, to): (usize, usize)) -> bool {
        let [from, to] = [from, to].map(|k| Point::of_access(g, k as u32));
        !ways::leads(cfg, from, to, stops, &[])
    }
}

/// What follows the taking of a lock.
struct Section<'a> {
    g: &'a Graph,
    cfg: &'a Cfg,
    origins: &'a [Provenance],
    fences: &'a Fences,
    access: usize,
}

impl Section<'_> {
    /// If the lock is given back behind the access, and not before it: adds its words. `entry`:
    /// where the section begins, `taken`: the blocks in which the lock is taken.
    fn close(&self, entry: BlockId, taken: &[BlockId], updates: &[Update], words: &mut Words) {
        let accesses = &self.g.accesses;
        let own = &accesses[self.access];
        let update = |k: usize| (accesses[k].block, accesses[k].at);
        let takes: Vec<usize> = (0..accesses.len()).filter(|k| updates.contains(&update(*k))).collect();
        let address = |k: usize| match accesses[k].target {
            Target::Address(address) => Some(address),
            _ => None,
        };
        let at_one_address = |k: usize| {
            let taken = takes.iter().filter_map(|t| address(*t));
            address(k).is_some_and(|to| taken.into_iter().any(|from| same_value(self.g, from, to)))
        };
        let akin = |k: usize| {
            let from = &self.origins[k];
            let mut locks = takes.iter().map(|k| &self.origins[*k]);
            locks.any(|l| !l.words.is_disjoint(&from.words) || !l.symbols.is_disjoint(&from.symbols))
                || at_one_address(k)
        };
        // (Code that no launch comes to gives nothing back.)
        let is_release = |k: &usize| {
            let a = &accesses[*k];
            let writes = a.kind.is_atomic() && a.kind.writes() && self.cfg.order[a.block.0 as usize] != u32::MAX;
            writes && !updates.contains(&update(*k)) && akin(*k)
        };
        let releases: Vec<usize> = (0..accesses.len()).filter(is_release).collect();
        let exact: Vec<usize> = releases.iter().copied().filter(|k| at_one_address(*k)).collect();
        let given_back_between = |k: usize| {
            let at = accesses[k].block;
            let earlier = at == own.block && k < self.access;
            (earlier || at != own.block && dominates(self.cfg, at, own.block)) && dominates(self.cfg, entry, at)
        };
        let behind = reachable(self.cfg, own.block, taken);
        let later = |k: usize| match accesses[k].block {
            at if at == own.block => k > self.access,
            at => behind.contains(&at),
        };
        let opens = exact.iter().any(|k| given_back_between(*k));
        if opens || !releases.iter().any(|k| later(*k)) {
            return;
        }
        let fences = self.fences;
        let between = |stops, from, to| fences.unseen || Fences::lie_between(self.g, self.cfg, stops, (from, to));
        let acquires = |take: &usize| between(&fences.acquires, *take, self.access);
        let released = |give: &usize| later(*give) && between(&fences.releases, self.access, *give);
        if !takes.iter().all(acquires) || !releases.iter().any(released) {
            return;
        }
        let others = if exact.is_empty() { &releases[..] } else { &[] };
        for word in takes.iter().chain(others).map(|k| *k as u32) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
    }
}

/// The blocks that a thread may come to without passing some blocks.
fn reachable(cfg: &Cfg, from: BlockId, without: &[BlockId]) -> FxHashSet<BlockId> {
    let mut found = FxHashSet::default();
    let mut work: Vec<BlockId> = cfg.succs[from.0 as usize].to_vec();
    while let Some(b) = work.pop() {
        if !without.contains(&b) && found.insert(b) {
            work.extend(&cfg.succs[b.0 as usize]);
        }
    }
    found
}

/// Whether two nodes stand for one value: the same function of the same values, wherever it is
/// computed. A word that a thread loads twice from one address counts as one: the pointer to a lock
/// does not change while the lock is held.
pub(super) fn same_value(g: &Graph, a: NodeId, b: NodeId) -> bool {
    let mut budget = MAX_NODES;
    same(g, a, b, &mut budget)
}

fn same(g: &Graph, a: NodeId, b: NodeId, budget: &mut usize) -> bool {
    if a == b {
        return true;
    }
    let ((x, y), operands) = ((&g.node(a).kind, &g.node(b).kind), (g.operands(a), g.operands(b)));
    let Some(left) = budget.checked_sub(1) else { return false };
    *budget = left;
    if operands.0.len() != operands.1.len() || g.node(a).width != g.node(b).width {
        return false;
    }
    let pairwise = |budget: &mut usize| operands.0.iter().zip(&operands.1).all(|(a, b)| same(g, *a, *b, budget));
    match (x, y) {
        // The order of the terms depends on where they were made.
        (Kind::Lin(s, c), Kind::Lin(t, d)) => {
            let mut rest: SmallVec<[(NodeId, i64); 3]> = t.clone();
            c == d
                && s.iter().all(|(n, factor)| {
                    let found = rest.iter().position(|(m, other)| factor == other && same(g, *n, *m, budget));
                    found.map(|at| rest.swap_remove(at)).is_some()
                })
        }
        (Kind::MulWide(s, ..), Kind::MulWide(t, ..))
        | (Kind::MulHi(s, ..), Kind::MulHi(t, ..))
        | (Kind::Extend(s, _), Kind::Extend(t, _))
        | (Kind::Shr(s, ..), Kind::Shr(t, ..))
        | (Kind::Div(s, ..), Kind::Div(t, ..))
        | (Kind::Rem(s, ..), Kind::Rem(t, ..)) => s == t && pairwise(budget),
        (Kind::MinMax(s, u, ..), Kind::MinMax(t, v, ..)) => (s, u) == (t, v) && pairwise(budget),
        (Kind::Ext(s, u, _), Kind::Ext(t, v, _)) => (s, u) == (t, v) && pairwise(budget),
        (Kind::Lop3(s, ..), Kind::Lop3(t, ..)) => s == t && pairwise(budget),
        (Kind::Cmp(s, u, ..), Kind::Cmp(t, v, ..)) => (s, u) == (t, v) && pairwise(budget),
        (Kind::ParamIndexed(s, u, v, _), Kind::ParamIndexed(t, w, z, _)) => (s, u, v) == (t, w, z) && pairwise(budget),
        (Kind::Mul(..), Kind::Mul(..))
        | (Kind::Lo(_), Kind::Lo(_))
        | (Kind::Hi(_), Kind::Hi(_))
        | (Kind::High(_), Kind::High(_))
        | (Kind::Pack(..), Kind::Pack(..))
        | (Kind::Shl(..), Kind::Shl(..))
        | (Kind::Abs(_), Kind::Abs(_))
        | (Kind::Sel(..), Kind::Sel(..))
        | (Kind::Not(_), Kind::Not(_))
        | (Kind::NonZero(_), Kind::NonZero(_))
        | (Kind::Loaded(_), Kind::Loaded(_)) => pairwise(budget),
        _ => operands.0.is_empty() && x.is_made() && x == y,
    }
}
