//! Values that a thread gets from another lane of its warp (SHFL).
//!
//! Owns what is known of such a value. CUTLASS makes its warps' numbers and pointers so: it takes
//! them from lane 0, so that the compiler knows them to be the same in the whole warp.
//!
//! # Why the result holds
//!
//! The lane that gives the value executes the same instruction, and is a thread of the same warp.
//! So what is the same in all threads of a warp is the value itself. Of the rest, the bounds hold
//! that hold for every thread which executes the instruction, in any iteration: the threads of a
//! warp may be in different ones. A value from a lane that does not take part is undefined, and
//! programs that run do not use it.

use crate::effects::LaunchArgs;
use crate::ir::{BlockId, Reason, Special};
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::{AtomKey, AtomKind};
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::eval::shared_loads::atom_same_in_block;
use crate::ranges::eval::state::atoms::Atoms;
use crate::ranges::graph::node::NodeId;

/// Threads of a warp.
const WARP: u32 = 32;

/// The value of node `x` in another thread of the warp.
pub(crate) fn other_lane(eval: &mut Eval<'_>, n: NodeId, x: NodeId, bits: u32, b: BlockId) -> AffineForm {
    let f = eval.ev(x);
    let (same, rest): (Vec<_>, Vec<_>) = f.terms.iter().partition(|(a, _)| same_in_warp(eval, *a));
    let same = AffineForm { terms: same.into_iter().collect(), c: f.c };
    if rest.is_empty() {
        return same;
    }
    let rest = AffineForm { terms: rest.into_iter().collect(), c: Int::new(0) };
    let why = eval.atoms.why(&rest).unwrap_or(Reason::CrossLane);
    let pointers = rest.terms.iter().any(|(a, _)| is_pointer(&eval.atoms, *a));
    let (lo, hi) = eval.bounds(&rest, b);
    if pointers || lo <= -INF || hi >= INF {
        return eval.opaque(AtomKey::Node(n, 40), why, bits, b);
    }
    let unknown = rest.terms.iter().find_map(|(a, _)| eval.atoms[*a].opaque);
    let deps = eval.atoms.depends(&[&rest]);
    let other = eval.keyed(AtomKey::Node(n, 41), |eval| {
        let a = eval.atoms.new_atom(lo, hi, unknown, b);
        let atom = &mut eval.atoms[a];
        atom.deps = deps;
        // Which lane it comes from is not among them.
        atom.choice = true;
        a
    });
    same.add(&AffineForm::atom(other), 1)
}

/// Is an atom a pointer, or a choice between pointers?
fn is_pointer(atoms: &Atoms, a: AtomId) -> bool {
    let atom = &atoms[a];
    atom.alts.is_some() || !matches!(atom.kind, AtomKind::Plain | AtomKind::Index | AtomKind::Iteration(_))
}

/// Has an atom one value in all threads of a warp? A warp is 32 threads in a row, counted with
/// the first axis running fastest.
fn same_in_warp(eval: &Eval<'_>, a: AtomId) -> bool {
    let atom = &eval.atoms[a];
    if atom_same_in_block(eval, a) {
        return true;
    }
    if let Some(d) = axis_of(&eval.atoms, a) {
        // Whole warps at each value of this axis.
        return threads_below(&eval.launch, d).is_multiple_of(u64::from(WARP));
    }
    atom.floor.as_ref().is_some_and(|q| quotient_same_in_warp(eval, &q.0, q.1))
}

/// Is `floor(f / d)` the same in all threads of a warp? What varies may be the index along the
/// first axis alone, as itself, and the rest must keep the borders of 32 where they are.
fn quotient_same_in_warp(eval: &Eval<'_>, f: &AffineForm, d: Int) -> bool {
    let warp = Int::from(WARP);
    let [x, y, z] = eval.launch.block;
    let rows = x.is_multiple_of(WARP) || (y == 1 && z == 1);
    rows && d.divides(warp)
        && f.c.divides(warp)
        && f.terms.iter().all(|(a, k)| match axis_of(&eval.atoms, *a) {
            Some(0) => *k == 1,
            _ => same_in_warp(eval, *a) && k.divides(warp),
        })
}

/// The axis along which an atom is the thread's index.
fn axis_of(atoms: &Atoms, a: AtomId) -> Option<u8> {
    (0..3).find(|d| atoms.find(&AtomKey::Special(Special::Tid(*d))) == Some(a))
}

/// Threads of a block for which the index along axis `d` is the same, in a row.
fn threads_below(launch: &LaunchArgs<'_>, d: u8) -> u64 {
    launch.block[..usize::from(d)].iter().map(|n| u64::from(*n)).product()
}
