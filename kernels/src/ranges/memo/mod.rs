//! Results that are kept between the launches of a kernel.
//!
//! Owns three layers: `evaluation_cache` keeps whole results for equal launches (in the table of
//! `kept_evaluations`) and decides what is kept, `replay` keeps recorded arithmetic for launches
//! that differ in numbers, `relocated` moves the results of launches that differ in pointers, and
//! `kept_locks` is what the first has of their locks. `ahead` is what other threads find out before
//! the turn of a launch. None knows how a launch is evaluated: `analysis` passes the evaluation as
//! a closure.

pub(super) mod ahead;
pub(super) mod evaluation_cache;
mod kept_evaluations;
pub(super) mod kept_locks;
mod relocated;
pub(super) mod replay;
