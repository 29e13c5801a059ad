//! The end-to-end tests: whole programs under the built product, without a GPU.
//!
//! One binary for all of them: each test would else be linked with the same support again. What is
//! a list of cases rather than of functions is in `tests/cases`.

mod detection;
mod interception;
mod python;
mod reporting;
mod simulator;
mod tool;
mod wiring;
