//! What an evaluation knows so far.
//!
//! Owns the tables that an evaluation fills: `atoms` (with `bounds`, `relevance` and `budget`),
//! `scope` (results of nodes and blocks, and what they rest on), `loop_table` (loops whose trips
//! are counted, values that they carry). None of them evaluates anything.

pub(crate) mod atoms;
mod bounds;
pub(crate) mod budget;
pub(crate) mod loop_table;
mod relevance;
pub(crate) mod scope;
