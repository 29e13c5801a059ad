//! Results that are kept between the launches of a kernel.
//!
//! Owns two layers: `evaluation_cache` keeps whole results for equal launches and decides what is
//! kept, `replay` keeps recorded arithmetic for launches that differ in numbers. Neither knows how
//! a launch is evaluated; `analysis` passes the evaluation as a closure.

pub(super) mod evaluation_cache;
mod replay;
