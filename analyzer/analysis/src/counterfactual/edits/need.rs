//! One pair of steps that must stay ordered, and why.
//!
//! Owns the data. [`crate::counterfactual::excess`] lists those of a trace.

use detect::race::Hazard;

/// Why two steps must stay ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// They share bytes: they would race.
    Race(Hazard),
    /// A pool may hand out the block that the first uses: an entry of [`Steps::reuses`].
    Reused(u32),
    /// The host may read what the first brings.
    HostReads,
    /// The host may fill anew what the first reads.
    HostWrites,
    /// Some of the bytes of the first are not known.
    Unknown,
    /// Some of the bytes of the second are not known.
    UnknownThen,
    /// They are nodes of one graph and share bytes: an entry of [`Steps::graphs`].
    Nodes(u32, Hazard),
    /// They are nodes of one graph, and some of the bytes of one are not known.
    UnknownNodes(u32),
    /// The first is a node of a capture by number, the second the capture by index: its stream is
    /// not brought into the capture.
    Stray(u32),
    /// As above: its stream is not joined.
    Unjoined(u32),
}

impl Why {
    /// The stronger, the smaller.
    pub fn rank(self) -> u8 {
        match self {
            Self::Race(_) | Self::Reused(_) | Self::Nodes(..) => 0,
            Self::Stray(_) | Self::Unjoined(_) => 1,
            Self::HostReads | Self::HostWrites => 2,
            Self::Unknown | Self::UnknownThen | Self::UnknownNodes(_) => 3,
        }
    }
}

/// One need.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// What must have finished.
    pub first: u32,
    /// When: before this step begins, or for a need of the host, when this step has been made.
    pub then: u32,
    /// Why.
    pub why: Why,
}
