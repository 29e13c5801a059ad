//! The shape of opaque arrays: bytes of an element and of a row, rows of a slice, slices.
//!
//! Owns the shape that a descriptor stands for. The trace counts bytes of an array as if its rows
//! and slices followed each other without gaps: the driver's own layout is not known to anyone, and
//! two rectangles have bytes in common there if and only if they have elements in common.

use cuda_sys::*;
use trace::ArrayId;

/// What is known of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Array {
    /// Its id in the trace.
    pub id: ArrayId,
    /// Its shape; `None`: the driver does not say, or the format has no elements of one size.
    pub shape: Option<ArrayShape>,
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
}
