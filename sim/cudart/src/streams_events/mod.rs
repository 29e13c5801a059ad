//! Streams, captures and events.

pub(crate) mod events;
pub(crate) mod streams;
