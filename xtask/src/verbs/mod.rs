//! The verbs, one a file, and what they all take and give.

pub mod bless;
pub mod check;
pub mod compare_reports;
pub mod cuda_headers;
pub mod field;
pub mod fuzz;
pub mod loom;
pub mod machine_code;
pub mod numba;
pub mod operators;
pub mod oracle;
pub mod precision;
pub mod ptx_census;
pub mod schedules;
pub mod torch_sim;
pub mod unsafe_blocks;
pub mod validators;
