//! Reports: plain data, and one file for each way to print it.
//!
//! Owns the wording. Finds nothing itself.

pub mod around;
pub mod csan;
pub mod fingerprint;
pub mod github;
pub mod harmless;
pub mod html;
pub mod json;
pub mod junit;
pub mod model;
pub mod parquet;
pub mod reporter;
pub mod sarif;
pub mod short;
pub mod stack;
pub mod text;

pub use model::{Finding, Report};
