//! The verbs, one a file, and what they all take and give. Sweeps on the simulated GPU have a
//! folder.

pub mod aarch64;
pub mod bless;
pub mod check;
pub mod compare_reports;
pub mod cuda_headers;
pub mod field;
pub mod fleet;
pub mod fuzz;
pub mod harden;
pub mod inside_suites;
pub mod library_names;
pub mod loom;
pub mod nightly;
pub mod numba;
pub mod precision;
pub mod ptx_census;
pub mod release;
pub mod simulated;
pub mod torch_sim;
pub mod unsafe_blocks;
pub mod validators;
