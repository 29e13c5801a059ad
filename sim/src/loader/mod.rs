//! Loader.

pub mod fatbin;
pub mod ptx_link;
pub mod stand_in;
