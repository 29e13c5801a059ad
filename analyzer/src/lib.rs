//! The analyzer: records of a trace in, findings and reports out.
//!
//! The modules in the order of the data: `names`, `streams` and `stacks` keep what ids stand for;
//! `ordering` gives every op its place; `work`, `code` and `graphs` turn ops into accesses;
//! `memory` knows who touched which byte last; `race` judges pairs; `findings` counts them;
//! `elaborate` turns them into the data of a `report`; the `gate` decides which of them fail the
//! run. [`Analysis`] holds one process together.

pub mod analysis;
pub mod cli;
pub mod detect;
pub mod exact;
pub mod exit_code;
pub mod gate;
pub mod ingest;
pub mod ipc;
pub mod launch_memory;
pub mod launcher;
pub mod launches;
pub mod memory;
pub mod options;
pub mod output;
pub mod private_file;
pub mod report;
pub mod state;
pub mod symbols;
pub mod tools;

pub use crate::launches::image_reader::set_cache;
pub use analysis::{Analysis, AnalysisOptions};
pub use report::{Finding, Report};
