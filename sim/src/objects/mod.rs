//! Objects.

pub(crate) mod capture;
pub mod conditional;
pub(crate) mod context;
pub(crate) mod event;
pub(crate) mod graph;
pub(crate) mod graph_exec;
pub(crate) mod ipc_event;
pub mod kernel_exec;
pub(crate) mod module;
pub(crate) mod stream;
pub(crate) mod task;
pub(crate) mod thread;
