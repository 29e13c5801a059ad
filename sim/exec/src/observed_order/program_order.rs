//! Whether a program can order memory at all: others are not told of.

/// How the instructions of a program can order memory for others than its own block or cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ProgramOrder {
    /// By fences, acquires or releases of the device or the system.
    pub(crate) device: bool,
    /// By some of the system.
    pub(crate) system: bool,
}
