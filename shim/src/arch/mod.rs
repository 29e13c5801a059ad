//! What depends on the processor: registers, jumps, the kernel's signal frame, machine code.
//!
//! Owns one file for each architecture, with the same names in each. Nothing else in this crate
//! asks for the architecture. Does not decide anything: callers say what an answer means.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
mod loads_stores;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

/// Where the kernel keeps the registers of an interrupted thread, as byte offsets from the stack
/// pointer that the code which returns from a signal has.
pub(crate) struct SignalFrame {
    /// Frame pointer.
    pub fp: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Address of the interrupted instruction.
    pub pc: u64,
    /// Link register, where there is one.
    pub link: Option<u64>,
}

/// What an instruction does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MachineAccess {
    /// Bytes touched, at least 1.
    pub bytes: u64,
    /// Reads and writes as one step that no other processor sees half of.
    pub atomic: bool,
}
