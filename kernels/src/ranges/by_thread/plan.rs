//! What of a kernel's graph matters when its threads are followed, whatever the launch.
//!
//! Owns how far the value of a node reaches (a launch, a thread, an iteration), and which addresses
//! are surely data. Keeps which branches decide about a block ([`crate::ranges::program_slice`]).

use crate::ir::cfg::Cfg;
use crate::ir::{BlockId, Special};
use crate::ranges::graph::node::{Graph, Kind, NodeId, Target};
use crate::ranges::program_slice::deciders;
use rustc_hash::{FxHashMap, FxHashSet};

/// How far the value of a node reaches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Reach {
    /// All threads have the same.
    Launch,
    /// A thread has one.
    Thread,
    /// It rests on joins that a thread passes once at most.
    Once,
    /// It changes with the joins that a thread passes.
    Join,
}

/// See above.
#[derive(Debug)]
pub(crate) struct Plan {
    /// By node.
    pub(super) reach: Vec<Reach>,
    /// By access: no launch tells its address.
    pub(super) data: Vec<bool>,
    /// By access: its base may be another one than those that `graph/provenance.rs` names, which
    /// guesses how long tables are, and does not see what is stored.
    pub(super) elsewhere: Vec<bool>,
    /// By block: the branches that decide whether threads come there.
    pub(super) deciders: Vec<Vec<BlockId>>,
}

/// Nodes looked through for one address.
const MAX_NODES: u32 = 400;

impl Plan {
    pub(crate) fn new(g: &Graph, cfg: &Cfg) -> Plan {
        let once = |b: BlockId| !cfg.in_irreducible[b.0 as usize] && cfg.loops.iter().all(|l| !l.members[b.0 as usize]);
        let mut reach: Vec<Option<Reach>> = vec![None; g.nodes.len()];
        for k in 0..g.nodes.len() as u32 {
            let mut work = vec![NodeId(k)];
            while let Some(&n) = work.last() {
                let known = reach[n.0 as usize].is_some();
                let own = match &g.node(n).kind {
                    // (What it takes over stays as it was when it did.)
                    Kind::Opaque(_) if g.decisions.contains_key(&n) || g.map_loads.contains(&n) => {
                        Some(if once(g.node(n).home) { Reach::Once } else { Reach::Join })
                    }
                    Kind::Phi(_) if once(g.node(n).home) => Some(Reach::Once),
                    Kind::Phi(_) | Kind::LoopPhi(..) | Kind::Building => Some(Reach::Join),
                    Kind::Special(
                        Special::Tid(_)
                        | Special::Ctaid(_)
                        | Special::ClusterId(_)
                        | Special::ClusterCtaid(_)
                        | Special::ClusterRank
                        | Special::Lane,
                    ) => Some(Reach::Thread),
                    _ => None,
                };
                if known || own.is_some() {
                    reach[n.0 as usize] = reach[n.0 as usize].or(own);
                    work.pop();
                    continue;
                }
                let operands = g.operands(n);
                let before = work.len();
                work.extend(operands.iter().filter(|o| reach[o.0 as usize].is_none()));
                if work.len() == before {
                    let most = operands.iter().filter_map(|o| reach[o.0 as usize]).max();
                    reach[n.0 as usize] = Some(most.unwrap_or(Reach::Launch));
                    work.pop();
                }
            }
        }
        let reach = reach.into_iter().map(|r| r.unwrap_or(Reach::Join)).collect();
        let data = g.accesses.iter().map(|a| match a.target {
            Target::Address(n) => is_data(g, n, &mut FxHashMap::default()),
            _ => true,
        });
        let elsewhere = g.accesses.iter().map(|a| match a.target {
            Target::Address(n) => looks_up(g, n),
            _ => true,
        });
        Plan { reach, data: data.collect(), elsewhere: elsewhere.collect(), deciders: deciders(cfg) }
    }
}

/// Is any part of a value looked up, or put together in a way that is not followed?
fn looks_up(g: &Graph, n: NodeId) -> bool {
    let (mut work, mut seen) = (vec![n], FxHashSet::default());
    while let Some(n) = work.pop() {
        let found = match g.node(n).kind {
            Kind::ParamIndexed(_, bytes, ..) | Kind::LocalLoad(_, bytes) | Kind::SharedLoad(_, bytes) => bytes == 8,
            // What is loaded from global memory is a base of its own kind.
            Kind::Pack(..) | Kind::High(_) | Kind::Building => true,
            _ => false,
        };
        if found {
            return true;
        }
        if seen.insert(n) {
            work.extend(g.operands(n));
        }
    }
    false
}

/// Is a value surely made of data?
fn is_data(g: &Graph, n: NodeId, seen: &mut FxHashMap<NodeId, bool>) -> bool {
    if g.decisions.contains_key(&n) {
        return false;
    }
    if let Some(known) = seen.get(&n) {
        return *known;
    }
    if seen.len() as u32 > MAX_NODES {
        return false;
    }
    // A value that rests on itself is data when the rest is.
    seen.insert(n, true);
    let found = match &g.node(n).kind {
        Kind::Opaque(_)
        | Kind::Loaded(_)
        | Kind::Bounded(..)
        | Kind::Building
        | Kind::SharedLoad(..)
        | Kind::LocalLoad(..) => true,
        Kind::Sel(_, x, y) => is_data(g, *x, seen) && is_data(g, *y, seen),
        Kind::Phi(arms) => arms.iter().all(|a| is_data(g, a.1, seen)),
        Kind::LoopPhi(outer, _) => outer.iter().all(|a| is_data(g, a.1, seen)),
        _ => g.operands(n).iter().any(|o| is_data(g, *o, seen)),
    };
    seen.insert(n, found);
    found
}
