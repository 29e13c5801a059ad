//! Handovers: which accesses an atomic store publishes, and which wait for one.
//!
//! Owns the recognition of mailboxes between kernels. One kernel writes data, and then a flag by an
//! atomic store behind a release; another kernel loads the flag atomically, with an acquire behind
//! the load, and a branch on the loaded value leads to its accesses. If the load saw the store, the
//! two order the data (PTX ISA, "Memory Consistency Model", "Causality order"). Which store a load
//! saw is not known from the code, so a handover lowers a finding and does not withdraw it.
//!
//! An access *gives* a word if an atomic write to the word follows it, and
//!
//! - a release lies on each way between the two: a fence of the device or the system, or the order
//!   of the write itself;
//! - the thread of the access makes the write, too (it lies on all ways to the end), or a barrier
//!   lies on each way between the two: another thread of the block may write the flag for all;
//! - no way leads from the write back to the access without a wait: it would come too late.
//!
//! An access *awaits* a word if an atomic load (or the result of an update) of the word decides
//! that it is made, and an acquire lies on each way between the two. The load decides
//!
//! - if every way to the access goes through a branch on the loaded value, in the direction that
//!   leads there without another look, or if that value is in the access's own predicate. Where
//!   both directions lead there, nobody has looked at the value;
//! - or if the value is passed on through shared memory or other lanes, to such a branch. Between
//!   the load and the branch lies a barrier, also for the threads that have not looked. Which word
//!   of shared memory is meant is not followed;
//! - or if every way to the access goes through a barrier that the threads which look reach behind
//!   such a branch only. Threads that do not look are told by their numbers in the block.
//!
//! [`Fenced::IfMeasured`] leaves out both orders: a measured launch tells which fences it executed.
//!
//! Without fences and orders, relaxed and volatile flags order nothing, and nothing is recognised.
//! In machine code, the release is a `MEMBAR` and the acquire invalidates the first-level cache.

use crate::ir::cfg::Cfg;
use crate::ir::{BlockId, Combine, Reason, Special, Sync};
use crate::ranges::eval::conditions::Branch;
use crate::ranges::graph::node::{Access, Graph, Kind, NodeId};
use crate::ranges::locks::{Fenced, Held, Update, Words};
use crate::ranges::ways::{self, Edge, Entered, Point, Stops, stops};
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};

/// Atomic accesses of a kernel, and barriers, beyond which handovers are not looked for.
const MOST: usize = 128;

/// Blocks visited for all accesses of a kernel, beyond which they are not looked for.
const MAX_VISITS: usize = 2_000_000;

/// Nodes looked through for one condition.
const MAX_NODES: usize = 400;

/// A branch that looks may decide.
struct Choice {
    block: BlockId,
    /// Where it leads; `None`: the thread ends.
    ways: [Option<BlockId>; 2],
    /// The looks that each way tells something about.
    looks: [Words; 2],
}

/// What a condition rests on.
#[derive(Default)]
struct Basis {
    looks: Vec<Update>,
    shared: bool,
    lanes: bool,
}

/// A load whose result may decide something, and where ways lead from there.
struct Look {
    access: u32,
    at: Point,
    to: Entered,
    without_acquire: Entered,
    without_barrier: Entered,
}

struct Flow<'a> {
    g: &'a Graph,
    cfg: &'a Cfg,
    branches: &'a [Option<Branch>],
    fenced: Fenced,
    free: Stops,
    releases: Stops,
    acquires: Stops,
    barriers: Stops,
    looks: Vec<Look>,
    choices: Vec<Choice>,
    /// Where the looks are that some choice rests on.
    looked: Stops,
    /// Barriers that threads reach only behind a look, and the words that they look at.
    awaited: Vec<(Point, Words)>,
}

/// Gives the accesses that no lock protects their part in a handover.
pub(super) fn mark(g: &Graph, cfg: &Cfg, branches: &[Option<Branch>], fenced: Fenced, held: &mut [Held]) {
    let releases = g.syncs.iter().any(|s| s.sync.releases());
    let acquires = g.syncs.iter().any(|s| s.sync.acquires());
    let of = |wanted: bool, is: fn(&Access) -> bool| -> Vec<u32> {
        let found = (0_u32..).zip(&g.accesses).filter(|(_, a)| wanted && a.kind.is_atomic() && is(a));
        found.map(|(k, _)| k).collect()
    };
    let (looks, stores) = (of(acquires, |a| a.kind.reads()), of(releases, |a| a.kind.writes()));
    let open = |k: &usize| !g.accesses[*k].kind.is_atomic() && held[*k].words.is_empty();
    let plain: Vec<usize> = (0..held.len()).filter(open).collect();
    let atomic = looks.len() + stores.len();
    let visits = (plain.len() + atomic).saturating_mul(4 + atomic).saturating_mul(cfg.rpo.len());
    if atomic == 0 || atomic > MOST || plain.is_empty() || visits > MAX_VISITS {
        return;
    }
    let flow = Flow::new(g, cfg, branches, fenced, &looks);
    for k in plain {
        let at = Point::of_access(g, k as u32);
        let (awaits, edges) = flow.awaits(at, g.accesses[k].guard);
        let gives = stores.iter().copied().filter(|store| flow.gives(k as u32, *store, &edges)).collect();
        (held[k].gives, held[k].awaits) = (gives, awaits);
    }
}

impl<'a> Flow<'a> {
    fn new(g: &'a Graph, cfg: &'a Cfg, branches: &'a [Option<Branch>], fenced: Fenced, looks: &[u32]) -> Flow<'a> {
        let blocks = cfg.succs.len();
        let mut flow = Flow {
            g,
            cfg,
            branches,
            fenced,
            free: vec![Vec::new(); blocks],
            releases: stops(g, blocks, Sync::releases),
            acquires: stops(g, blocks, Sync::acquires),
            barriers: stops(g, blocks, Sync::is_barrier),
            looks: Vec::new(),
            choices: Vec::new(),
            looked: vec![Vec::new(); blocks],
            awaited: Vec::new(),
        };
        let look = |k: &u32| {
            let at = Point::of_access(g, *k);
            let [to, without_acquire, without_barrier] =
                [&flow.free, &flow.acquires, &flow.barriers].map(|stops| ways::from(cfg, at, stops, &[]));
            Look { access: *k, at, to, without_acquire, without_barrier }
        };
        flow.looks = looks.iter().map(look).collect();
        flow.choices = flow.choices();
        for look in &flow.looks {
            if flow.choices.iter().any(|choice| choice.looks.iter().flatten().any(|k| *k == look.access)) {
                flow.looked[look.at.block.0 as usize].push(look.at.place);
            }
        }
        let barriers = (0_u32..).zip(&g.syncs).filter(|(_, s)| s.sync.is_barrier()).map(|(k, _)| k);
        let barriers: Vec<u32> = barriers.collect();
        if !flow.choices.is_empty() && barriers.len() <= MOST {
            let awaited = barriers.into_iter().map(|k| Point::of_sync(g, k)).filter_map(|at| flow.awaited(at));
            flow.awaited = awaited.collect();
        }
        flow
    }

    /// The branches that rest on looks.
    fn choices(&self) -> Vec<Choice> {
        let choice = |(b, branch): (usize, &Option<Branch>)| {
            let branch = (*branch)?;
            let block = BlockId(b as u32);
            let at = Point { block, place: u64::MAX };
            let looks = [true, false].map(|outcome| self.looks_told(branch.cond, outcome, at));
            let ways = [branch.taken, branch.fall];
            (looks.iter().any(|looks| !looks.is_empty()) && ways[0] != ways[1]).then_some(Choice { block, ways, looks })
        };
        self.branches.iter().enumerate().filter_map(choice).collect()
    }

    /// The looks that a condition at a place tells something about when it has an outcome. (That
    /// not both hold, the flag is clear and there are tries left, tells nothing about the flag.)
    fn looks_told(&self, cond: NodeId, outcome: bool, at: Point) -> Words {
        let (table, inputs): (u8, SmallVec<[NodeId; 3]>) = match self.g.node(cond).kind {
            Kind::Not(p) => return self.looks_told(p, !outcome, at),
            Kind::Combine(Combine::And, p, q) => (0b1000, smallvec![p, q]),
            Kind::Combine(Combine::Or, p, q) => (0b1110, smallvec![p, q]),
            Kind::Combine(Combine::Xor, p, q) => (0b0110, smallvec![p, q]),
            Kind::PLut(table, inputs) => (table, SmallVec::from_slice(&inputs)),
            _ => return self.looks_behind(cond, at),
        };
        let constant = |n: NodeId| match self.g.node(n).kind {
            Kind::Const(c) => Some(c != 0),
            _ => None,
        };
        // The first input is the highest bit of a row.
        let value = |row: usize, k: usize| row >> (inputs.len() - 1 - k) & 1 == 1;
        let is_possible = |row: &usize| {
            let fits = |k: usize| constant(inputs[k]).is_none_or(|known| known == value(*row, k));
            (table >> row & 1 == 1) == outcome && (0..inputs.len()).all(fits)
        };
        let rows: SmallVec<[usize; 8]> = (0..1 << inputs.len()).filter(is_possible).collect();
        let variable: SmallVec<[usize; 3]> = (0..inputs.len()).filter(|k| constant(inputs[*k]).is_none()).collect();
        let mut told = Words::new();
        for k in &variable {
            for is in [true, false] {
                if rows.iter().all(|row| value(*row, *k) == is) {
                    told.extend(self.looks_told(inputs[*k], is, at));
                }
            }
        }
        let all: SmallVec<[Words; 3]> = variable.iter().map(|k| self.looks_behind(inputs[*k], at)).collect();
        if told.is_empty() && all.iter().all(|looks| !looks.is_empty()) {
            told = all.into_iter().flatten().collect();
        }
        told
    }

    /// The looks that a condition at a place rests on.
    fn looks_behind(&self, cond: NodeId, at: Point) -> Words {
        let basis = self.basis(cond);
        // What another thread has seen comes here by a barrier.
        let met = (basis.lanes || basis.shared) && self.is_cut_off(at, &self.barriers, &[]);
        let is_behind = |look: &&Look| {
            let a = &self.g.accesses[look.access as usize];
            let own = if ways::arrives(Some(look.at), &look.to, &self.free, at) {
                let meets = !ways::arrives(Some(look.at), &look.without_barrier, &self.barriers, at);
                basis.lanes || basis.shared && meets
            } else {
                met
            };
            own || basis.looks.contains(&(a.block, a.at))
        };
        self.looks.iter().filter(is_behind).map(|look| look.access).collect()
    }

    /// What a condition rests on.
    fn basis(&self, cond: NodeId) -> Basis {
        let g = self.g;
        let (mut work, mut seen, mut found) = (vec![cond], FxHashSet::default(), Basis::default());
        while let Some(n) = work.pop() {
            if !seen.insert(n) || seen.len() > MAX_NODES {
                continue;
            }
            let node = g.node(n);
            match &node.kind {
                Kind::Opaque(Reason::Loaded | Reason::AtomicResult) | Kind::Loaded(_) | Kind::Bounded(..) => {
                    found.looks.extend(g.made_at.get(&n).map(|at| (node.home, *at)));
                }
                Kind::SharedLoad(..) | Kind::Opaque(Reason::Shared) => found.shared = true,
                Kind::Opaque(Reason::CrossLane) => found.lanes = true,
                // A flag that the way to the join decides.
                Kind::Phi(arms) if arms.iter().any(|arm| matches!(g.node(arm.1).kind, Kind::Const(_))) => {
                    let top = self.cfg.idom[node.home.0 as usize];
                    for (from, _) in arms {
                        let mut b = *from;
                        for _ in 0..MOST {
                            work.extend(g.conds[b.0 as usize]);
                            if b == top || b.0 == 0 {
                                break;
                            }
                            b = self.cfg.idom[b.0 as usize];
                        }
                    }
                }
                _ => {}
            }
            work.extend(g.operands(n));
        }
        found
    }

    /// Those of some looks that have an acquire on each way to a place.
    fn acquired(&self, looks: &Words, to: Point) -> Words {
        let is = |look: &&Look| {
            looks.contains(&look.access)
                && ways::arrives(Some(look.at), &look.to, &self.free, to)
                && (self.fenced == Fenced::IfMeasured
                    || !ways::arrives(Some(look.at), &look.without_acquire, &self.acquires, to))
        };
        self.looks.iter().filter(is).map(|look| look.access).collect()
    }

    /// The edges behind which a look has decided that a thread comes to a place, and those looks.
    fn decided(&self, to: Point) -> (Vec<Edge>, Words) {
        let (mut edges, mut words) = (Vec::new(), Words::new());
        for choice in &self.choices {
            let looks = choice.looks.each_ref().map(|looks| self.acquired(looks, to));
            if looks.iter().all(|looks| looks.is_empty()) {
                continue;
            }
            let mut stops = self.looked.clone();
            stops[choice.block.0 as usize].push(0);
            let comes = |way: &Option<BlockId>| {
                way.is_some_and(|way| {
                    let mut entered = vec![false; stops.len()];
                    ways::go_on(self.cfg, vec![way], &stops, &[], &mut entered);
                    ways::arrives(None, &entered, &stops, to)
                })
            };
            let k = match choice.ways.each_ref().map(comes) {
                [true, false] => 0,
                [false, true] => 1,
                _ => continue,
            };
            if let Some(way) = choice.ways[k].filter(|_| !looks[k].is_empty()) {
                edges.push((choice.block, way));
                words.extend(looks[k].iter().copied());
            }
        }
        words.sort_unstable();
        words.dedup();
        (edges, words)
    }

    /// Whether all ways from the start to a place are cut.
    fn is_cut_off(&self, to: Point, stops: &Stops, cut: &[Edge]) -> bool {
        !ways::leads(self.cfg, Point { block: BlockId(0), place: 0 }, to, stops, cut)
    }

    /// The words that a barrier's threads look at before they come there.
    fn awaited(&self, at: Point) -> Option<(Point, Words)> {
        let (edges, words) = self.decided(at);
        let beyond = |b: BlockId, way: Option<BlockId>| {
            // Whether a way comes to a look, and whether it comes to the barrier without one.
            let Some(way) = way else { return (false, false) };
            let mut stops = self.free.clone();
            stops[at.block.0 as usize].push(at.place);
            let mut entered = vec![false; stops.len()];
            stops[b.0 as usize].push(0);
            ways::go_on(self.cfg, vec![way], &stops, &[], &mut entered);
            let looks = self.looks.iter().filter(|look| words.contains(&look.access));
            let looks = looks.into_iter().any(|look| ways::arrives(None, &entered, &stops, look.at));
            let mut stops = self.looked.clone();
            stops[b.0 as usize].push(0);
            let mut entered = vec![false; stops.len()];
            ways::go_on(self.cfg, vec![way], &stops, &[], &mut entered);
            (looks, ways::arrives(None, &entered, &stops, at))
        };
        // The branches behind which some threads look and others do not.
        let passes_by = |(b, branch): (usize, &Option<Branch>)| {
            let block = BlockId(b as u32);
            let Some(branch) = branch else { return false };
            if edges.iter().any(|edge| edge.0 == block) || self.is_by_thread(branch.cond) {
                return false;
            }
            let [one, other] = [branch.taken, branch.fall].map(|way| beyond(block, way));
            one.0 && !other.0 && other.1 || other.0 && !one.0 && one.1
        };
        let all_look = || !self.branches.iter().enumerate().any(passes_by);
        (!edges.is_empty() && all_look()).then_some((at, words))
    }

    /// Whether a condition rests on the number of a thread in its block, and on nothing but that
    /// and the launch.
    fn is_by_thread(&self, cond: NodeId) -> bool {
        let (mut work, mut seen, mut by_thread) = (vec![cond], FxHashSet::default(), false);
        while let Some(n) = work.pop() {
            if !seen.insert(n) {
                continue;
            }
            match &self.g.node(n).kind {
                Kind::Special(Special::Tid(_) | Special::Lane) => by_thread = true,
                Kind::Special(Special::Ntid(_) | Special::Nctaid(_)) => {}
                Kind::Special(_)
                | Kind::Building
                | Kind::Opaque(_)
                | Kind::Bounded(..)
                | Kind::LocalLoad(..)
                | Kind::SharedLoad(..)
                | Kind::Loaded(_)
                | Kind::OtherLane(..)
                | Kind::Phi(_)
                | Kind::LoopPhi(..) => return false,
                _ if seen.len() > MAX_NODES => return false,
                _ => work.extend(self.g.operands(n)),
            }
        }
        by_thread
    }

    /// The words that an access at a place awaits, and the edges behind which it has.
    fn awaits(&self, at: Point, guard: Option<NodeId>) -> (Words, Vec<Edge>) {
        let own = guard.map(|guard| self.acquired(&self.looks_told(guard, true, at), at)).unwrap_or_default();
        let (edges, mut words) = self.decided(at);
        if !edges.is_empty() && self.is_cut_off(at, &self.free, &edges) {
            words.extend(own.into_iter().filter(|word| !words.contains(word)).collect::<Words>());
            return (words, edges);
        }
        if !own.is_empty() {
            return (own, edges);
        }
        let mut stops = self.free.clone();
        for (barrier, looks) in &self.awaited {
            stops[barrier.block.0 as usize].push(barrier.place);
            words.extend(looks.iter().copied());
        }
        if self.awaited.is_empty() || !self.is_cut_off(at, &stops, &edges) {
            return (Words::new(), Vec::new());
        }
        words.sort_unstable();
        words.dedup();
        (words, edges)
    }

    /// Whether an access is over when a store tells of it. `edges`: behind which it has been waited
    /// for.
    fn gives(&self, access: u32, store: u32, edges: &[Edge]) -> bool {
        let (from, to) = (Point::of_access(self.g, access), Point::of_access(self.g, store));
        let (own, other) = (&self.g.accesses[access as usize], &self.g.accesses[store as usize]);
        let unreleased = || ways::leads(self.cfg, from, to, &self.releases, &[]);
        if !ways::leads(self.cfg, from, to, &self.free, &[]) || self.fenced == Fenced::Surely && unreleased() {
            return false;
        }
        let by_itself = self.cfg.post_dominates(to.block, from.block)
            && (to.block != from.block || access < store)
            && other.guard.is_none_or(|guard| own.guard == Some(guard));
        let mut awaited = self.free.clone();
        self.awaited.iter().for_each(|(at, _)| awaited[at.block.0 as usize].push(at.place));
        (by_itself || !ways::leads(self.cfg, from, to, &self.barriers, &[]))
            && !ways::leads(self.cfg, to, from, &awaited, edges)
    }
}
