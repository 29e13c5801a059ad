//! Stage of the range analysis; see the head of `ranges`.

pub(crate) mod build;
pub(crate) mod carries;
pub(crate) mod cas_loops;
pub(crate) mod invariant_phis;
pub(crate) mod memory_accesses;
pub(crate) mod node;
pub(crate) mod operations;
pub(crate) mod pairing;
pub(crate) mod predicates;
pub(crate) mod provenance;
pub(crate) mod reciprocal_division;
pub(crate) mod ssa;
