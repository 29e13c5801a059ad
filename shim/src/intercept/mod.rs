//! How calls reach us: the look-ups of functions, and the exported wrappers.
//!
//! [`exports`] is the table of wrappers. [`symbol_hooks`] answers every other way in which a
//! program looks a function up with one of them. The two know each other: a wrapper of the driver's
//! own look-up (`cuGetProcAddress`) hands its answer to the hooks.

mod exports;
pub mod symbol_hooks;
