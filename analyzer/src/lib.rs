//! The analyzer: records of a trace in, findings and reports out.
//!
//! The modules in the order of the data: `names`, `streams` and `stacks` keep what ids stand for;
//! `ordering` gives every op its place; `work`, `code` and `graphs` turn ops into accesses;
//! `memory` knows who touched which byte last; `race` judges pairs; `findings` counts them;
//! `elaborate` turns them into the data of a `report`; the `gate` decides which of them fail the
//! run. [`Analysis`] holds one process together.

pub mod across;
pub mod analysis;
pub mod cli;
pub mod code;
mod code_reader;
pub mod coverage;
mod elaborate;
pub mod exact;
pub mod exit_code;
pub mod explain;
pub mod faults;
mod fetch;
pub mod findings;
pub mod functions;
pub mod gate;
pub mod given_back;
pub mod graphs;
pub mod hints;
pub mod host;
mod key;
pub mod launch;
pub mod memory;
pub mod names;
pub mod options;
pub mod ordering;
pub mod output;
pub mod private_file;
pub mod program_file;
pub mod race;
pub mod recent;
pub mod regions;
pub mod report;
pub mod rests;
mod seen;
pub mod session;
mod shared;
pub mod sim;
pub mod soname;
pub mod stacks;
pub mod streams;
pub mod symbols;
pub mod tools;
pub mod torch;
pub mod trail;
mod unite;
pub mod work;

pub use analysis::{Analysis, AnalysisOptions};
pub use code_reader::set_cache;
pub use report::{Finding, Report};
