//! The shape of a kernel launch.
//!
//! Owns what a launch says besides its stream, kernel and parameters, how it is encoded, and how it
//! is shown: its fields stand among those of the op, without a level of their own.

use core::fmt::DebugStruct;

use crate::codec::{DecodeError, Decoder, Encoder, Field};

/// The shape of a launch: what its record holds before its parameters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LaunchShape {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads a block.
    pub block: [u32; 3],
    /// Blocks a cluster; zeros when there are no clusters.
    pub cluster: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub shared: u32,
    /// Launch attributes that matter, see [`crate::launch_flags`].
    pub flags: u32,
}

impl LaunchShape {
    /// Encoded bytes.
    pub(crate) const SIZE: usize = 3 * 12 + 4 + 4;

    /// Without clusters, dynamic shared memory and attributes.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self { grid, block, ..Self::default() }
    }

    /// The same with these flags instead.
    #[must_use]
    pub fn with_flags(self, flags: u32) -> Self {
        Self { flags, ..self }
    }
}

impl<'a> Field<'a> for LaunchShape {
    #[inline(always)]
    fn put(&self, to: &mut Encoder<'_>) {
        self.grid.put(to);
        self.block.put(to);
        self.cluster.put(to);
        self.shared.put(to);
        self.flags.put(to);
    }
    fn encoded_len(&self) -> usize {
        Self::SIZE
    }
    #[inline(always)]
    fn get(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            grid: Field::get(from)?,
            block: Field::get(from)?,
            cluster: Field::get(from)?,
            shared: Field::get(from)?,
            flags: Field::get(from)?,
        })
    }
    fn show(&self, _: &'static str, to: &mut DebugStruct<'_, '_>) {
        to.field("grid", &self.grid).field("block", &self.block).field("cluster", &self.cluster);
        to.field("shared", &self.shared).field("flags", &self.flags);
    }
}
