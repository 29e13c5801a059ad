//! Exact mode on the simulated GPU: the simulator says itself which bytes a launch touches, and
//! which accesses inside it race ([`inside`]).
//!
//! Owns what stands in for NVIDIA's API there. Nothing is patched, there are no tables, and any
//! launch can be measured at any time. The choice of launches is that of [`super::settled`] and
//! [`super::demand`], and the bits become ranges in [`super::runs`], as on a device.
//!
//! The simulator asks about each launch inside the call that makes it ([`observer`]). The hook
//! behind that call knows the launch's place in the log ([`launch`], [`graph_launch`]). When the
//! kernel has run, on a thread of the simulator, its bytes are logged there and then. Either may
//! come first: [`tickets`] brings them together. Where nobody asked for measurements, [`budget`]
//! says which launches are worth them.

mod budget;
pub mod graph_launch;
mod inside;
pub(super) mod launch;
mod observer;
mod state;
mod tickets;

pub(crate) use observer::{Asked, array, start};
