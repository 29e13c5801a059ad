//! The shape of opaque arrays: bytes of an element and of a row, rows of a slice, slices, and the
//! levels of mipmapped ones.
//!
//! Owns the shape that a descriptor stands for. The trace counts bytes of an array as if its rows
//! and slices followed each other without gaps: the driver's own layout is not known to anyone, and
//! two rectangles have bytes in common there if and only if they have elements in common.

use cuda_sys::*;
use trace::{ArrayId, Region};

/// What is known of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Array {
    /// Its id in the trace.
    pub id: ArrayId,
    /// Its shape; `None`: the driver does not say, or the format has no elements of one size.
    pub shape: Option<ArrayShape>,
    /// Of a level of a mipmapped array, which the id stands for: its first byte there.
    pub level: Option<u64>,
}

impl Array {
    /// The bytes of it, in the array that the id stands for.
    pub fn region(&self) -> Region {
        let whole = match (self.level, &self.shape) {
            (Some(start), Some(shape)) => Region::linear(start, shape.size()),
            _ => Region::linear(0, u64::MAX >> 1),
        };
        Region { array: self.id, ..whole }
    }
}

/// A mipmapped array: one array of the trace, whose levels follow each other, the largest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mipmapped {
    /// Its id in the trace.
    pub id: ArrayId,
    /// Its levels.
    pub levels: Vec<Array>,
}

impl Mipmapped {
    /// As many levels as the call has made of an array of this shape: at most those down to one
    /// element, and one at least (cuda.h, cuMipmappedArrayCreate). Layers are no extent.
    pub fn new(id: ArrayId, largest: &ArrayShape, layered: bool, levels: u32) -> Self {
        let extent = (largest.row / largest.element.max(1)).max(largest.rows);
        let extent = if layered { extent } else { extent.max(largest.slices) };
        let (mut start, mut made) = (0_u64, Vec::new());
        for level in 0..levels.clamp(1, 1 + extent.max(1).ilog2()) {
            let shape = largest.level(level, layered);
            made.push(Array { id, shape: Some(shape), level: Some(start) });
            start = start.saturating_add(shape.size());
        }
        Self { id, levels: made }
    }

    /// One past the last byte of each level.
    pub fn ends(&self) -> Vec<u64> {
        self.levels.iter().map(|level| level.region().end()).collect()
    }

    /// What samples with a level of detail of at most `most` can see: such a texture object shows
    /// no smaller level.
    pub fn shown(&self, most: f32) -> Region {
        let last = self.levels.len().saturating_sub(1);
        // What is no number limits nothing.
        let smallest = if most.is_nan() { last } else { (most.ceil().max(0.0) as usize).min(last) };
        let end = self.levels.get(smallest).map_or(0, |level| level.region().end());
        Region { array: self.id, ..Region::linear(0, end) }
    }
}

/// The shape of an array, in bytes and rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayShape {
    /// Bytes of an element.
    pub element: u64,
    /// Bytes of a row.
    pub row: u64,
    /// Rows of a slice. A slice is a layer or a face, where the array has those.
    pub rows: u64,
    /// Slices.
    pub slices: u64,
}

impl ArrayShape {
    /// From a descriptor: 0 rows and 0 slices mean an array without that dimension (cuda.h,
    /// cuArray3DCreate). A layered array of one dimension has 0 rows and as many slices as layers.
    pub fn new((width, rows, slices): (u64, u64, u64), format: CUarray_format, channels: u32) -> Option<Self> {
        let element = channel_bytes(format)?.checked_mul(u64::from(channels))?;
        Some(Self { element, row: width.checked_mul(element)?, rows: rows.max(1), slices: slices.max(1) })
    }

    /// A level of a mipmapped array whose largest level has this shape: half the extents for each
    /// level, rounded down, and one at least.
    fn level(&self, level: u32, layered: bool) -> Self {
        let halved = |extent: u64| (extent >> level).max(1);
        let slices = if layered { self.slices } else { halved(self.slices) };
        Self { row: halved(self.row / self.element.max(1)) * self.element, rows: halved(self.rows), slices, ..*self }
    }

    /// Bytes of the whole array.
    pub fn size(&self) -> u64 {
        self.row.saturating_mul(self.rows).saturating_mul(self.slices)
    }
}

/// Bytes of one channel of a format; `None`: of a block-compressed or planar one, whose rows are
/// no rows of elements.
pub fn channel_bytes(format: CUarray_format) -> Option<u64> {
    match format {
        CU_AD_FORMAT_UNSIGNED_INT8
        | CU_AD_FORMAT_SIGNED_INT8
        | CU_AD_FORMAT_UNORM_INT8X1
        | CU_AD_FORMAT_UNORM_INT8X2
        | CU_AD_FORMAT_UNORM_INT8X4
        | CU_AD_FORMAT_SNORM_INT8X1
        | CU_AD_FORMAT_SNORM_INT8X2
        | CU_AD_FORMAT_SNORM_INT8X4
        | CU_AD_FORMAT_AYUV
        // Four channels of 10, 10, 10 and 2 bits.
        | CU_AD_FORMAT_UNORM_INT_101010_2 => Some(1),
        CU_AD_FORMAT_UNSIGNED_INT16
        | CU_AD_FORMAT_SIGNED_INT16
        | CU_AD_FORMAT_HALF
        | CU_AD_FORMAT_UNORM_INT16X1
        | CU_AD_FORMAT_UNORM_INT16X2
        | CU_AD_FORMAT_UNORM_INT16X4
        | CU_AD_FORMAT_SNORM_INT16X1
        | CU_AD_FORMAT_SNORM_INT16X2
        | CU_AD_FORMAT_SNORM_INT16X4 => Some(2),
        CU_AD_FORMAT_UNSIGNED_INT32 | CU_AD_FORMAT_SIGNED_INT32 | CU_AD_FORMAT_FLOAT => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_that_are_0_count_as_1() {
        let of = |extent| ArrayShape::new(extent, CU_AD_FORMAT_FLOAT, 2).map(|s| (s.row, s.rows, s.slices, s.size()));
        assert_eq!(of((96, 50, 0)), Some((768, 50, 1, 38_400)));
        assert_eq!(of((10, 0, 7)), Some((80, 1, 7, 560)), "layers of one row");
        assert_eq!(of((u64::MAX, 1, 1)), None, "no such array");
        assert_eq!(ArrayShape::new((8, 8, 0), CU_AD_FORMAT_BC1_UNORM, 4), None);
    }

    #[test]
    fn levels_follow_each_other() {
        let of = |extent, layered, levels| {
            let shape = ArrayShape::new(extent, CU_AD_FORMAT_FLOAT, 1).expect("plain");
            Mipmapped::new(ArrayId(1), &shape, layered, levels).ends()
        };
        assert_eq!(of((16, 8, 0), false, 3), [512, 512 + 128, 512 + 128 + 32]);
        assert_eq!(of((5, 0, 0), false, 99), [20, 28, 32], "down to one element");
        assert_eq!(of((4, 4, 4), false, 0), [256], "one at least");
        assert_eq!(of((4, 4, 4), false, 2), [256, 256 + 32]);
        assert_eq!(of((4, 4, 4), true, 2), [256, 256 + 64], "layers stay as they are");
        assert_eq!(of((1, 1, 64), true, 9), [256]);
    }

    #[test]
    fn the_range_of_levels_limits_what_an_object_shows() {
        let shape = ArrayShape::new((16, 8, 0), CU_AD_FORMAT_FLOAT, 1).expect("plain");
        let mipmapped = Mipmapped::new(ArrayId(1), &shape, false, 3);
        let shown = |most| mipmapped.shown(most).end();
        assert_eq!([0.0, -1.0, 0.5, 1.0, 1.01, 9.0, f32::NAN].map(shown), [512, 512, 640, 640, 672, 672, 672]);
    }
}
