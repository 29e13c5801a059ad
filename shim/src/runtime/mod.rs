//! The shim's own life inside a foreign process.
//!
//! Owns what every layer stands on: the state of a thread and of the process, the lock, the guard
//! against nested entry, the options, messages to the user, and the connection to the analyzer. All
//! of it lies below the log, and nothing here calls CUDA.
//!
//! [`thread_state`] holds what a thread keeps, part of it as [`handle_cache`]s; [`lock`] and
//! [`guard`] use it. [`lifecycle`] says whether the shim runs, and reports through [`stderr`]. At
//! the start of the log [`options`] are read and [`attach`] makes the ring, for which it may
//! [`spawn`] an analyzer. [`cycles`] measures.

pub mod attach;
pub mod cycles;
pub mod guard;
pub mod handle_cache;
pub mod lent_memory;
pub mod lifecycle;
pub mod lock;
pub mod options;
pub mod spawn;
pub mod stderr;
pub mod thread_state;
pub mod untold;
