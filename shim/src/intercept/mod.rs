//! How calls reach us: the real driver's addresses, the doors through which programs look functions
//! up, and the exported wrappers.

pub mod doors;
pub mod elf;
mod exports;
pub mod library;
pub mod real;
