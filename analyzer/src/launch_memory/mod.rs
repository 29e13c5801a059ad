//! What the analysis remembers of kernel launches.

pub mod evaluator;
pub(crate) mod launch_cache;
pub(crate) mod launch_key;
pub mod replay;
