//! Which races are found, and which orders are known.

pub mod exact;
mod host_order;
mod in_place;
mod instrumented;
mod ipc;
mod mpi;
mod random;
