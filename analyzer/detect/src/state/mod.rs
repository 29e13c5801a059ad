//! State: what the ids of a trace stand for, and where each op stands in the happens-before order.
//!
//! Owns what later ops refer to by id. Does not know which bytes an op touches.
//!
//! The files in the order of use: `names` are the definitions of a trace, `regions` the NVTX ranges
//! that each thread is in, `streams` the call sites behind streams and events, `graphs` the
//! executable graphs with their inner order, `captures` the calls that made captured ones,
//! `graph_waits` which edges of a graph are there because of which captured wait, and
//! `happens_before` the epoch of each op and the questions about order; `op_site` is the call site
//! of an op in every pass. `happens_before` knows
//! `graphs`, because two nodes of one launch are ordered by their graph; `graph_waits` knows both
//! `graphs` and `captures`, and `found_values` asks `happens_before` about values in memory. The
//! other files know no sibling. `handovers` is work that threads of Python hand to others,
//! `polls` the kernels that wait for flags in memory, which `happens_before` places, `signal_pads`
//! those that use signal pads of PyTorch, and `communicators` in which order collectives of several
//! communicators are enqueued.

pub mod captures;
pub mod communicators;
pub mod found_values;
pub mod graph_waits;
pub mod graphs;
pub mod handovers;
pub mod happens_before;
pub mod names;
pub mod op_site;
pub mod polls;
pub mod regions;
pub mod signal_pads;
pub mod streams;
