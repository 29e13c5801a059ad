//! Reports: plain data, and one file for each way to print it.
//!
//! Owns the wording. Finds nothing itself.

pub mod call_site;
pub(crate) mod elaborate;
pub mod escape;
mod fault;
mod finding;
pub mod fingerprint;
pub mod format;
mod judgement;
pub mod model;
pub mod neighbourhood;
pub mod stack_text;

pub use model::{Finding, Report};
