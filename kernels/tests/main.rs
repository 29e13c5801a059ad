//! The crate's tests as one program, a module for each file. It owns the list of files and nothing
//! else.
//!
//! One program is compiled and linked once, with what its tests share; a program for each file did
//! that many times over.
//!
//! Tests share a process under `cargo test` and have one each under cargo-nextest: both must do.
//! `cargo xtask lint` finds files that this list forgets.

mod support {
    pub mod cuda;
}
mod truth;

mod atomics;
mod flag_loads;
mod grid_waits;
mod handovers;
mod launch_invariant;
mod line_table;
mod proxy_paths;
mod ptx_bit_fields;
mod ptx_forms;
mod ptx_modules;
mod ranges_bulk_copies;
mod ranges_by_class;
mod ranges_by_thread;
mod ranges_calls;
mod ranges_carried;
mod ranges_clusters;
mod ranges_conditional;
mod ranges_data;
mod ranges_delinearization;
mod ranges_divisions;
mod ranges_first_tiles;
mod ranges_fuzz;
mod ranges_guarded_moves;
mod ranges_index_functions;
mod ranges_irreducible;
mod ranges_large_numbers;
mod ranges_loaded_pointers;
mod ranges_loops;
mod ranges_losses;
mod ranges_made_maps;
mod ranges_many_sets;
mod ranges_pointer_tables;
mod ranges_predicate_masks;
mod ranges_program_slice;
mod ranges_replays;
mod ranges_shared_words;
mod ranges_shrinking;
mod ranges_tiles;
mod ranges_triton;
mod ranges_truth;
mod ranges_typed;
mod ranges_unfollowed_calls;
mod ranges_waits;
mod ranges_warp_roles;
mod ranges_wide_compares;
mod sass_jumps;
mod summary_cache;
mod system_fences;
