//! The real functions behind the shim's exports.

pub mod driver;
pub mod elf;
pub mod library;
