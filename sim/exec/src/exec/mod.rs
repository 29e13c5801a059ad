//! Executes instructions: one small function each, made from closures by the combinators in
//! `per_lane`.
//!
//! The other files each hold one family. `address` finds and checks the memory of every access.
//! `load_store` and `vector_access` know each other: a vector access is a load or store that was
//! checked there. `bulk`, `matrix` and `address` find bytes of other blocks through
//! `cluster_memory`. `registers` keeps count for `setmaxnreg`.

pub(crate) mod address;
pub mod atomic;
pub(crate) mod bulk;
pub(crate) mod call;
pub(crate) mod cluster_memory;
pub mod control;
pub(crate) mod device_runtime;
pub(crate) mod fragment;
pub mod load_store;
pub(crate) mod matrix;
pub mod per_lane;
pub(crate) mod registers;
pub mod tensor;
pub(crate) mod texture;
pub(crate) mod told;
pub(crate) mod vector_access;
pub mod warp_sync;

use crate::interface::{CompileError, FaultKind};
use crate::program::Next;
use crate::warp::Warp;

/// An operation on a tile, or an element of one, that there is not for this type of elements.
fn refused(w: &mut Warp<'_>, mask: u32) -> Next {
    let kind = unsupported(w, "a reduction of a tile of this type");
    w.fail(kind, mask)
}

fn unsupported(w: &Warp<'_>, instruction: &str) -> FaultKind {
    FaultKind::Unsupported(Box::new(CompileError::Unsupported {
        instruction: instruction.to_owned(),
        function: w.env.kernel.name.clone(),
        line: w.env.program.line(w.pc),
    }))
}
