//! State: what the ids of a trace stand for, and where each op stands in the happens-before order.
//!
//! Owns what later ops refer to by id. Does not know which bytes an op touches.
//!
//! The files in the order of use: `names` are the definitions of a trace, `regions` the NVTX ranges
//! that each thread is in, `streams` the call sites behind streams and events, `graphs` the
//! executable graphs with their inner order, and `happens_before` the epoch of each op and the
//! questions about order. `happens_before` knows `graphs`, because two nodes of one launch are
//! ordered by their graph. The other files know no sibling.

pub mod graphs;
pub mod happens_before;
pub mod names;
pub mod regions;
pub mod streams;
