//! Files for CI systems: what a job shows beside its log.
//!
//! Each format is one file. Paths and links that they share are [`workspace`]'s. Scripts and people
//! are served by the formats one folder up.

pub mod code_quality;
pub mod github;
pub mod junit;
pub mod markdown;
pub mod sarif;
pub(crate) mod workspace;
