//! cuDNN: handles, and graphs of convolutions.
//!
//! - `handle`: handles and their streams
//! - `attributes`: descriptors of the graph interface, as bags of attributes
//! - `graph`: what a graph of operations means: tensors, convolutions, what follows them
//! - `pointwise`: what follows them, element by element
//! - `backend`: the functions of the graph interface
//!
//! XLA asks for nothing else of what computes. The older functions are refused (`refused`).

mod attributes;
mod backend;
mod graph;
mod handle;
mod pointwise;

use std::ffi::c_int;

/// Statuses of cuDNN other than success.
const BAD_PARAM: c_int = 2000;
const NULL_POINTER: c_int = 2002;
const NOT_FINALIZED: c_int = 2004;
const ATTRIBUTE_TYPE: c_int = 2010;
const DESCRIPTOR_TYPE: c_int = 2012;
const NOT_SUPPORTED: c_int = 3000;
const EXECUTION_FAILED: c_int = 5000;

/// The outcome of a call.
type Res<T> = Result<T, c_int>;

/// The status of an outcome.
fn status(outcome: Res<()>) -> c_int {
    outcome.err().unwrap_or(0)
}

/// Refuses, by name and reason.
fn not_simulated(what: &str) -> c_int {
    sim_driver_link::refused(&format!("cuDNN: {what} is not simulated"));
    NOT_SUPPORTED
}
