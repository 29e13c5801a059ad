//! Which races are found, and which orders are known.

mod exact;
mod host_order;
mod instrumented;
mod ipc;
mod random;
