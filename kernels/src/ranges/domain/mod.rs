//! The numbers, forms and sets that an evaluation calculates with.
//!
//! Owns the abstract domain, without the evaluation itself. In order: `int` (a number that knows
//! whether it depends on the launch), `tape` with `tape_arithmetic` (the record of such numbers),
//! `affine` (linear forms over atoms), `atom` (what an atom stands for), `constraints` (sets of
//! forms that are never positive), `condition` (what is compared with zero), `byte_set` (the bytes
//! behind a base). `int`, `tape` and
//! `tape_arithmetic` know each other: every operation on a number goes to the tape, and the tape's
//! arithmetic saturates at the infinity of `int`. So do `atom`, `constraints` and `affine`: an atom
//! carries constraints, which are forms over atoms.

pub(super) mod affine;
pub(super) mod atom;
pub(super) mod byte_set;
pub(super) mod condition;
pub(super) mod constraints;
pub(super) mod int;
pub(super) mod tape;
pub(super) mod tape_arithmetic;
