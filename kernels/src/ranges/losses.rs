//! Why an access is not exact, as far as the code tells it whatever the launch.
//!
//! Owns the search for the value that is not followed: in the address, in the conditions on the way
//! to the access, in the ends of the loops around it. It walks the value graph and evaluates
//! nothing, because it is asked for reports only. So where nothing in the address or on the way is
//! unknown, what it names is where exactness is usually lost, not a proof. Which access is exact in
//! a launch is decided in `extent/exactness.rs`.

use crate::effects::{AccessKind, Loss, LossRole};
use crate::ir::{BlockId, Reason};
use crate::ranges::analysis::Analysis;
use crate::ranges::graph::node::{Kind, NodeId, Target};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

impl Analysis {
    /// See [`crate::Summary::loss`].
    pub(crate) fn loss(&self, kind: AccessKind, word: Option<u16>, at: u32) -> Option<Loss> {
        let accesses = &self.graph.accesses;
        let through = |k: &usize| word.is_none_or(|word| self.origins[*k].words.contains(&word));
        let alike: Vec<usize> = (0..accesses.len()).filter(|k| accesses[*k].kind == kind && through(k)).collect();
        let here = alike.iter().filter(|k| accesses[**k].at == at);
        let others = alike.iter().filter(|k| accesses[**k].at != at);
        let all: Vec<usize> = here.chain(others).copied().collect();
        // What is surely lost comes before what is lost as a rule.
        all.iter().find_map(|k| self.unknown_value(*k)).or_else(|| all.iter().find_map(|k| self.arithmetic(*k)))
    }

    /// A value that is not followed in the address, on the way, or in the ends of loops.
    fn unknown_value(&self, k: usize) -> Option<Loss> {
        let access = &self.graph.accesses[k];
        let address = match access.target {
            Target::Address(n) | Target::Bulk(n, _) => self.unknown_below(n, LossRole::Address),
            Target::TensorMap(_, ref coordinates) if !coordinates.is_empty() => {
                coordinates.iter().find_map(|n| self.unknown_below(*n, LossRole::Address))
            }
            Target::TensorMap(..) | Target::Made(_) | Target::Handle(..) => {
                Some(Loss { role: LossRole::Address, reason: Reason::Descriptor, at: access.at, param: None })
            }
            Target::Passed(_) => {
                Some(Loss { role: LossRole::Address, reason: Reason::Passed, at: access.at, param: None })
            }
            Target::Unknown(reason) => Some(Loss { role: LossRole::Address, reason, at: access.at, param: None }),
        };
        let condition = |n: NodeId| self.unknown_below(n, LossRole::Condition);
        address.or_else(|| access.guard.and_then(condition)).or_else(|| self.on_the_way(access.block)).or_else(|| {
            let ends = self.ends_of_loops(access.block);
            ends.into_iter().find_map(|end| self.unknown_below(end, LossRole::Iterations))
        })
    }

    /// The first condition that decides whether block `b` is reached and is not followed.
    fn on_the_way(&self, b: BlockId) -> Option<Loss> {
        let mut at = b;
        while at.0 != 0 {
            let above = self.cfg.idom[at.0 as usize];
            if !self.cfg.post_dominates(at, above)
                && let Some(condition) = self.graph.conds[above.0 as usize]
                && let Some(loss) = self.unknown_below(condition, LossRole::Condition)
            {
                return Some(loss);
            }
            at = above;
        }
        None
    }

    /// The conditions at which loops around a block end.
    fn ends_of_loops(&self, b: BlockId) -> Vec<NodeId> {
        let around = self.cfg.loops.iter().filter(|l| l.members[b.0 as usize]);
        let leaves = |members: &[bool], at: usize| self.cfg.succs[at].iter().any(|to| !members[to.0 as usize]);
        around
            .flat_map(|l| (0..l.members.len()).filter(move |at| l.members[*at] && leaves(&l.members, *at)))
            .filter_map(|at| self.graph.conds[at])
            .collect()
    }

    /// What makes exactness hard although every value is known: a loop whose number of iterations
    /// is a parameter, or an address with quotients or bits in it.
    fn arithmetic(&self, k: usize) -> Option<Loss> {
        let access = &self.graph.accesses[k];
        let counted = self.ends_of_loops(access.block).into_iter().find_map(|end| {
            self.below(end).into_iter().find_map(|n| match self.graph.node(n).kind {
                Kind::Param(offset, _) => Some(offset),
                _ => None,
            })
        });
        if let Some(offset) = counted {
            let role = LossRole::Iterations;
            return Some(Loss { role, reason: Reason::Loop, at: 0, param: Some(offset) });
        }
        let Target::Address(address) = access.target else { return None };
        let below = self.below(address);
        // What comes from another lane, or out of a function without a form, says more than the
        // arithmetic around it.
        let named = below.iter().find_map(|n| match self.graph.node(*n).kind {
            Kind::OtherLane(..) => Some(Reason::CrossLane),
            Kind::Pure(f, _) => Some(f.reason()),
            _ => None,
        });
        let bits = |n: &NodeId| {
            use Kind::{Div, Lop3, Prmt, Rem, Shr};
            matches!(self.graph.node(*n).kind, Div(..) | Rem(..) | Lop3(..) | Shr(..) | Prmt(..))
        };
        let reason = named.or_else(|| below.iter().any(bits).then_some(Reason::Bits))?;
        Some(Loss { role: LossRole::Address, reason, at: access.at, param: None })
    }

    /// All nodes that a node is computed from, and itself, the nearest first. What a loaded value
    /// was loaded from is not among them.
    fn below(&self, root: NodeId) -> Vec<NodeId> {
        let (mut work, mut seen, mut all) = (VecDeque::from([root]), FxHashSet::default(), Vec::new());
        while let Some(n) = work.pop_front() {
            if seen.insert(n) {
                all.push(n);
                if !matches!(self.graph.node(n).kind, Kind::Loaded(_)) {
                    work.extend(self.graph.operands(n));
                }
            }
        }
        all
    }

    fn unknown_below(&self, root: NodeId, role: LossRole) -> Option<Loss> {
        self.below(root).into_iter().find_map(|n| {
            let reason = match self.graph.node(n).kind {
                // A shared or local window is no memory that others see.
                Kind::Opaque(Reason::Window) => return None,
                Kind::Opaque(reason) => reason,
                Kind::Loaded(_) => Reason::Loaded,
                // Loads of less than a word, or counted bits.
                Kind::Bounded(..) => Reason::Bits,
                Kind::Building => Reason::Irreducible,
                _ => return None,
            };
            let at = self.graph.made_at.get(&n).copied().unwrap_or_default();
            let load = self.load_at(at);
            let reason = if load.is_some() { Reason::Loaded } else { reason };
            Some(Loss { role, reason, at, param: load.and_then(|k| self.one_word(k)) })
        })
    }

    /// The load from global memory that this instruction is.
    fn load_at(&self, at: u32) -> Option<usize> {
        self.graph.accesses.iter().position(|a| at != 0 && a.at == at && !a.kind.writes())
    }

    /// The one pointer among the parameters through which an access goes.
    fn one_word(&self, k: usize) -> Option<u16> {
        let words = &self.origins[k].words;
        words.first().copied().filter(|_| words.len() == 1)
    }
}
