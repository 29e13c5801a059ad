//! Streams, events, captures, host functions, and stream memory operations.
//!
//! `captures`, `host_functions` and `stream_memops` share `streams::stream_of`, which finds the
//! stream that a handle means. `events` stands alone.

pub(crate) mod captures;
pub(crate) mod events;
pub(crate) mod host_functions;
pub(crate) mod stream_memops;
pub(crate) mod streams;
