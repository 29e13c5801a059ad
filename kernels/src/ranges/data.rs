//! Which loops and which values are data: nothing about a launch tells them.
//!
//! Owns the search for data behind what was not solved. It decides no bound and no exactness, only
//! the reason that is given: a loop that ends when a loaded value says so is not a loop that the
//! analysis failed at. It walks the value graph, which is the same for all launches.

use crate::ir::Reason;
use crate::ranges::domain::affine::AffineForm;
use crate::ranges::domain::atom::AtomKind;
use crate::ranges::domain::int::INF;
use crate::ranges::eval::Eval;
use crate::ranges::graph::node::{Graph, Kind, NodeId};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

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

/// Nodes that are looked at for one value.
const MAX_NODES: usize = 512;

impl Eval<'_> {
    /// The reason why a form has no bounds. `known`: what its parts say.
    pub(crate) fn reason_behind(&self, f: &AffineForm, known: Reason) -> Reason {
        if known != Reason::Loop {
            return known;
        }
        let unbounded = |x| {
            let atom = self.a(x);
            match atom.kind {
                AtomKind::Iteration(l) if atom.hi >= INF => self.data_ends(l),
                _ => None,
            }
        };
        let mut atoms = f.terms.iter().flat_map(|t| self.support(t.0));
        atoms.find_map(unbounded).unwrap_or(known)
    }

    /// The data that decide how often a loop runs. `None`: some of its ends are decided by
    /// something else.
    fn data_ends(&self, l: u32) -> Option<Reason> {
        let members = &self.cfg.loops[l as usize].members;
        let leaves = |at: &usize| members[*at] && self.cfg.succs[*at].iter().any(|to| !members[to.0 as usize]);
        let mut found = None;
        for at in (0..members.len()).filter(leaves) {
            let reason = self.data_in(&[self.g.conds[at]?], None)?;
            found = found.or(Some(reason));
        }
        found
    }

    /// The nearest data among what some values are made of, apart from one node.
    pub(crate) fn data_in(&self, roots: &[NodeId], apart_from: Option<NodeId>) -> Option<Reason> {
        let mut work: std::collections::VecDeque<NodeId> = roots.iter().copied().collect();
        let mut seen: FxHashSet<NodeId> = apart_from.into_iter().collect();
        while let Some(n) = work.pop_front() {
            if !seen.insert(n) || seen.len() > MAX_NODES {
                continue;
            }
            match self.g.node(n).kind {
                Kind::Opaque(reason) if reason.is_data() => return Some(reason),
                Kind::Loaded(_) => return Some(Reason::Loaded),
                Kind::SharedLoad(..) => return Some(Reason::Shared),
                _ => work.extend(self.g.operands(n)),
            }
        }
        None
    }
}
