//! Which bytes a copy or a set touches: linear, pitched (2D, 3D) or inside an opaque array.
//!
//! Owns the shapes only. The analyzer finds out whose memory it is.

use crate::id::ArrayId;

/// A box of bytes: `depth` slices of `height` rows of `width` bytes, rows `pitch` bytes apart,
/// slices `slice_pitch` apart. A linear range has `height == depth == 1`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Region {
    /// First byte (device or host address); for arrays, the byte offset inside the array,
    /// row-major.
    pub start: u64,
    /// Bytes a row.
    pub width: u64,
    /// Rows a slice.
    pub height: u32,
    /// Slices.
    pub depth: u32,
    /// Bytes from row to row.
    pub pitch: u64,
    /// Bytes from slice to slice.
    pub slice_pitch: u64,
    /// The opaque array that `start` counts in, or [`ArrayId::NONE`] for addresses.
    pub array: ArrayId,
}

impl Region {
    /// `len` bytes from `start`.
    pub fn linear(start: u64, len: u64) -> Self {
        Self { start, width: len, height: 1, depth: 1, pitch: len, slice_pitch: len, array: ArrayId::NONE }
    }

    /// `height` rows of `width` bytes, `pitch` bytes apart.
    pub fn pitched(start: u64, width: u64, height: u32, pitch: u64) -> Self {
        let slice_pitch = pitch.saturating_mul(u64::from(height));
        Self { start, width, height, depth: 1, pitch, slice_pitch, array: ArrayId::NONE }
    }

    /// Whether no byte is touched.
    pub fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    /// One past the last byte touched (saturating), or `start` when empty.
    pub fn end(&self) -> u64 {
        if self.is_empty() {
            return self.start;
        }
        let rows = self.pitch.saturating_mul(u64::from(self.height - 1));
        let slices = self.slice_pitch.saturating_mul(u64::from(self.depth - 1));
        self.start.saturating_add(rows).saturating_add(slices).saturating_add(self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_pitched_region_stops_at_last_row() {
        assert_eq!(Region::pitched(100, 10, 3, 64).end(), 100 + 128 + 10);
        assert_eq!(Region::linear(5, 0).end(), 5);
        assert_eq!(Region::linear(u64::MAX - 1, 100).end(), u64::MAX);
    }
}
