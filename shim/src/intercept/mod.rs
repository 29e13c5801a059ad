//! How calls reach us: the real driver's addresses, the doors through which programs look functions
//! up, and the exported wrappers.

mod exports;
pub mod symbol_hooks;
