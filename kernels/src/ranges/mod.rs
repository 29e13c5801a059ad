//! Byte ranges of a kernel's memory accesses: prepared once per kernel (`build`: lazy SSA and
//! 64-bit pairing), evaluated per launch with concrete numbers (`eval`: affine forms, guards,
//! loops; the soundness argument is at its head).
//!
//! Results are kept for the last few launches that agree in grid, block, and every parameter word
//! that mattered (base pointers do not, as a rule), and the arithmetic that led to them for
//! launches with other numbers (`tape`, `replay`).

pub(crate) mod domain;
pub(crate) mod eval;
pub(crate) mod extent;
pub(crate) mod graph;
pub(crate) mod memo;
pub(crate) mod per_block;

mod analysis;

pub(crate) use analysis::{Analysis, analyse};
