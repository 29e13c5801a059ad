//! Start-up.

pub(crate) mod contexts;
pub(crate) mod devices;
pub(crate) mod error_strings;
pub(crate) mod proc_address;
