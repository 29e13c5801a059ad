//! Executes what machine code has and PTX has not: arithmetic with carries in predicates,
//! convergence barriers, jumps to addresses. What both have is in [`super::exec`].

pub(crate) mod convergence;
pub mod floats;
pub(crate) mod halves;
pub mod integer;
pub(crate) mod jumps;
mod meeting;
pub(crate) mod memory;
pub mod predicates;
pub(crate) mod tensor;
