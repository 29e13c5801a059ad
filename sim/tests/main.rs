//! The crate's tests as one program, a module for each file. It owns the list of files and nothing
//! else.
//!
//! One program is compiled and linked once, with what its tests share; a program for each file did
//! that many times over.
//!
//! Tests share a process under `cargo test` and have one each under cargo-nextest: both must do.
//! `cargo xtask lint` finds files that this list forgets.

mod interp_support;

mod cudart_programs;
mod interp_async_arrivals;
mod interp_bulk;
mod interp_cluster;
mod interp_copy_sources;
mod interp_cub;
mod interp_eights;
mod interp_group_product;
mod interp_hopper;
mod interp_hopper_kernels;
mod interp_inside;
mod interp_instructions;
mod interp_listing;
mod interp_machine;
mod interp_math;
mod interp_matrix;
mod interp_measured;
mod interp_patterns;
mod interp_programs;
mod interp_ranges;
mod interp_sass_float;
mod interp_sass_matrix;
mod interp_shared_flags;
mod interp_sparse;
mod interp_stuck;
mod interp_tile_rows;
mod interp_tiles;
#[cfg(feature = "native")]
mod native_fuzz;
