//! The extent of a tensor: an upper bound of what a kernel reaches through a tensor map. The layout
//! of maps is in `device_code::tensor_map`.

use crate::effects::{Dim, Extent};
use device_code::tensor_map::Tensor;
use smallvec::SmallVec;

impl Extent {
    /// The bytes of the tensor, relative to its address: an upper bound of what is reached through
    /// its map. `None` when it is larger than any memory.
    #[must_use]
    pub fn of_tensor(tensor: &Tensor) -> Option<Extent> {
        let width = tensor.sizes[0].checked_mul(tensor.element)?;
        let mut dims: SmallVec<[Dim; 3]> = SmallVec::new();
        let mut hi = width;
        for (stride, count) in tensor.strides.into_iter().zip(tensor.sizes.into_iter().skip(1)) {
            if stride > 0 && count > 1 {
                hi = hi.checked_add(stride.checked_mul(count - 1)?)?;
                dims.push(Dim { stride, count });
            }
        }
        if hi >= 1 << 47 {
            return None;
        }
        dims.sort_unstable_by_key(|d| d.stride);
        let hi = i64::try_from(hi).ok()?;
        // A wide row, or more dimensions than an extent keeps apart: the whole.
        match u32::try_from(width) {
            Ok(width) if dims.len() <= 3 => Some(Extent::Bounded { lo: 0, hi, dims, width, exact: false }),
            _ => {
                let dims = SmallVec::from_slice(&[Dim { stride: 1, count: u64::try_from(hi).ok()? }]);
                Some(Extent::Bounded { lo: 0, hi, dims, width: 1, exact: false })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(element: u64, sizes: [u64; 5], strides: [u64; 4]) -> Tensor {
        Tensor { address: 0x1000, element, sizes, strides }
    }

    #[test]
    fn bounds() {
        let halves = tensor(2, [64, 64, 1, 1, 1], [128, 0, 0, 0]);
        let dims = SmallVec::from_slice(&[Dim { stride: 128, count: 64 }]);
        let whole = Extent::Bounded { lo: 0, hi: 8192, dims, width: 128, exact: false };
        assert_eq!(Extent::of_tensor(&halves), Some(whole));
        // Larger than memory.
        let huge = tensor(2, [1 << 32, 1 << 32, 1, 1, 1], [0xf_0000_0000, 0, 0, 0]);
        assert_eq!(Extent::of_tensor(&huge), None);
    }
}
