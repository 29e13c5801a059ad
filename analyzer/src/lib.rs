//! The `streamsan` command: what runs outside of the program under test.
//!
//! Owns the command line, the start of programs, hunts, and the tools that read traces. Does not
//! intercept calls (the crate `shim`), define records (`trace`), know rules of order (`order`) or
//! analyse kernel code (`kernels`).
//!
//! # The crates of the analyzer, in the order of the data
//!
//! Each uses those below it in this list only, as its `Cargo.toml` says.
//!
//! - This one: [`cli`] is the command line, [`launcher`] starts the program with the shim preloaded
//!   and accepts its processes, [`hunt`] finds the programs of a folder and runs each, [`tools`]
//!   are the other commands that read traces or code images, [`doctor`] examines the machine, and
//!   [`init`] writes the files with which a project starts.
//! - `ingest` reads records, live or from a trace file, and feeds one `Analysis` a process.
//! - `analysis` is one process under analysis: it takes each record through the crates below. Its
//!   `rules` are those that a team has set itself, `ipc` compares processes that share memory. Its
//!   `counterfactual` edits records and tries the edits: `causes` finds the few waits whose absence
//!   explains the findings, `excess` the synchronisations that nothing needs.
//! - `report` resolves findings to plain data, judges them (`gate`), and prints them in every
//!   format.
//! - `settings` is what the user asked for, and the numbers that a command ends with.
//! - `detect` turns ops into accesses, judges pairs, and de-duplicates races to findings. It holds
//!   the `state` of ids and the order, `memory` with the accesses that can still race, `launches`
//!   from a launch to its bytes, `launch_memory` for repeated ones, and `exact` for measured bytes.
//! - `symbols` turns recorded stacks into frames with names and lines.
//! - `system` is names of files, files and signals.
//!
//! `report` and `symbols` know nothing of `Analysis`, and `detect` nothing of reports.

#![allow(rustdoc::private_intra_doc_links, reason = "the docs are for maintainers, who build them with private items")]

pub mod cli;
pub mod doctor;
pub mod hunt;
pub mod init;
pub mod launcher;
pub mod tools;
