//! The objects behind the handles that programs hold, and the tasks that calls ask for.
//!
//! In the order of use: `thread` and `context` (where a call happens), `stream` and `event`, `task`
//! (what a call asks the device to do), `capture`, `graph`, `graph_exec` and `conditional` (tasks
//! kept for later), `module`, `kernel_exec`, `overlap` and `kernel_parts` (the code that a launch
//! runs, and which launches run at the same time), `ipc_event` (the page that processes share of an
//! event).
//!
//! All but `ipc_event` know each other, and must: a context holds its legacy stream, a stream its
//! capture, a capture the graph that it builds, a node its task, a task the event that it records
//! or the kernel that it launches, an event record the capture that it was made in, a module its
//! context. So they live in one folder. Below it lie [`crate::memory`], [`crate::sched`] and
//! [`crate::interp`], which know none of them.

pub(crate) mod capture;
pub(crate) mod conditional;
pub(crate) mod context;
pub(crate) mod event;
pub(crate) mod graph;
pub(crate) mod graph_exec;
pub(crate) mod ipc_event;
pub(crate) mod kernel_exec;
mod kernel_parts;
pub(crate) mod module;
pub(crate) mod overlap;
pub(crate) mod stream;
pub(crate) mod task;
pub(crate) mod thread;
