//! Where an address comes from, whatever the launch: parameter words, symbols, or memory.
//!
//! Owns the sources of an address, not its range, and the search for data behind a value that was
//! not solved. It is sound for directions: a parameter word from which an access derives is found
//! even when its value is not understood. Scalars that are added to a pointer without a factor look
//! like pointers. The caller tells them apart by their values.

use super::node::{Graph, Kind, NodeId, Target, Width};
use crate::ir::{Reason, Special};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Which nodes are made of what other threads answer: ballots, matches, active masks, reductions
/// of a warp, and what is computed from them. Such a value is bounded (a rank is at most 32), and
/// which of the values within it takes is data.
pub(crate) fn voted(g: &Graph) -> Vec<bool> {
    let mut voted = vec![false; g.nodes.len()];
    let mut work: Vec<usize> = Vec::new();
    for (n, node) in g.nodes.iter().enumerate() {
        if matches!(node.kind, Kind::Opaque(Reason::CrossLane)) {
            voted[n] = true;
            work.push(n);
        }
    }
    if work.is_empty() {
        return voted;
    }
    let mut users: Vec<SmallVec<[u32; 2]>> = vec![SmallVec::new(); g.nodes.len()];
    for n in 0..g.nodes.len() {
        for operand in g.operands(NodeId(n as u32)) {
            users[operand.0 as usize].push(n as u32);
        }
    }
    while let Some(n) = work.pop() {
        for &user in &users[n] {
            if !std::mem::replace(&mut voted[user as usize], true) {
                work.push(user as usize);
            }
        }
    }
    voted
}

/// Whether a value is made of loaded values, and of no index of a thread, a block or an iteration
/// beside them. Its range is that of their types: no tile rounds it up.
pub(crate) fn is_looked_up(g: &Graph, root: NodeId) -> bool {
    let (mut work, mut seen, mut loads) = (vec![root], FxHashSet::default(), false);
    while let Some(n) = work.pop() {
        if !seen.insert(n) {
            continue;
        }
        match g.node(n).kind {
            Kind::Loaded(_) | Kind::Opaque(Reason::Loaded) => loads = true,
            // A narrow load. Which of a tile's elements a lane holds is bounded more closely.
            Kind::Bounded(0, 0xff | 0xffff) | Kind::Bounded(-0x80, 0x7f) | Kind::Bounded(-0x8000, 0x7fff) => {
                loads = true
            }
            Kind::Bounded(..) => return false,
            Kind::Special(_) | Kind::LoopPhi(..) | Kind::Opaque(_) | Kind::Building => return false,
            _ if seen.len() > MAX_NODES => return false,
            _ => work.extend(g.operands(n)),
        }
    }
    loads
}

/// Nodes that are looked at for one value.
const MAX_NODES: usize = 512;

/// Sources of one address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Provenance {
    /// 8-byte parameter words.
    pub(crate) words: BTreeSet<u16>,
    /// Symbols.
    pub(crate) symbols: BTreeSet<u32>,
    /// Address of the parameters themselves: offsets.
    pub(crate) param_addresses: BTreeSet<u16>,
    /// Unknown terms (loaded and so on), the first reason met.
    pub(crate) unknown: Option<Reason>,
    /// Built from a shared or local window.
    pub(crate) window: bool,
    /// Made of what other threads answered: see [`voted`].
    pub(crate) voted: bool,
    /// Made of loaded values only: see [`is_looked_up`].
    pub(crate) looked_up: bool,
    /// The address is that of a tensor which the access may be to: see [`Target::Made`].
    pub(crate) made: bool,
}

impl Provenance {
    /// Is there a known base?
    pub(crate) fn has_base(&self) -> bool {
        !self.words.is_empty() || !self.symbols.is_empty() || !self.param_addresses.is_empty()
    }
}

/// The nearest data among what some values are made of, apart from one node.
pub(crate) fn data_in(graph: &Graph, roots: &[NodeId], apart_from: Option<NodeId>) -> Option<Reason> {
    let mut work: std::collections::VecDeque<NodeId> = roots.iter().copied().collect();
    let mut seen: FxHashSet<NodeId> = apart_from.into_iter().collect();
    while let Some(n) = work.pop_front() {
        if !seen.insert(n) || seen.len() > MAX_NODES {
            continue;
        }
        match graph.node(n).kind {
            Kind::Opaque(reason) if reason.is_data() => return Some(reason),
            Kind::Loaded(_) => return Some(Reason::Loaded),
            Kind::SharedLoad(..) => return Some(Reason::Shared),
            _ => work.extend(graph.operands(n)),
        }
    }
    None
}

/// Offsets at which parameters are read with a fixed or indexed address: they show where tables
/// end.
fn read_offsets(g: &Graph) -> BTreeSet<i32> {
    g.nodes
        .iter()
        .filter_map(|n| match n.kind {
            Kind::Param(o, _) => Some(i32::from(o)),
            Kind::ParamIndexed(o, ..) => Some(o),
            _ => None,
        })
        .collect()
}

/// Provenance of an access.
pub(crate) fn origins(g: &Graph, params: &[(u16, u16)], t: &Target) -> Provenance {
    let mut o = Provenance::default();
    let mut seen = FxHashSet::default();
    match t {
        Target::Address(n) | Target::Bulk(n, _) | Target::TensorMap(n, _) => {
            walk(g, params, *n, &mut o, &mut seen);
            if !o.has_base() && o.unknown.is_some() {
                let mut all = FxHashSet::default();
                taint(g, *n, &mut o, &mut all);
            }
        }
        Target::Made(made) => {
            o.made = true;
            walk(g, params, made.put.1, &mut o, &mut seen);
        }
        Target::Handle(n, _) => handle(g, *n, &mut o),
        Target::Passed(arguments) => {
            o.unknown = Some(Reason::Passed);
            arguments.iter().for_each(|n| taint(g, *n, &mut o, &mut seen));
            // An argument may be the address of what the kernel has put into its own memory, or
            // into its parameters.
            let stores = g.local_stores.iter().chain(&g.shared_stores);
            stores.flat_map(|s| s.words.iter().chain(&s.pairs)).for_each(|n| taint(g, *n, &mut o, &mut seen));
            for parameter in o.param_addresses.clone() {
                let whole = params.iter().find(|p| p.0 <= parameter && parameter < p.0.saturating_add(p.1));
                let words = whole.map_or(0..0, |p| p.0..p.0.saturating_add(p.1).saturating_sub(7));
                o.words.extend(words.filter(|w| w % 8 == 0));
            }
            o.param_addresses.clear();
        }
        Target::Unknown(r) => o.unknown = Some(*r),
    }
    o
}

fn walk(g: &Graph, params: &[(u16, u16)], root: NodeId, o: &mut Provenance, seen: &mut FxHashSet<NodeId>) {
    let mut work = vec![root];
    while let Some(n) = work.pop() {
        if !seen.insert(n) {
            continue;
        }
        let node = g.node(n);
        match &node.kind {
            Kind::Param(off, 8) => {
                o.words.insert(*off);
            }
            Kind::Symbol(s) => {
                o.symbols.insert(s.0);
            }
            Kind::ParamAddress(p) => {
                o.param_addresses.insert(*p);
            }
            Kind::Special(Special::LocalBase | Special::DriverBase(_)) => o.window = true,
            Kind::Lin(t, _) => work.extend(t.iter().filter(|t| t.1 == 1).map(|t| t.0)),
            Kind::Sel(_, a, b) | Kind::MinMax(_, _, a, b) => work.extend([*a, *b]),
            Kind::OtherLane(a, _) => work.push(*a),
            Kind::Lop3(_, a, b, c) if node.width == Width::W64 => work.extend([*a, *b, *c]),
            Kind::Phi(arms) => work.extend(arms.iter().map(|a| a.1)),
            Kind::LoopPhi(a, b) => work.extend(a.iter().chain(b).map(|a| a.1)),
            Kind::ParamIndexed(off, 8, _, idx) => table(g, params, *off, *idx, o),
            Kind::SharedLoad(_, 8) => g.shared_stores.iter().for_each(|s| work.extend(s.pairs.iter().copied())),
            Kind::LocalLoad(_, 8) => g.local_stores.iter().for_each(|s| work.extend(s.pairs.iter().copied())),
            Kind::Pack(lo, hi) => {
                if window(g, *hi) {
                    o.window = true;
                } else {
                    o.unknown.get_or_insert(Reason::Pairing);
                    let mut all = FxHashSet::default();
                    taint(g, *lo, o, &mut all);
                }
            }
            Kind::Opaque(Reason::Window) => o.window = true,
            Kind::Loaded(_) => {
                o.unknown.get_or_insert(Reason::Loaded);
            }
            Kind::Opaque(r) => {
                o.unknown.get_or_insert(*r);
                work.extend(g.before_call.get(&n));
            }
            Kind::Building => {
                o.unknown.get_or_insert(Reason::Irreducible);
            }
            _ => {}
        }
    }
}

/// The words that hold a handle, when it surely is one of them as it was passed.
fn handle(g: &Graph, root: NodeId, o: &mut Provenance) {
    let (mut work, mut seen) = (vec![root], FxHashSet::default());
    while let Some(n) = work.pop() {
        if !seen.insert(n) {
            continue;
        }
        match &g.node(n).kind {
            Kind::Param(off, _) if off % 8 == 0 => {
                o.words.insert(*off);
            }
            Kind::Lo(a) | Kind::Extend(_, a) | Kind::Pack(a, _) | Kind::OtherLane(a, _) => work.push(*a),
            Kind::Sel(_, a, b) => work.extend([*a, *b]),
            Kind::Phi(arms) => work.extend(arms.iter().map(|a| a.1)),
            Kind::LoopPhi(a, b) => work.extend(a.iter().chain(b).map(|a| a.1)),
            _ => {
                o.words.clear();
                o.unknown = Some(Reason::Descriptor);
                return;
            }
        }
    }
}

/// Is the high word taken from a window register?
fn window(g: &Graph, n: NodeId) -> bool {
    match &g.node(n).kind {
        Kind::Opaque(Reason::Window) => true,
        Kind::Lin(t, _) => t.iter().any(|t| matches!(g.node(t.0).kind, Kind::Opaque(Reason::Window))),
        _ => false,
    }
}

/// The words of a by-value table read at a dynamic index: from its offset to where another field is
/// read, or the parameter ends, in steps that the index can make.
fn table(g: &Graph, params: &[(u16, u16)], off: i32, idx: NodeId, o: &mut Provenance) {
    let end = params
        .iter()
        .map(|p| (i32::from(p.0), i32::from(p.0) + i32::from(p.1)))
        .find(|p| p.0 <= off && off < p.1)
        .map_or(off + 8, |p| p.1);
    let mut step = match &g.node(idx).kind {
        Kind::Lin(t, _) => t.iter().fold(0, |s, t| gcd(s, t.1)),
        _ => 8,
    };
    if step == 0 || step % 4 != 0 {
        step = 8;
    }
    let others: Vec<i32> = read_offsets(g).into_iter().filter(|p| *p > off && *p < end).collect();
    // A field within one step belongs to each element; one beyond starts another array.
    let stop = others.iter().copied().find(|p| i64::from(*p - off) >= step).unwrap_or(end);
    let mut at = off;
    while at + 8 <= stop {
        if let Ok(w) = u16::try_from(at) {
            o.words.insert(w);
        }
        at += i32::try_from(step).unwrap_or(8);
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(8)
}

/// Every parameter word a value depends on at all.
fn taint(g: &Graph, root: NodeId, o: &mut Provenance, seen: &mut FxHashSet<NodeId>) {
    let mut work = vec![root];
    while let Some(n) = work.pop() {
        if !seen.insert(n) {
            continue;
        }
        match &g.node(n).kind {
            Kind::Param(off, 8) => {
                o.words.insert(*off);
            }
            Kind::Param(off, 4) if off % 8 == 0 => {
                o.words.insert(*off);
            }
            Kind::Symbol(s) => {
                o.symbols.insert(s.0);
            }
            Kind::ParamAddress(p) => {
                o.param_addresses.insert(*p);
            }
            Kind::Opaque(_) => work.extend(g.before_call.get(&n)),
            // Where a word lies says nothing about where it came from.
            Kind::Loaded(_) => {}
            // A choice by a predicate says nothing about where the value comes from.
            Kind::Sel(_, a, b) => work.extend([*a, *b]),
            _ => work.extend(g.operands(n)),
        }
    }
}
