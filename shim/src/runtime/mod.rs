//! The shim's own life inside somebody else's process: options, start, fork, exit, switching off.

pub mod attach;
pub mod guard;
pub mod lifecycle;
pub mod lock;
pub mod options;
pub mod spawn;
pub mod stderr;
pub mod thread_state;
