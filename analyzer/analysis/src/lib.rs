//! The analysis of one process, and what changes or watches it.
//!
//! Owns [`Analysis`] (`process`): trace records in, an outcome out. `rules` are those that a team
//! has set itself, `ipc` compares the processes of a run on memory that they share, `replan` and
//! `whatif` are the changes under which the same records may be checked again. Does not read
//! records: that is `ingest`.

#![allow(rustdoc::private_intra_doc_links, reason = "the docs are for maintainers, who build them with private items")]

pub mod ipc;
mod process;
pub mod replan;
pub(crate) mod rules;
pub mod whatif;

pub use process::{Analysis, AnalysisOptions};
