//! What the ids of a trace stand for, and where each op stands in the order.

pub mod graphs;
pub mod happens_before;
pub mod names;
pub mod regions;
pub mod streams;
