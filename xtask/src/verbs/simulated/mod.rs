//! Sweeps over many programs on the simulated GPU: too long for CI, which runs a slice of each.

pub mod machine_code;
pub mod operators;
pub mod oracle;
pub mod schedules;
