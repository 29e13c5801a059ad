//! The analysis of one process, and what changes or watches it.
//!
//! Owns [`Analysis`]: trace records in, an outcome out. From the bottom: `process` is what is known
//! of a process, and the state that its ops build up; `ops` is what each op does to that state.
//! `rules` are those that a team has set itself, `ipc` compares the processes of a run on memory
//! that they share. `counterfactual` edits records before they are applied, and tries edits. `pass`
//! takes records through all of these. Does not read records: that is `ingest`.

#![warn(unreachable_pub)]
#![allow(rustdoc::private_intra_doc_links, reason = "the docs are for maintainers, who build them with private items")]

pub mod counterfactual;
pub mod ipc;
mod ops;
mod pass;
mod process;
pub(crate) mod rules;

pub use pass::analysis::Analysis;
pub use process::facts::ProcessFacts;
pub use process::options::AnalysisOptions;
