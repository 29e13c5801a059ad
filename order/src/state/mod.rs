//! What the engine keeps: streams and their contexts, events, the host, host threads, allocations,
//! values in memory, executable graphs, devices.
//!
//! Each file owns one kind of object and the operations on it alone. No file decides what an op
//! means: that is in [`crate::rules`]. `graph_exec` uses the conditions of `sync_vars`, which
//! looks up what `left_values` keeps, and is divided by `graph_plan`; `stream` has a `last_kernel`.
//! The other files do not know each other.

pub(crate) mod allocations;
pub(crate) mod devices;
pub(crate) mod event;
pub(crate) mod graph_exec;
pub(crate) mod graph_plan;
pub(crate) mod host;
pub(crate) mod host_threads;
pub(crate) mod last_kernel;
pub(crate) mod left_values;
pub(crate) mod stream;
pub(crate) mod sync_vars;
