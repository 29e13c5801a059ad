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
use crate::ranges::graph::node::{Kind, NodeId};
use rustc_hash::FxHashSet;

/// Nodes that are looked at for one value.
const MAX_NODES: usize = 512;

impl Eval<'_> {
    /// The reason why a form has no bounds. `known`: what its parts say.
    pub(crate) fn reason_behind(&self, f: &AffineForm, known: Reason) -> Reason {
        if known != Reason::Loop {
            return known;
        }
        let unbounded = |x| {
            let atom = &self.atoms[x];
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
