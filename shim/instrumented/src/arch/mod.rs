//! What depends on the processor: the machine code of the entry points, and operations on 16 bytes.
//!
//! Owns one file for each architecture, with the same names in each. Nothing else in this crate
//! asks for the architecture.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;
