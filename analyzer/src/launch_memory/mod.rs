//! What the analysis remembers of kernel launches.

pub(crate) mod launch_cache;
pub(crate) mod launch_key;
pub mod replay;
