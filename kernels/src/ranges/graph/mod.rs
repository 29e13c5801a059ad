//! The value graph of a kernel, built once from its intermediate representation.
//!
//! Owns everything that is known before there is a launch: which definitions reach an address,
//! which words are halves of one value, and which nodes compute it. Values are found by `eval`.
//!
//! The files, in the order in which a kernel meets them: `node` (the types), `build` (the walk over
//! accesses and branches), `ssa` (reaching definitions), `guards` (whether an instruction
//! executes), `memory_accesses`, `operations` and `predicates` (what it computes), `pairing` with
//! `carries` (64-bit values in two words), `reciprocal_division` (an idiom), then three passes over
//! the finished graph: `cas_loops`, `demanded_bits` and `invariant_phis`, and `provenance`, which
//! reads it. All files from `build` to `cas_loops` are parts of one `Builder` and call each other,
//! because an operand of any operation may be any other operation.

pub(super) mod build;
mod carries;
mod cas_loops;
mod demanded_bits;
mod guards;
mod invariant_phis;
mod memory_accesses;
pub(super) mod node;
mod operations;
mod pairing;
mod predicates;
pub(super) mod provenance;
mod reciprocal_division;
mod ssa;
