//! Tensor maps whose making was seen, by their bytes.
//!
//! Owns what the driver made them of, and how many are kept. So a map is known wherever it lies,
//! on devices of any compute capability. A map that was not seen being made is decoded from its
//! bytes, where their layout is known (`device_code::tensor_map`). A map stands for the same as
//! long as it has the same bytes, so nothing ends it.
//!
//! Owns, too, where the maps were made that each kernel copied by, for reports.

use device_code::tensor_map::{SIZE, Tensor, Tile};
use rustc_hash::FxHashMap;
use trace::{KernelId, MapCopies, Op, StackId};

/// Bytes of a `CUtensorMap`.
pub(crate) const WHOLE: usize = 2 * SIZE;
/// How many maps are kept at least, the last ones. (The shim tells maps again that it has
/// forgotten, and forgets sooner.)
const MAX: usize = 1 << 15;
/// How many tensors are kept of one kernel, the last ones, and of how many kernels.
const MAX_PASSED: usize = 64;
const MAX_KERNELS: usize = 1 << 12;

/// Half of a map's bytes.
type Half = [u8; SIZE];

/// What a map says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    /// The tensor.
    Tensor(Tensor),
    /// The address of a tensor whose elements lie in another way (interleaved channels).
    Address(u64),
}

impl Known {
    /// What a call made a map of; `None`: of what no map is made of.
    fn of(op: &Op<'_>) -> Option<Self> {
        let Op::TensorMap { address, bits, copies, sizes, strides, extent, step, .. } = *op else { return None };
        let rank = sizes.len();
        if !(1..=5).contains(&rank) || strides.len() + 1 < rank || address == 0 {
            return None;
        }
        if copies == MapCopies::Interleaved {
            return Some(Self::Address(address));
        }
        let (mut lengths, mut apart) = ([1; 5], [0; 4]);
        lengths.iter_mut().zip(sizes.iter()).for_each(|(to, size)| *to = size);
        apart.iter_mut().zip(strides.iter()).take(rank - 1).for_each(|(to, stride)| *to = stride);
        // Numbers of less than a byte are packed, 16 at a time; of their boxes only the tensor is
        // known. Those of 6 bits may be spread.
        let (element, packed) = match bits {
            4 => (1, Some(lengths[0].div_ceil(2))),
            1..8 => (1, Some(lengths[0])),
            bits => (u64::from(bits / 8), None),
        };
        lengths[0] = packed.unwrap_or(lengths[0]);
        let is_box = copies == MapCopies::Tiles && packed.is_none() && extent.len() == rank && step.len() == rank;
        let tile = is_box.then(|| {
            let mut tile = Tile { extent: [1; 5], step: [1; 5] };
            tile.extent.iter_mut().zip(extent.iter()).for_each(|(to, n)| *to = n.max(1));
            tile.step.iter_mut().zip(step.iter()).for_each(|(to, n)| *to = n.max(1));
            tile
        });
        Some(Self::Tensor(Tensor { address, element, sizes: lengths, strides: apart, tile }))
    }
}

/// A map that was made: its second half, what it says, and where.
type Made = (Half, Known, StackId);

/// A tensor that a kernel copied by a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Passed {
    /// Byte offset of the parameter that is the map, or points to it.
    param: u32,
    /// The tensor's bytes.
    from: u64,
    to: u64,
    /// Where the map was made.
    made: StackId,
}

/// The maps of a process.
#[derive(Debug, Default)]
pub struct TensorMaps {
    young: FxHashMap<Half, Vec<Made>>,
    old: FxHashMap<Half, Vec<Made>>,
    passed: FxHashMap<KernelId, Vec<Passed>>,
}

impl TensorMaps {
    /// Takes an [`Op::TensorMap`], made at a stack.
    pub fn record(&mut self, op: &Op<'_>, stack: StackId) {
        let Op::TensorMap { map, .. } = *op else { return };
        let (Some((first, second)), Some(known)) = (halves(map), Known::of(op)) else { return };
        if self.young.len() >= MAX {
            self.old = std::mem::take(&mut self.young);
        }
        let ends = self.young.entry(*first).or_default();
        ends.retain(|(end, ..)| end != second);
        ends.push((*second, known, stack));
    }

    /// Notes that a launch of a kernel copies by the map that these bytes begin with. `param`: the
    /// parameter that is the map, or points to it.
    pub fn note_copy(&mut self, kernel: KernelId, param: u32, map: &[u8]) {
        let Some((_, known, made)) = self.made(map) else { return };
        let (from, to) = match known {
            Known::Tensor(tensor) => (tensor.address, tensor.end()),
            // (How its elements lie is not known.)
            Known::Address(address) => (address, address.saturating_add(1)),
        };
        let copied = Passed { param, from, to, made };
        if made == StackId::NONE || self.passed.len() >= MAX_KERNELS && !self.passed.contains_key(&kernel) {
            return;
        }
        let all = self.passed.entry(kernel).or_default();
        if all.last() != Some(&copied) {
            all.retain(|other| *other != copied);
            all.drain(..all.len().saturating_sub(MAX_PASSED - 1));
            all.push(copied);
        }
    }

    /// Where the maps were made by which a kernel copied some of these bytes, the last one first.
    /// `param`: the parameter that the access goes through, where it is known.
    pub fn made_for(&self, kernel: KernelId, param: Option<u32>, from: u64, to: u64) -> Vec<StackId> {
        let mut stacks = Vec::new();
        for copied in self.passed.get(&kernel).into_iter().flatten().rev() {
            let is_own = param.is_none_or(|param| param == copied.param) && copied.from < to && from < copied.to;
            if is_own && !stacks.contains(&copied.made) {
                stacks.push(copied.made);
            }
        }
        stacks
    }

    /// Whether a map begins with these bytes.
    pub(crate) fn has_beginning(&self, bytes: &[u8]) -> bool {
        let Some(first) = bytes.first_chunk::<SIZE>() else { return false };
        self.young.contains_key(first) || self.old.contains_key(first)
    }

    /// What the map says that these bytes begin with.
    pub(crate) fn get(&self, bytes: &[u8]) -> Option<Known> {
        self.made(bytes).map(|(_, known, _)| known)
    }

    fn made(&self, bytes: &[u8]) -> Option<Made> {
        let (first, second) = halves(bytes)?;
        let of = |maps: &FxHashMap<Half, Vec<Made>>| maps.get(first)?.iter().find(|made| made.0 == *second).copied();
        of(&self.young).or_else(|| of(&self.old))
    }
}

fn halves(bytes: &[u8]) -> Option<(&Half, &Half)> {
    let (first, rest) = bytes.split_first_chunk::<SIZE>()?;
    Some((first, rest.first_chunk::<SIZE>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::codec::List;

    fn op<'a>(map: &'a [u8], copies: MapCopies, bits: u32, extent: &'a [u32]) -> Op<'a> {
        at(0x1000, map, copies, bits, extent)
    }

    fn at<'a>(address: u64, map: &'a [u8], copies: MapCopies, bits: u32, extent: &'a [u32]) -> Op<'a> {
        let (sizes, strides, step) = (List::new(&[64, 3]), List::new(&[256]), List::new(&[1, 2]));
        Op::TensorMap { map, address, bits, copies, sizes, strides, extent: List::new(extent), step }
    }

    fn tensor(element: u64, size: u64, tile: Option<Tile>) -> Known {
        let (sizes, strides) = ([size, 3, 1, 1, 1], [256, 0, 0, 0]);
        Known::Tensor(Tensor { address: 0x1000, element, sizes, strides, tile })
    }

    #[test]
    fn a_map_is_what_it_was_made_of() {
        let mut maps = TensorMaps::default();
        let mut bytes = [7; WHOLE];
        let tile = Tile { extent: [32, 2, 1, 1, 1], step: [1, 2, 1, 1, 1] };
        maps.record(&op(&bytes, MapCopies::Tiles, 32, &[32, 2]), StackId::NONE);
        assert_eq!(maps.get(&bytes), Some(tensor(4, 64, Some(tile))));
        assert!(maps.has_beginning(&bytes[..SIZE]) && !maps.has_beginning(&[8; SIZE]));
        // One byte of another map, in its second half; and too few of them.
        bytes[WHOLE - 1] = 1;
        assert_eq!((maps.get(&bytes), maps.get(&[7; WHOLE - 1])), (None, None));
        // The same bytes made of something else are that from then on.
        bytes[WHOLE - 1] = 7;
        for (copies, bits, known) in [
            (MapCopies::Columns, 16, tensor(2, 64, None)),
            (MapCopies::WideColumns, 8, tensor(1, 64, None)),
            (MapCopies::Tiles, 4, tensor(1, 32, None)),
            (MapCopies::Tiles, 6, tensor(1, 64, None)),
            (MapCopies::Interleaved, 16, Known::Address(0x1000)),
        ] {
            maps.record(&op(&bytes, copies, bits, &[32, 2]), StackId::NONE);
            assert_eq!(maps.get(&bytes), Some(known));
        }
    }

    #[test]
    fn what_is_no_map_is_not_known() {
        let mut maps = TensorMaps::default();
        maps.record(&op(&[7; SIZE], MapCopies::Tiles, 32, &[32, 2]), StackId::NONE);
        let (sizes, strides, none) = (List::new(&[]), List::new(&[]), List::new(&[]));
        let (map, copies) = (&[7; WHOLE][..], MapCopies::Tiles);
        let empty = Op::TensorMap { map, address: 16, bits: 8, copies, sizes, strides, extent: none, step: none };
        maps.record(&empty, StackId::NONE);
        assert_eq!(maps.get(&[7; WHOLE]), None);
        // A box of another number of axes: the tensor alone.
        maps.record(&op(&[7; WHOLE], MapCopies::Tiles, 32, &[32]), StackId::NONE);
        assert_eq!(maps.get(&[7; WHOLE]), Some(tensor(4, 64, None)));
    }

    #[test]
    fn the_last_maps_are_kept() {
        let mut maps = TensorMaps::default();
        let map = |n: usize| std::array::from_fn::<u8, WHOLE, _>(|i| if i < 8 { n.to_le_bytes()[i] } else { 1 });
        for n in 0..=2 * MAX {
            maps.record(&op(&map(n), MapCopies::Tiles, 32, &[32, 2]), StackId::NONE);
        }
        assert_eq!(maps.get(&map(0)), None);
        assert!((MAX + 1..=2 * MAX).all(|n| maps.get(&map(n)).is_some()));
    }

    #[test]
    fn what_a_kernel_copies_by_is_known_by_where_it_was_made() {
        let mut maps = TensorMaps::default();
        let (first, second) = ([5; WHOLE], [6; WHOLE]);
        maps.record(&at(0x1000, &first, MapCopies::Tiles, 32, &[32, 2]), StackId(7));
        maps.record(&at(0x2000, &second, MapCopies::Tiles, 32, &[32, 2]), StackId(8));
        let kernel = KernelId(3);
        maps.note_copy(kernel, 0, &first);
        maps.note_copy(kernel, 128, &second);
        maps.note_copy(kernel, 256, &[9; WHOLE]);
        // Three rows of 256 bytes each.
        assert_eq!(maps.made_for(kernel, Some(0), 0x12ff, 0x1300), [StackId(7)]);
        assert_eq!(maps.made_for(kernel, Some(0), 0x1300, 0x1400), []);
        assert_eq!(maps.made_for(kernel, Some(128), 0x1000, 0x1100), [], "another parameter");
        assert_eq!(maps.made_for(kernel, None, 0x2000, 0x2001), [StackId(8)]);
        assert_eq!(maps.made_for(KernelId(4), None, 0x2000, 0x2001), [], "another kernel");
        // The same map again takes no room, and what is oldest goes.
        for n in 0..2 * MAX_PASSED as u32 {
            maps.note_copy(kernel, 512 + n, &first);
        }
        assert_eq!(maps.passed[&kernel].len(), MAX_PASSED);
        assert_eq!(maps.made_for(kernel, Some(128), 0x2000, 0x2001), []);
    }
}
