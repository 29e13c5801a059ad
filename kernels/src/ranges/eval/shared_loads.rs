//! Values that one thread hands to its block through a word of shared memory.
//!
//! Owns which values a load from a constant address of shared memory may have. CUB's stores of a
//! partial tile read so how many items are valid: one thread writes the number, all threads read
//! it. Without it the guard of each store would be unknown.
//!
//! # Why the result holds
//!
//! A byte of shared memory holds what some thread of the block stored there last. So the value is
//! one of those that stores put at this address, if every other store of the kernel provably goes
//! elsewhere, for any thread. The storing thread is another one, maybe in another iteration: only
//! values count that are the same in the whole block and in all iterations. A word that was never
//! stored is not read by a program that runs.
//!
//! The lowering says where this cannot be told (`lower_sass/memory_access.rs`): copies by engines,
//! clusters.

use crate::ir::{BlockId, Reason, Special};
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::{AtomKey, AtomKind};
use crate::ranges::domain::int::Int;
use crate::ranges::eval::Eval;
use crate::ranges::eval::indexed_loads::words_at;
use crate::ranges::graph::node::{NodeId, Width};

/// Stores of a kernel that are still looked through.
const MAX_STORES: usize = 200;
/// Values that may lie at one address.
const MAX_VALUES: usize = 8;

impl Eval<'_> {
    /// Words at a constant address of shared memory: any value that a store may have put there.
    pub(crate) fn shared_load(&mut self, n: NodeId, at: u32, bytes: u8, b: BlockId) -> AffineForm {
        let bits = 8 * u32::from(bytes);
        let stores = self.g.shared_stores.len();
        if self.local_busy.contains(&n) || stores == 0 || stores > MAX_STORES {
            return self.opaque(AtomKey::Node(n, 34), Reason::Shared, bits, b);
        }
        self.local_busy.push(n);
        let values = self.shared_values(at, bytes);
        self.local_busy.pop();
        match values {
            Some(alts) if !alts.is_empty() && alts.len() <= MAX_VALUES => {
                self.alternatives(alts, AtomKey::Alts(n), None, b)
            }
            _ => self.opaque(AtomKey::Node(n, 35), Reason::Shared, bits, b),
        }
    }

    fn shared_values(&mut self, at: u32, bytes: u8) -> Option<Vec<AffineForm>> {
        let g = self.g;
        let mut values = Vec::new();
        for s in &g.shared_stores {
            let to = self.ev(s.addr);
            if g.node(s.addr).width == Width::W64 {
                if self.is_elsewhere(&to) {
                    continue;
                }
                return None;
            }
            let d = AffineForm::konst(at).add(&to, -1).norm(32);
            // Under what holds where the store is, for whichever thread executes it.
            let ctx = self.ctx(s.block);
            let (lo, hi) = self.atoms.bounds_in(&d, &ctx, true);
            // The form is congruent to the distance modulo 2^32, and shared memory is much smaller.
            if lo <= -Int::pow2(31) || hi >= Int::pow2(31) {
                return None;
            }
            for v in words_at((lo, hi), &d, s, bytes)? {
                let f = self.ev(v);
                if !self.same_in_block(&f) || self.varies_around(&f, s.block) {
                    return None;
                }
                values.push(f);
            }
        }
        Some(values)
    }

    /// Is a generic address one of global memory? The host knows no address of shared memory, so
    /// what begins with a pointer of the host's does not lead there.
    fn is_elsewhere(&self, f: &AffineForm) -> bool {
        let pointer = |k| matches!(k, AtomKind::Param(_) | AtomKind::Symbol(_) | AtomKind::ParamAddress(_));
        f.terms.iter().filter(|(a, k)| *k == 1 && pointer(self.atoms[*a].kind)).count() == 1
    }

    /// Has a form one value in all threads of a block? Parameters, block indices, and quotients of
    /// these.
    fn same_in_block(&self, f: &AffineForm) -> bool {
        f.terms.iter().all(|(a, _)| self.atom_same_in_block(*a))
    }

    pub(super) fn atom_same_in_block(&self, a: AtomId) -> bool {
        let atom = &self.atoms[a];
        let block = [Special::Ctaid(0), Special::Ctaid(1), Special::Ctaid(2)];
        matches!(atom.kind, AtomKind::Param(_) | AtomKind::Symbol(_) | AtomKind::ParamAddress(_))
            || block.into_iter().any(|s| self.atoms.find(&AtomKey::Special(s)) == Some(a))
            || atom.floor.as_ref().is_some_and(|q| self.same_in_block(&q.0))
    }
}
