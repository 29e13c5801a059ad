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
use crate::ranges::eval::recurrences::varies_around;
use crate::ranges::eval::state::atoms::Atoms;
use crate::ranges::eval::value::alternatives;
use crate::ranges::graph::node::{NodeId, Width};

/// Stores of a kernel that are still looked through.
const MAX_STORES: usize = 200;
/// Values that may lie at one address.
const MAX_VALUES: usize = 8;

/// Words at a constant address of shared memory: any value that a store may have put there.
pub(crate) fn shared_load(eval: &mut Eval<'_>, n: NodeId, at: u32, bytes: u8, b: BlockId) -> AffineForm {
    let bits = 8 * u32::from(bytes);
    let stores = eval.g.shared_stores.len();
    if eval.local_busy.contains(&n) || stores == 0 || stores > MAX_STORES {
        return eval.opaque(AtomKey::Node(n, 34), Reason::Shared, bits, b);
    }
    eval.local_busy.push(n);
    let values = shared_values(eval, at, bytes);
    eval.local_busy.pop();
    match values {
        Some(alts) if !alts.is_empty() && alts.len() <= MAX_VALUES => {
            alternatives(eval, alts, AtomKey::Alts(n), None, b)
        }
        _ => eval.opaque(AtomKey::Node(n, 35), Reason::Shared, bits, b),
    }
}

fn shared_values(eval: &mut Eval<'_>, at: u32, bytes: u8) -> Option<Vec<AffineForm>> {
    let g = eval.g;
    let mut values = Vec::new();
    for s in &g.shared_stores {
        let to = eval.ev(s.addr);
        if g.node(s.addr).width == Width::W64 {
            if is_elsewhere(&eval.atoms, &to) {
                continue;
            }
            return None;
        }
        let d = AffineForm::konst(at).add(&to, -1).norm(32);
        // Under what holds where the store is, for whichever thread executes it.
        let ctx = eval.ctx(s.block);
        let (lo, hi) = eval.atoms.bounds_in(&d, &ctx, true);
        // The form is congruent to the distance modulo 2^32, and shared memory is much smaller.
        if lo <= -Int::pow2(31) || hi >= Int::pow2(31) {
            return None;
        }
        for v in words_at((lo, hi), &d, s, bytes)? {
            let f = eval.ev(v);
            if !same_in_block(eval, &f) || varies_around(eval, &f, s.block) {
                return None;
            }
            values.push(f);
        }
    }
    Some(values)
}

/// Is a generic address one of global memory? The host knows no address of shared memory, so
/// what begins with a pointer of the host's does not lead there.
fn is_elsewhere(atoms: &Atoms, f: &AffineForm) -> bool {
    let pointer = |k| matches!(k, AtomKind::Param(_) | AtomKind::Symbol(_) | AtomKind::ParamAddress(_));
    f.terms.iter().filter(|(a, k)| *k == 1 && pointer(atoms[*a].kind)).count() == 1
}

/// Has a form one value in all threads of a block? Parameters, block indices, and quotients of
/// these.
fn same_in_block(eval: &Eval<'_>, f: &AffineForm) -> bool {
    f.terms.iter().all(|(a, _)| atom_same_in_block(eval, *a))
}

pub(super) fn atom_same_in_block(eval: &Eval<'_>, a: AtomId) -> bool {
    let atom = &eval.atoms[a];
    let block = [Special::Ctaid(0), Special::Ctaid(1), Special::Ctaid(2)];
    matches!(atom.kind, AtomKind::Param(_) | AtomKind::Symbol(_) | AtomKind::ParamAddress(_))
        || block.into_iter().any(|s| eval.atoms.find(&AtomKey::Special(s)) == Some(a))
        || atom.floor.as_ref().is_some_and(|q| same_in_block(eval, &q.0))
}
