//! State.

pub(crate) mod allocations;
pub(crate) mod event;
pub(crate) mod graph_exec;
pub(crate) mod host;
pub(crate) mod host_threads;
pub(crate) mod stream;
pub(crate) mod sync_vars;
