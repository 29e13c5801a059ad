//! Which bytes a tensor map lets a kernel reach: the 64 bytes of a `CUtensorMap` that the hardware
//! reads.
//!
//! Owns the layout of these bytes. The layout is documented nowhere. It was read off 2,015 maps
//! that `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` made of random arguments on an H100,
//! and 3,580 of these two and `cuTensorMapEncodeIm2colWide` on an H200 (driver 580), and explains
//! all of them; maps that cuBLAS makes itself fit too. It holds for compute capability 9.x only. A
//! map with bits set that none of them had, and a map with interleaved channels, is not decoded.
//!
//! Loads by tensor map never leave the tensor. The part of a box that lies outside is filled with
//! zeros when loaded, and dropped when stored, but for the rest of a unit of 16 bytes. So address,
//! sizes and strides bound what a kernel can touch, whatever it asks for, and a tile at its
//! coordinates is the part of the box inside. The crate `kernels` makes extents of them. The
//! swizzle moves bytes in shared memory only.

/// Bytes of a map that the hardware reads. (The driver's type is twice as large; cuBLAS lays its
/// maps out without the second half.)
pub const SIZE: usize = 64;

/// Bytes of an element by the type's code in the map.
const ELEMENT: [u64; 11] = [1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2];

/// Bits of the third word that were set in some map: bit 1 is set by cuBLAS only.
const KNOWN: u32 = 0x0007_fff3;

/// The bit of the third word that all maps of images had, and no map of tiles.
const IMAGE: u32 = 1;

/// A tensor in global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its first byte.
    pub address: u64,
    /// Bytes of an element.
    pub element: u64,
    /// Elements along each axis, the innermost (which is dense) first; 1 beyond the rank.
    pub sizes: [u64; 5],
    /// Bytes from one element to the next along the axes after the first.
    pub strides: [u64; 4],
    /// What a copy of a tile takes; `None` for a map of images (`Im2col`).
    pub tile: Option<Tile>,
}

/// The box of a map for copies of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Its extent along each axis, in elements of the tensor; 1 beyond the rank.
    pub extent: [u32; 5],
    /// Which elements of it are copied: every so many along each axis. (Along the first one all
    /// are: cuda.h, `elementStrides`.)
    pub step: [u32; 5],
}

impl Tensor {
    /// One past its last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        let steps = self.sizes[1..]
            .iter()
            .zip(self.strides)
            .map(|(size, stride)| size.saturating_sub(1).saturating_mul(stride));
        self.address.saturating_add(steps.fold(self.sizes[0].saturating_mul(self.element), u64::saturating_add))
    }

    /// Decodes the first [`SIZE`] bytes of a map of a device of compute capability 9.x; `None` when
    /// they are no map that is understood.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Tensor> {
        let word = |k: usize| Some(u32::from_le_bytes(bytes.get(4 * k..4 * k + 4)?.try_into().ok()?));
        bytes.get(..SIZE)?;
        let flags = word(2)?;
        let (rank, interleave) = ((flags >> 4 & 7) as usize + 1, flags >> 11 & 3);
        let element = *ELEMENT.get((flags >> 7 & 15) as usize)?;
        if flags & !KNOWN != 0 || rank > 5 || interleave != 0 {
            return None;
        }
        let address = u64::from(word(0)?) | u64::from(word(1)?) << 32;
        let high = word(7)?;
        let (mut sizes, mut strides) = ([1; 5], [0; 4]);
        for k in 0..rank {
            sizes[k] = u64::from(word(8 + k)?) + 1;
            if k > 0 {
                let top = u64::from(high >> (4 * (k - 1)) & 15);
                strides[k - 1] = (u64::from(word(2 + k)?) | top << 32) << 4;
            }
        }
        let (steps, extents) = (word(13)?, &bytes[55..60]);
        let tile = Tile {
            extent: std::array::from_fn(|k| u32::from(extents[k]) + 1),
            step: std::array::from_fn(|k| if k == 0 { 1 } else { (steps >> (3 * k) & 7) + 1 }),
        };
        // The box of an image has other fields in these bytes.
        let tile = (flags & IMAGE == 0).then_some(tile);
        (address != 0 && address.is_multiple_of(16)).then_some(Tensor { address, element, sizes, strides, tile })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(words: &[u32]) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.resize(SIZE, 0);
        bytes
    }

    /// What the driver made, and of what: bytes of an element, address, sizes, strides.
    type Made = (&'static str, u64, u64, &'static [u64], &'static [u64]);

    #[rustfmt::skip]
    const MADE: &[Made] = &[
        ("e00ae6950c00000040000400be000000a60900005b20f43077f8c60000010000000000000c0000003b000000b543030001000000000e000f070f070300000000", 1, 0xc95e60ae0, &[1, 13, 60, 213942, 2], &[3040, 39520, 81860363696, 208635760]),
        ("20af2e0000000000c0e304000100000024ae00004461f2a7571e00000004000024df0400000000000d0600001c000000e34b5000c07500071f00001f00000000", 4, 0x2eaf20, &[319269, 1, 1550, 29, 5262308], &[16, 713280, 319960781888, 124272]),
        ("00bdfb9051000000c0620200e0060000406000000e0000005603000000000000be0d00000d000000e78d98013c00000002000000100000010f010f0000000000", 8, 0x5190fbbd00, &[3519, 14, 26775016, 61, 3], &[28160, 394240, 224, 13664]),
        ("400100000000000080a3070000000000000000000000000000000000000000000000000000000000000000000000000000000000000000030000000000000000", 4, 0x140, &[1], &[]),
        ("602888210000000090c40200808efc00000000000000000000000000000000002800000016000000000000000000000000000000000000010100000000000000", 8, 0x21882860, &[41, 23], &[264824832]),
        ("0009745310000000c06100000b00000073cd45a1080000000417e318000000001e0000003841a90e0f010000040100000b000000000000033f000f0000000000", 4, 0x1053740900, &[31, 245973305, 272, 261, 12], &[176, 43291301680, 128, 6680571968]),
        ("e00000000000000020e40500030000007e0000000000000000000000000000004a0a000007000000370000000000000000000000780000033f01000000000000", 4, 0xe0, &[2635, 8, 56], &[48, 2016]),
        ("00e59e7e16000000c1a4040001000000cdd20b0068965e00c927000000000000010000000a00000007000000040000000300000000000001e40383783f000000", 8, 0x167e9ee500, &[2, 11, 8, 5, 4], &[16, 12397776, 99182208, 162960]),
        ("a0dbbd0b000000004084060061000000050e0000050e00000a1c000000000000800100002400000000000000010000002de76d0db80400030300073f00000000", 4, 0xbbddba0, &[385, 37, 1, 2, 225306414], &[1552, 57424, 57424, 114848]),
        ("c06a03000000000020230000010000008b01000000000000000000000000000000000000110000000e0000000000000000000000780000073f07000000000000", 2, 0x36ac0, &[1, 18, 15], &[16, 6320]),
        ("4091bf331c000000202200001c000000506f2d17000000000000000000000000360000008be8d300210000000000000000000000b80000010f03000000000000", 8, 0x1c33bf9140, &[55, 13887628, 34], &[448, 6221657344]),
        ("c09ecdf802000000104102000b000000000000000000000000000000000000002b00000022000000000000000000000000000000000000070100000000000000", 4, 0x2f8cd9ec0, &[44, 35], &[176]),
        ("80d1d737010000003161040001000000060000001e8b95ad000000000000000010030000010000000b0d0000000000000000000010020003030403fe07000000", 4, 0x137d7d180, &[785, 2, 3340, 1], &[16, 96, 46596141536]),
        ("20610000000000002025040015756f0d15756f0d000000000000000000000000a7a87b6b00000000880300000000000000000000000000070100000000000000", 2, 0x6120, &[1803266216, 1, 905], &[3606532432, 3606532432]),
    ];
    const INTERLEAVED: &str = "206e190000000000b06b060001000000f731f90c60800100000000000000000000000000f631f90c620524003e24300000000000000000031f001f0000000000";

    /// Of some of them, in their order: the box and the steps.
    const TILES: &str = include_str!("../tests/tensor_maps.txt");

    fn bytes_of(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hex")).collect()
    }

    #[test]
    fn maps_of_the_driver() {
        for (hex, element, address, sizes, strides) in MADE {
            let t = Tensor::decode(&bytes_of(hex)).expect("a map");
            assert_eq!((t.element, t.address), (*element, *address));
            let rank = sizes.len();
            assert_eq!((&t.sizes[..rank], &t.strides[..rank - 1]), (*sizes, *strides));
            assert!(t.sizes[rank..].iter().all(|s| *s == 1));
        }
        assert_eq!(Tensor::decode(&bytes_of(INTERLEAVED)), None);
    }

    /// Type, rank, address, sizes, strides, steps, box (of an image its channels, pixels and
    /// corners), the map.
    #[test]
    fn boxes_of_the_driver() {
        let mut seen = [0; 2];
        for line in TILES.lines().filter(|l| !l.starts_with('#')) {
            let (made, hex) = line.split_once(" | ").expect("a map");
            let numbers: Vec<u64> = made.split(' ').map(|n| n.parse().expect("a number")).collect();
            let [image, element, rank, address, ref rest @ ..] = numbers[..] else { panic!("{line}") };
            let rank = rank as usize;
            let t = Tensor::decode(&bytes_of(hex)).expect("a map");
            assert_eq!((t.element, t.address), (element, address), "{line}");
            assert_eq!((&t.sizes[..rank], &t.strides[..rank - 1]), (&rest[..rank], &rest[rank..2 * rank - 1]));
            seen[usize::from(t.tile.is_some())] += 1;
            let Some(tile) = t.tile else {
                assert_eq!(image, 1, "{line}");
                continue;
            };
            assert_eq!(image, 0, "{line}");
            let (steps, extents) = rest[2 * rank - 1..].split_at(rank);
            assert!(tile.extent[..rank].iter().zip(extents).all(|(a, b)| u64::from(*a) == *b), "{line}");
            assert!(tile.step[1..rank].iter().zip(&steps[1..]).all(|(a, b)| u64::from(*a) == *b), "{line}");
            assert!(tile.step[0] == 1 && tile.step[rank..].iter().chain(&tile.extent[rank..]).all(|n| *n == 1));
        }
        assert!(seen.iter().all(|n| *n > 20), "{seen:?}");
    }

    #[test]
    fn a_map_of_cublas() {
        // C of a product of 64 by 64 halves; the middle words of the first half are not the
        // driver's.
        let words = [0x3920_0000, 0x7f3d, 0x0004_6322, 8, 0, 0x1000_0000, 0, 0, 63, 63, 0, 0, 0, 0x1f00_0000, 7, 0];
        let t = Tensor::decode(&map(&words)).expect("a map");
        assert_eq!(
            (t.address, t.element, t.sizes, t.strides),
            (0x7f3d_3920_0000, 2, [64, 64, 1, 1, 1], [128, 0, 0, 0])
        );
    }

    #[test]
    fn what_is_no_map() {
        assert_eq!(Tensor::decode(&[0; 64]), None);
        assert_eq!(Tensor::decode(&[0xff; 64]), None);
        assert_eq!(Tensor::decode(&map(&[16, 0, 0x310, 4, 0, 0, 0, 0, 7, 7])[..63]), None);
        let good = Tensor::decode(&map(&[16, 0, 0x310, 4, 0, 0, 0, 0, 7, 7])).expect("two axes of halves");
        assert_eq!((good.sizes, good.strides[0]), ([8, 8, 1, 1, 1], 64));
        // A type that does not exist, six axes, an odd address, a bit that no map had.
        for (at, word) in [(2, 0x590), (2, 0x350), (0, 8), (2, 0x8_0310)] {
            let mut words = [16, 0, 0x310, 4, 0, 0, 0, 0, 7, 7];
            words[at] = word;
            assert_eq!(Tensor::decode(&map(&words)), None, "word {at} {word:#x}");
        }
    }
}
