//! Which races are found, and which orders are known.

mod exact;
mod host_order;
mod in_place;
mod ipc;
mod mpi;
mod random;
