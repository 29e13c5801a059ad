//! Streams and events.

pub(crate) mod captures;
pub(crate) mod events;
pub(crate) mod host_functions;
pub(crate) mod stream_memops;
pub(crate) mod streams;
