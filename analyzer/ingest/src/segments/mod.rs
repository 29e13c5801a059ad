//! Recordings in segments: a folder of files, each of which can be read without those before it.
//!
//! The files in the order of use: `store` is what a run records into, one file or segments;
//! `writer` cuts a recording into segments, `live_state` keeps what lives so that a segment can
//! begin with it, `shared` writes symbols and code beside the segments, and `keep` deletes old
//! segments and saves what is kept. `parts` finds the segments of a folder for those who read.
//!
//! The format is [`trace::segment`]'s; what a gap means for the order is the crate `order`'s.

pub(crate) mod keep;
pub(crate) mod live_state;
pub mod parts;
pub(crate) mod shared;
pub mod store;
pub mod writer;
