//! The happens-before engine.

mod clock;
mod engine;
mod event;
mod host;
mod memory;
mod moment;
pub mod policy;
mod rules;
mod stream;
mod table;
mod values;

pub use engine::{Engine, Options};
pub use moment::{ClockRef, KeptClock};
pub use policy::Policy;
