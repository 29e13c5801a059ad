//! Where an op gets its place in the order, and its way into the ring.

pub mod call_counts;
pub mod core;
