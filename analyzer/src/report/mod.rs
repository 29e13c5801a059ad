//! Reports: plain data, and one file for each way to print it.
//!
//! Owns the wording. Finds nothing itself.

pub mod json;
pub mod model;
pub mod stack;
pub mod text;

pub use model::{Finding, Report};
