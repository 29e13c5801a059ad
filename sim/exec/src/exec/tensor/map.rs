//! Tensor maps, as the simulated driver makes them and copies of tiles read them.
//!
//! The first half has the layout of compute capability 9.x, as far as [`device_code::tensor_map`]
//! knows it: address, sizes, strides and box. Analyses therefore read it as they read a real
//! driver's. The swizzle and the fill are where the assembler puts them (ptxas 13.0,
//! `tensormap.replace` for sm_90a). Where a real map has the box of an image is not known: here it
//! is in the second half, in the simulator's own form.

use device_code::tensor_map::{Tensor, Tile};

/// Bytes of a map.
pub const SIZE: usize = 128;
/// What the second half of a map of images begins with, and where its box is there: corners,
/// channels, pixels.
const MAGIC: [u8; 4] = *b"im2c";
const MAGIC_AT: usize = 64;
const IMAGE_AT: usize = 72;
/// The bit of the third word that maps of images have, and where it has the mode of the swizzle and
/// the bit for fills with NaN.
const IMAGE: u32 = 1;
const SWIZZLE_AT: u32 = 13;
const FILL_AT: u32 = 15;

/// What copies take of an image (cuda.h, `cuTensorMapEncodeIm2col`): pixels one after the other in
/// the box between two corners, and some channels of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// The first pixel of the box along each of the axes between channels and images, and how far
    /// its last one is from the tensor's.
    pub lower: [i16; 3],
    #[allow(missing_docs, reason = "said above")]
    pub upper: [i16; 3],
    /// Elements along the first axis.
    pub channels: u16,
    /// Pixels of a copy.
    pub pixels: u16,
}

/// A map for copies of tiles, or of columns of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The tensor.
    pub tensor: Tensor,
    /// What a copy takes of it; of an image only the steps matter.
    pub tile: Tile,
    /// What a copy takes of an image.
    pub image: Option<Image>,
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
        // 32, 64 and 128 bytes are modes 1 to 3.
        let mode = (self.swizzle / 16).trailing_zeros() & 3;
        words[2] = (self.rank as u32 - 1) << 4 | u32::from(self.kind) << 7 | mode << SWIZZLE_AT;
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
        if let Some(image) = self.image {
            bytes[MAGIC_AT..][..4].copy_from_slice(&MAGIC);
            bytes[8] |= IMAGE as u8;
            bytes[55..60].fill(0);
            let corners = image.lower.iter().chain(&image.upper).map(|corner| corner.cast_unsigned());
            let words = corners.chain([image.channels, image.pixels]);
            let at = bytes[IMAGE_AT..].chunks_exact_mut(2);
            at.zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        }
        bytes
    }

    /// Reads a map; `None` for bytes that are none, and for maps with what is not executed.
    pub fn decode(bytes: &[u8; SIZE]) -> Option<TensorMap> {
        let flags = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        if flags >> FILL_AT & 1 != 0 || flags & IMAGE != 0 && bytes[MAGIC_AT..][..4] != MAGIC {
            return None;
        }
        let steps = u32::from_le_bytes([bytes[52], bytes[53], bytes[54], 0]);
        let tensor = Tensor::decode(bytes)?;
        let half = |at: usize| u16::from_le_bytes([bytes[IMAGE_AT + 2 * at], bytes[IMAGE_AT + 2 * at + 1]]);
        let corner = |at: usize| half(at).cast_signed();
        let image = (flags & IMAGE != 0).then(|| Image {
            lower: [corner(0), corner(1), corner(2)],
            upper: [corner(3), corner(4), corner(5)],
            channels: half(6),
            pixels: half(7),
        });
        let step = std::array::from_fn(|axis| if axis == 0 { 1 } else { (steps >> (3 * axis) & 7) + 1 });
        Some(TensorMap {
            tensor,
            tile: tensor.tile.unwrap_or(Tile { extent: [1; 5], step }),
            image,
            kind: (flags >> 7 & 15) as u8,
            rank: (flags >> 4 & 7) as usize + 1,
            swizzle: [0, 32, 64, 128][(flags >> SWIZZLE_AT & 3) as usize],
        })
    }

    /// Replaces a field in the bytes of a map. False: a value that no map has.
    pub(crate) fn replace(bytes: &mut [u8; SIZE], field: Field, axis: usize, value: u64) -> bool {
        let word = |bytes: &[u8; SIZE], at: usize| {
            u32::from_le_bytes([bytes[4 * at], bytes[4 * at + 1], bytes[4 * at + 2], bytes[4 * at + 3]])
        };
        let put = |bytes: &mut [u8; SIZE], at: usize, shift: u32, mask: u32, value: u64| {
            let new = word(bytes, at) & !(mask << shift) | (value as u32 & mask) << shift;
            bytes[4 * at..][..4].copy_from_slice(&new.to_le_bytes());
        };
        let most_axes = if matches!(field, Field::Stride) { 4 } else { 5 };
        let fits = match field {
            Field::Address => value != 0 && value.is_multiple_of(16),
            Field::Rank => value < 5,
            Field::Box => (1..=256).contains(&value),
            // Of axes beyond the rank anything.
            Field::Size => true,
            Field::Stride => value.is_multiple_of(16) && value < 1 << 40,
            Field::Step => (1..=8).contains(&value),
            Field::Kind => value <= 10,
            Field::Interleave => value <= 2,
            Field::Fill => value <= 1,
            Field::Swizzle => value <= 3,
        };
        if !fits || axis >= most_axes {
            return false;
        }
        let above = axis as u32;
        match field {
            Field::Address => bytes[..8].copy_from_slice(&value.to_le_bytes()),
            Field::Rank => put(bytes, 2, 4, 7, value),
            Field::Box => bytes[55 + axis] = (value - 1) as u8,
            Field::Size => put(bytes, 8 + axis, 0, u32::MAX, value.wrapping_sub(1)),
            Field::Stride => {
                put(bytes, 3 + axis, 0, u32::MAX, value >> 4);
                put(bytes, 7, 4 * above, 15, value >> 36);
            }
            // Along the first axis all elements are copied (cuda.h, `elementStrides`).
            Field::Step if axis == 0 => {}
            Field::Step => put(bytes, 13, 3 * above, 7, value - 1),
            Field::Kind => put(bytes, 2, 7, 15, value),
            Field::Interleave => put(bytes, 2, 11, 3, value),
            Field::Swizzle => put(bytes, 2, SWIZZLE_AT, 3, value),
            Field::Fill => put(bytes, 2, FILL_AT, 1, value),
        }
        true
    }

    /// How many elements are copied along each axis of a tile.
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

/// A field of a map that a kernel may replace (PTX ISA, "tensormap.replace").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Address,
    /// The number of axes less one.
    Rank,
    Box,
    Size,
    /// In bytes, of the axis behind.
    Stride,
    Step,
    Kind,
    Interleave,
    Swizzle,
    Fill,
}

impl Field {
    const ALL: [(&str, Field); 10] = [
        ("global_address", Field::Address),
        ("rank", Field::Rank),
        ("box_dim", Field::Box),
        ("global_dim", Field::Size),
        ("global_stride", Field::Stride),
        ("element_stride", Field::Step),
        ("elemtype", Field::Kind),
        ("interleave_layout", Field::Interleave),
        ("swizzle_mode", Field::Swizzle),
        ("fill_mode", Field::Fill),
    ];

    /// The field of a name in PTX, and its number.
    pub(crate) fn by_name(name: &str) -> Option<(Field, u32)> {
        let at = Self::ALL.iter().position(|(known, _)| *known == name)?;
        Some((Self::ALL[at].1, at as u32))
    }

    /// That of a number.
    pub(crate) fn of(number: u32) -> Field {
        Self::ALL[number as usize].1
    }

    /// Whether it is one for each axis.
    pub(crate) fn has_axis(self) -> bool {
        matches!(self, Field::Box | Field::Size | Field::Stride | Field::Step)
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
                    let map = TensorMap { tensor, tile, image: None, kind, rank, swizzle };
                    assert_eq!(TensorMap::decode(&map.encode()), Some(map));
                    let image = Image { lower: [-1, 3, -128], upper: [0, -2, 127], channels: 256, pixels: 1024 };
                    let tile = Tile { extent: [1; 5], step: tile.step };
                    let tensor = Tensor { tile: None, ..tensor };
                    let map = TensorMap { tensor, tile, image: Some(image), ..map };
                    assert_eq!(TensorMap::decode(&map.encode()), Some(map));
                }
            }
        }
        assert_eq!(TensorMap::decode(&[0; SIZE]), None);
    }

    #[test]
    fn a_map_that_is_made_field_by_field_is_that_of_the_driver() {
        let tile = Tile { extent: [64, 8, 3, 1, 256], step: [1, 2, 1, 8, 3] };
        let strides = [16, (1 << 40) - 16, 4096, 1 << 36];
        let tensor =
            Tensor { address: 0x7f12_3456_7890, element: 2, sizes: [300, 7, 1, 9, 1 << 31], strides, tile: Some(tile) };
        let map = TensorMap { tensor, tile, image: None, kind: 10, rank: 5, swizzle: 64 };
        // What was there before leaves nothing behind.
        for mut bytes in [[0; SIZE], TensorMap { swizzle: 128, kind: 3, ..map }.encode()] {
            let mut set = |field, axis, value| assert!(TensorMap::replace(&mut bytes, field, axis, value));
            set(Field::Address, 0, tensor.address);
            set(Field::Rank, 0, 4);
            for axis in 0..5 {
                set(Field::Box, axis, u64::from(tile.extent[axis]));
                set(Field::Size, axis, tensor.sizes[axis]);
                set(Field::Step, axis, u64::from(tile.step[axis]));
            }
            strides.iter().enumerate().for_each(|(axis, stride)| set(Field::Stride, axis, *stride));
            set(Field::Kind, 0, 10);
            set(Field::Swizzle, 0, 2);
            assert_eq!(TensorMap::decode(&bytes), Some(map));
            // What is not executed is no map, and what no map has is not written.
            assert!(TensorMap::replace(&mut bytes, Field::Fill, 0, 1));
            assert_eq!(TensorMap::decode(&bytes), None);
            for (field, axis, value) in [
                (Field::Address, 0, 8),
                (Field::Rank, 0, 5),
                (Field::Stride, 4, 16),
                (Field::Stride, 0, 8),
                (Field::Swizzle, 0, 4),
            ] {
                assert!(!TensorMap::replace(&mut bytes, field, axis, value));
            }
        }
    }

    #[test]
    fn a_swizzle_moves_units_within_their_row() {
        let map = |swizzle| {
            let tile = Tile { extent: [1; 5], step: [1; 5] };
            let tensor = Tensor { address: 16, element: 1, sizes: [1; 5], strides: [0; 4], tile: Some(tile) };
            TensorMap { tensor, tile, image: None, kind: 0, rank: 1, swizzle }
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
