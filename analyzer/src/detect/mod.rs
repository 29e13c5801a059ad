//! Accesses in, races and findings out.

pub mod accesses;
pub mod confidence;
pub mod coverage;
pub mod early_free;
pub mod faults;
pub mod findings;
pub mod hints;
pub mod history;
pub mod host_watch;
pub mod race;
pub(crate) mod recording;
