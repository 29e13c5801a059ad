//! Reports: the data of a report, the naming of things in it, and the formats that print it.
//!
//! Owns the wording. Finds nothing itself.
//!
//! The files in the order of use: `elaborate` turns a raw finding into report data, with
//! `call_site`, `neighbourhood`, `mend/` and `fingerprint` as its parts. `model` is the report of a
//! run, made of `finding`, `cause`, `fault`, `judgement` and, after a hunt, `program`. `escape`
//! makes names of the program harmless. `format/` prints, with `symbols::stack_text` for stacks;
//! `reporters/` has the formats that a run is asked for.
//!
//! `gate/` decides which findings fail the run.
//!
//! `elaborate` and `neighbourhood` know each other: the scene around a race is named with the same
//! names of streams and calls as its two sides. `model` and the files of its parts know each other
//! because `model` re-exports them and merges findings by fingerprint; `program` merges the reports
//! of several programs. `words` reads a report back. `escape` visits every text of `model` and
//! `neighbourhood`.

#![warn(unreachable_pub)]
#![allow(rustdoc::private_intra_doc_links, reason = "the docs are for maintainers, who build them with private items")]

pub(crate) mod breach;
pub mod call_site;
pub mod cause;
pub mod doubt;
pub mod elaborate;
pub mod escape;
pub mod fault;
mod finding;
pub mod fingerprint;
pub mod format;
pub mod gate;
mod judgement;
pub mod mend;
pub mod model;
pub(crate) mod neighbourhood;
pub mod program;
pub mod reporters;
pub mod words;

pub use model::{Finding, Report};
