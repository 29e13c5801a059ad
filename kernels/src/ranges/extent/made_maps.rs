//! The tensors of maps that a kernel makes itself (PTX ISA, "tensormap.replace").
//!
//! Owns the question whether a copy is made by a map that got its tensor's address at an
//! instruction of the kernel. The sizes in such a map are not followed, so only the address is
//! known of the bytes. That the copies are made by maps in memory remains an access of its own:
//! what is found here is beside it, and may be less than all.

use crate::ir::Reason;
use crate::ranges::domain::affine::AffineForm;
use crate::ranges::domain::byte_set::ByteSet;
use crate::ranges::eval::Eval;
use crate::ranges::extent::address::access_bytes;
use crate::ranges::extent::reached::{ReachedBytes, SymbolicBase};
use crate::ranges::graph::node::{Access, MadeTensor, Target};

/// What a copy may reach through a map that the kernel makes; nothing where that is not told.
pub(crate) fn made_tensor(eval: &mut Eval<'_>, acc: &Access, made: &MadeTensor) -> Vec<ReachedBytes> {
    let mut found = Vec::new();
    if !is_by(eval, made) {
        return found;
    }
    let tensor = Access { target: Target::Address(made.put.1), bytes: 1, ..acc.clone() };
    access_bytes(eval, &tensor, &mut found);
    let is_told = |base| matches!(base, SymbolicBase::Word(_) | SymbolicBase::Symbol(_) | SymbolicBase::Table { .. });
    found.retain(|r| is_told(r.base));
    let extent = ByteSet::Unknown { reason: Reason::Descriptor };
    for r in &mut found {
        *r = ReachedBytes::new(r.base, r.several, extent.clone());
    }
    found
}

/// Is the map of the copy the one that gets the address? Both are then as far from the bytes that
/// are copied: in shared memory from where they come from, in global memory from where they go to.
/// The threads that copy a map together begin with its first bytes, which hold the address.
fn is_by(eval: &mut Eval<'_>, made: &MadeTensor) -> bool {
    let (map, at) = (eval.ev(made.map), eval.ev(made.put.0));
    let Some((to, from)) = made.copy else { return map == at };
    let (to, from) = (eval.ev(to), eval.ev(from));
    let behind = |whole: &AffineForm, start: &AffineForm, bits| whole.add(start, -1).norm(bits);
    let (in_global, in_shared) = (behind(&to, &map, 64), behind(&from, &at, 32));
    in_global == in_shared && in_global.as_const().is_none_or(|distance| distance.pin() == 0)
}
