//! The crate's tests as one program, a module for each file. It owns the list of files and nothing
//! else.
//!
//! One program is compiled and linked once, with what its tests share; a program for each file did
//! that many times over.
//!
//! Tests share a process under `cargo test` and have one each under cargo-nextest: both must do.
//! `cargo xtask lint` finds files that this list forgets.

mod common;

mod audit;
mod bounds;
mod csan;
mod devices;
mod events;
mod gap;
mod graphs;
mod host;
mod left_values;
mod legacy;
mod memory;
mod programmatic;
mod property;
mod property_threads;
mod requests;
mod threads;
mod values;
mod what_waits;
