//! The analyzer: trace records in, races, findings and reports out.
//!
//! Owns everything of StreamSan that runs outside of the program under test. Does not intercept
//! calls (the crate `shim`), define records (`trace`), know rules of order (`order`) or analyse
//! kernel code (`kernels`).
//!
//! # The folders, in the order of the data
//!
//! - [`cli`] and [`options`] are the command line and its meaning; [`output`] and [`exit_code`] how
//!   a command speaks and ends; [`file_name`] is a name as it was given; [`private_file`] opens the
//!   files that only the user may read.
//! - [`launcher`] starts the program with the shim preloaded and accepts its processes.
//! - [`ingest`] reads records, live or from a trace file, and feeds one [`Analysis`] a process.
//! - [`analysis`] is one process under analysis. It takes each record through the folders below.
//! - [`state`] holds what ids stand for, and the happens-before order.
//! - [`launches`] goes from a kernel launch to the bytes that it touches.
//! - [`launch_memory`] remembers launches, so that repeated ones are cheap. Its head lists every
//!   layer that remembers a launch, from the disk to the access map.
//! - [`memory`] holds allocations, and for each byte the accesses that can still race.
//! - [`detect`] turns ops into accesses, judges pairs, and de-duplicates races to findings.
//! - [`replan`] checks the same records again under a changed order.
//! - [`causes`] finds the few waits whose absence explains the findings, and tries them.
//! - [`ipc`] compares the processes of a run on memory that they share.
//! - [`exact`] replaces predicted bytes of a launch with measured ones, and compares the two.
//! - [`symbols`] turns recorded stacks into frames with names and lines.
//! - [`report`] resolves findings to plain data, and prints them in every format.
//! - [`rules`] looks for calls that a team has forbidden itself.
//! - [`gate`] decides which findings fail the run: filters, suppressions, the baseline.
//! - [`hunt`] finds the programs of a folder and runs each.
//! - [`tools`] are the other commands that read traces or code images.
//!
//! # Which folder may use which
//!
//! A folder uses the folders of its line, and no others. Folders that speak to the user may use
//! `output` and `exit_code` as well, those that read files of the program `local_files`, and all
//! `file_name` and `printable`, which are about names and text alone.
//!
//! - `symbols`: none.
//! - `state` and `memory`: each other. An access carries a region, and the order implements
//!   [`memory::access_map::Clocks`].
//! - `launches`: `memory`, `state`.
//! - `detect`: `launches`, `memory`, `state`, and `report` (the elaborator, for hints and faults).
//! - `launch_memory`: `detect`, `launches`, `memory`, `state`.
//! - `exact`: `detect`, `launches`, `memory`, `options`.
//! - `report`: the data of `detect`, `exact`, `launch_memory`, `memory` and `state`; `symbols`,
//!   `gate`, `options`.
//! - `replan`: `detect`, `memory`, `report`; `analysis` and `ingest` for the second pass. Its data
//!   (`site`, `waits`, `trial`) is known to `analysis`, and `site` to `state`.
//! - `causes`: `analysis`, `detect`, `memory`, `replan`, `report`.
//! - `gate`: `report`, `symbols`, `options`.
//! - `rules`: `gate` (patterns), `report`, `state`, `symbols`.
//! - `ipc`: `detect`, `memory`, `report`.
//! - `analysis`: all of the above except `gate` and `options`.
//! - `ingest`: `analysis`, `causes`, `exact`, `ipc`, `launches`, `report`, `symbols`.
//! - `launcher`: `ingest`, `ipc`, `report`, `options`.
//! - `hunt`: `launcher`, `report`, `ingest`.
//! - `tools`: `ingest`, `launches`, `report`, `state`, `symbols`.
//! - `cli`: everything.
//!
//! Where two folders use each other, their files must not form a cycle.

#![allow(rustdoc::private_intra_doc_links, reason = "the docs are for maintainers, who build them with private items")]

pub mod analysis;
pub mod causes;
pub mod cli;
pub mod excess;
pub mod hunt;
pub mod ingest;
pub mod ipc;
pub mod launcher;
pub mod replan;
pub mod rules;
pub mod tools;
pub mod whatif;

pub use analysis::{Analysis, AnalysisOptions};
pub use detect::launches::image_reader::set_cache;
