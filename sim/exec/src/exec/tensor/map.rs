//! Tensor maps, as the simulated driver makes them and copies of tiles read them.
//!
//! The first half has the layout of compute capability 9.x, as far as [`device_code::tensor_map`]
//! knows it: address, sizes, strides and box. Analyses therefore read it as they read a real
//! driver's. The place of the swizzle in a real one is not known: here it is in the second half, in
//! the simulator's own form.

use device_code::tensor_map::{Tensor, Tile};

/// Bytes of a map.
pub const SIZE: usize = 128;
const MAGIC: [u8; 4] = *b"tile";

/// A map for copies of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The tensor.
    pub tensor: Tensor,
    /// What a copy takes of it.
    pub tile: Tile,
    /// The hardware's number of the type of elements.
    pub kind: u8,
    /// Number of axes.
    pub rank: usize,
    /// Bytes of the rows in which units of 16 bytes change places (32, 64, 128), or 0.
    pub swizzle: u32,
}

impl TensorMap {
    /// The map's bytes.
    pub fn encode(&self) -> [u8; SIZE] {
        let Tensor { address, sizes, strides, .. } = self.tensor;
        let mut words = [0u32; 16];
        (words[0], words[1]) = (address as u32, (address >> 32) as u32);
        words[2] = (self.rank as u32 - 1) << 4 | u32::from(self.kind) << 7;
        for axis in 0..self.rank {
            words[8 + axis] = (sizes[axis] - 1) as u32;
            if axis > 0 {
                let stride = strides[axis - 1] >> 4;
                words[2 + axis] = stride as u32;
                words[7] |= ((stride >> 32) as u32 & 15) << (4 * (axis - 1));
            }
        }
        words[13] = (1..5).fold(0, |word, axis| word | (self.tile.step[axis] - 1) << (3 * axis));
        let mut bytes = [0; SIZE];
        bytes.chunks_exact_mut(4).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        bytes[55..60].iter_mut().zip(self.tile.extent).for_each(|(to, extent)| *to = (extent - 1) as u8);
        bytes[64..68].copy_from_slice(&MAGIC);
        (bytes[68], bytes[69]) = (self.rank as u8, self.swizzle as u8);
        bytes
    }

    /// Reads a map; `None` for bytes that [`TensorMap::encode`] did not make.
    pub fn decode(bytes: &[u8; SIZE]) -> Option<TensorMap> {
        if bytes[64..68] != MAGIC {
            return None;
        }
        let flags = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        let tensor = Tensor::decode(bytes)?;
        Some(TensorMap {
            tensor,
            tile: tensor.tile?,
            kind: (flags >> 7 & 15) as u8,
            rank: usize::from(bytes[68]),
            swizzle: u32::from(bytes[69]),
        })
    }

    /// How many elements are copied along each axis.
    pub(crate) fn counts(&self) -> [u32; 5] {
        std::array::from_fn(|axis| self.tile.extent[axis].div_ceil(self.tile.step[axis]))
    }

    /// Where a byte of a tile lies in shared memory: bits of the address of its unit of 16 bytes
    /// are combined with those of its row of 128 (PTX ISA, "Swizzling modes").
    pub(crate) fn swizzled(&self, address: u64) -> u64 {
        let units = u64::from(self.swizzle / 16).saturating_sub(1);
        address ^ (address >> 7 & units) << 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for rank in 1..=5 {
            for (kind, element) in [(0, 1), (1, 2), (3, 4), (4, 8), (9, 8), (10, 2)] {
                let (mut sizes, mut strides) = ([1; 5], [0; 4]);
                let mut tile = Tile { extent: [1; 5], step: [1; 5] };
                for axis in 0..rank {
                    sizes[axis] = [1 << 32, 7, 300, 1, 12][axis];
                    (tile.extent[axis], tile.step[axis]) = ([256, 3, 1, 1, 12][axis], [1, 8, 1, 2, 5][axis]);
                    if axis > 0 {
                        strides[axis - 1] = [16, 48, (1 << 40) - 16, 4096][axis - 1];
                    }
                }
                let tensor = Tensor { address: 0x7f12_3456_7890, element, sizes, strides, tile: Some(tile) };
                for swizzle in [0, 32, 64, 128] {
                    let map = TensorMap { tensor, tile, kind, rank, swizzle };
                    assert_eq!(TensorMap::decode(&map.encode()), Some(map));
                }
            }
        }
        assert_eq!(TensorMap::decode(&[0; SIZE]), None);
    }

    #[test]
    fn a_swizzle_moves_units_within_their_row() {
        let map = |swizzle| {
            let tile = Tile { extent: [1; 5], step: [1; 5] };
            let tensor = Tensor { address: 16, element: 1, sizes: [1; 5], strides: [0; 4], tile: Some(tile) };
            TensorMap { tensor, tile, kind: 0, rank: 1, swizzle }
        };
        for swizzle in [0, 32, 64, 128] {
            let map = map(swizzle);
            let mut seen: Vec<u64> = (0..4096).map(|at| map.swizzled(at)).collect();
            for (at, &to) in seen.iter().enumerate() {
                let (row, unit) = (at as u64 / u64::from(swizzle.max(1)), at as u64 & 15);
                assert!(swizzle == 0 || to / u64::from(swizzle) == row, "{swizzle}: {at} to {to}");
                assert_eq!(to & 15, unit);
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..4096), "{swizzle}");
        }
        // The second row of 128 bytes: units 0 and 1 change places.
        assert_eq!((map(128).swizzled(128), map(128).swizzled(128 + 16)), (128 + 16, 128));
    }
}
