//! The crate's tests as one program, a module for each file. It owns the list of files and nothing
//! else.
//!
//! One program is compiled and linked once, with what its tests share; a program for each file did
//! that many times over.
//!
//! Tests share a process under `cargo test` and have one each under cargo-nextest: both must do.
//! `cargo xtask lint` finds files that this list forgets.

mod support;

mod advice;
mod causes;
mod causes_property;
mod communicators;
mod conditional;
mod confirm;
mod coverage;
mod csan;
mod damage;
mod escape;
mod escaped_work;
mod exact;
mod excess;
mod excess_dependents;
mod excess_graphs;
mod excess_graphs_property;
mod excess_property;
mod forbid;
mod found_values;
mod hints;
mod host;
mod host_functions;
mod hunt;
mod inside;
mod ipc;
mod ipc_descriptors;
mod ipc_flags;
mod ipc_meetings;
mod launch_replay;
mod learned;
mod map_model;
mod memory_lives;
mod pointer_tables;
mod programmatic;
mod rectangles;
mod reports;
mod rules;
mod scale;
mod segments;
mod segments_cut;
mod source_order;
mod stale_graphs;
mod symbols_native;
mod symbols_python;
mod torch;
mod unknown_code;
mod weak_bounds;
mod what_if;
