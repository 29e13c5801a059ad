//! Tensors in device memory, of any number of dimensions with any strides.

use super::convolution::Share;
use super::memory::Memory;
use super::number::{Type, load, store};
use crate::model::block::{Block, Dim, ONE};

/// The shape of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    /// Of the elements.
    pub kind: Type,
    /// Elements of each dimension.
    pub dims: Vec<usize>,
    /// From one index to the next, in elements.
    pub strides: Vec<i64>,
}

impl Tensor {
    /// How many elements it has.
    pub(crate) fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// Its dimensions for a [`Block`]: those that join up are one. `None`: more than three are
    /// left, or elements lie on each other.
    pub(crate) fn block_dims(&self) -> Option<[Dim; 3]> {
        let bytes = i64::from(self.kind.bytes());
        if self.count() == 0 {
            return Some([Dim { count: 0, stride: 0 }; 3]);
        }
        let both = self.dims.iter().zip(&self.strides);
        let mut dims: Vec<Dim> = both
            .filter(|(count, _)| **count > 1)
            .map(|(count, stride)| Dim { count: *count as u64, stride: stride * bytes })
            .collect();
        dims.sort_by_key(|dim| dim.stride);
        let mut joined: Vec<Dim> = Vec::new();
        for dim in dims {
            if dim.stride <= 0 {
                return None;
            }
            match joined.last_mut() {
                Some(last) if last.stride * last.count as i64 == dim.stride => last.count *= dim.count,
                Some(last) if last.stride * last.count as i64 > dim.stride => return None,
                _ => joined.push(dim),
            }
        }
        if joined.len() > 3 {
            return None;
        }
        joined.resize(3, ONE);
        joined.try_into().ok()
    }

    /// Reading it.
    pub(crate) fn read_block(&self, at: u64) -> Option<Block> {
        Some(Block::read(at, self.kind.bytes(), self.block_dims()?))
    }

    /// Reading those of its elements that have a part along each of the last dimensions.
    pub(crate) fn read_parts(&self, at: u64, parts: &[Share]) -> Option<Block> {
        let (mut of, mut offset) = (self.clone(), 0);
        for (axis, part) in (self.dims.len() - parts.len()..).zip(parts) {
            let Share::Steps { first, step, count } = *part else { return Some(self.read_block(at)?.in_part()) };
            offset += first as i64 * self.strides[axis];
            (of.dims[axis], of.strides[axis]) = (count, step as i64 * self.strides[axis]);
        }
        let at_first = at.wrapping_add_signed(offset * i64::from(self.kind.bytes()));
        of.read_block(at_first).or_else(|| Some(self.read_block(at)?.in_part()))
    }

    /// Writing it; `reads`: it is read too.
    pub(crate) fn write_block(&self, at: u64, reads: bool) -> Option<Block> {
        Some(Block::write(at, self.kind.bytes(), self.block_dims()?, reads))
    }

    /// Calls with the offset in bytes of each element, the last dimension the fastest.
    fn each(&self, mut body: impl FnMut(usize, isize)) {
        let bytes = i64::from(self.kind.bytes());
        let mut index = vec![0_usize; self.dims.len()];
        let mut offset = 0_i64;
        for at in 0..self.count() {
            body(at, (offset * bytes) as isize);
            for axis in (0..self.dims.len()).rev() {
                index[axis] += 1;
                offset += self.strides[axis];
                if index[axis] < self.dims[axis] {
                    break;
                }
                offset -= self.strides[axis] * self.dims[axis] as i64;
                index[axis] = 0;
            }
        }
    }

    /// Where the first element lies for the CPU.
    fn origin(&self, memory: &Memory<'_>, at: u64, write: bool) -> Option<*mut u8> {
        let reach: i64 = self.dims.iter().zip(&self.strides).map(|(count, stride)| (*count as i64 - 1) * stride).sum();
        memory.view(at, (reach + 1) as u64 * u64::from(self.kind.bytes()), write)
    }

    /// All elements, the last dimension the fastest.
    pub(crate) fn load(&self, memory: &Memory<'_>, at: u64) -> Option<Vec<f64>> {
        let mut out = vec![0.0; self.count()];
        if !out.is_empty() {
            let origin = self.origin(memory, at, false)?;
            // SAFETY: `origin` has vouched for all elements: no stride is negative.
            self.each(|index, offset| out[index] = unsafe { load(origin.wrapping_offset(offset), self.kind) });
        }
        Some(out)
    }

    /// Writes all elements.
    pub(crate) fn store(&self, memory: &Memory<'_>, at: u64, values: &[f64]) -> Option<()> {
        if !values.is_empty() {
            let origin = self.origin(memory, at, true)?;
            // SAFETY: as above.
            self.each(|index, offset| unsafe { store(origin.wrapping_offset(offset), self.kind, values[index]) });
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dims: &[usize], strides: &[i64]) -> Tensor {
        Tensor { kind: Type::F32, dims: dims.to_vec(), strides: strides.to_vec() }
    }

    #[test]
    fn a_packed_tensor_is_one_row_in_any_order_of_dimensions() {
        let row = Some([Dim { count: 120, stride: 4 }, ONE, ONE]);
        assert_eq!(tensor(&[2, 3, 4, 5], &[60, 20, 5, 1]).block_dims(), row);
        assert_eq!(tensor(&[2, 3, 4, 5], &[60, 1, 15, 3]).block_dims(), row);
        let gap = [Dim { count: 20, stride: 4 }, Dim { count: 6, stride: 128 }, ONE];
        assert_eq!(tensor(&[2, 3, 4, 5], &[96, 32, 5, 1]).block_dims(), Some(gap));
        assert_eq!(tensor(&[2, 3], &[1, 1]).block_dims(), None, "elements on each other");
        assert_eq!(tensor(&[2, 2, 2, 2], &[1, 3, 7, 15]).block_dims(), None, "four dimensions with gaps");
    }

    #[test]
    fn elements_come_with_the_last_dimension_first() {
        let mut seen = Vec::new();
        tensor(&[2, 3], &[1, 2]).each(|_, offset| seen.push(offset));
        assert_eq!(seen, [0, 8, 16, 4, 12, 20]);
    }
}
