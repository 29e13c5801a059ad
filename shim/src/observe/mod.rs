//! What surrounds each observed call: the fence around our own code, and the context of the op
//! functions.
//!
//! [`context`] comes first: [`observe()`] enters shim code, makes a [`Cx`], and runs an op function
//! with it. [`host_watch`] adds to that context the watches over the host's memory. The two know
//! each other: each op that is logged may end watches, so logging looks at them, and what a watch
//! finds is logged. [`host_touch`] stands alone: what instrumented host code says itself.

pub mod context;
pub mod host_touch;
pub mod host_watch;

pub use context::{Cx, Phase, observe};
