//! What depends on the processor: system calls, memory functions, and all machine code that is
//! written into the program.
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

/// What a piece of a stub's code refers to, by addresses that lie within a megabyte of it.
pub(crate) struct PieceTargets {
    /// The slot that holds the address to go to.
    pub slot: usize,
    /// The header: its first word is the address of the first call's code, its second that of the
    /// function which refuses a call.
    pub header: usize,
    /// The function's number.
    pub index: u32,
    /// Its name, a C string.
    pub name: usize,
}
