//! Tensor maps whose making was seen, by their bytes.
//!
//! Owns what the driver made them of, and how many are kept. So a map is known wherever it lies,
//! on devices of any compute capability. A map that was not seen being made is decoded from its
//! bytes, where their layout is known (`device_code::tensor_map`). A map stands for the same as
//! long as it has the same bytes, so nothing ends it.

use device_code::tensor_map::{SIZE, Tensor, Tile};
use rustc_hash::FxHashMap;
use trace::{MapCopies, Op};

/// Bytes of a `CUtensorMap`.
pub(crate) const WHOLE: usize = 2 * SIZE;
/// How many maps are kept at least, the last ones. (The shim tells maps again that it has
/// forgotten, and forgets sooner.)
const MAX: usize = 1 << 15;

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

/// The maps of a process.
#[derive(Debug, Default)]
pub struct TensorMaps {
    young: FxHashMap<Half, Vec<(Half, Known)>>,
    old: FxHashMap<Half, Vec<(Half, Known)>>,
}

impl TensorMaps {
    /// Takes an [`Op::TensorMap`].
    pub fn record(&mut self, op: &Op<'_>) {
        let Op::TensorMap { map, .. } = *op else { return };
        let (Some((first, second)), Some(known)) = (halves(map), Known::of(op)) else { return };
        if self.young.len() >= MAX {
            self.old = std::mem::take(&mut self.young);
        }
        let ends = self.young.entry(*first).or_default();
        ends.retain(|(end, _)| end != second);
        ends.push((*second, known));
    }

    /// Whether a map begins with these bytes.
    pub(crate) fn has_beginning(&self, bytes: &[u8]) -> bool {
        let Some(first) = bytes.first_chunk::<SIZE>() else { return false };
        self.young.contains_key(first) || self.old.contains_key(first)
    }

    /// What the map says that these bytes begin with.
    pub(crate) fn get(&self, bytes: &[u8]) -> Option<Known> {
        let (first, second) = halves(bytes)?;
        let of = |maps: &FxHashMap<Half, Vec<(Half, Known)>>| {
            let ends = maps.get(first)?;
            ends.iter().find(|(end, _)| end == second).map(|(_, known)| *known)
        };
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
        let (sizes, strides, step) = (List::new(&[64, 3]), List::new(&[256]), List::new(&[1, 2]));
        Op::TensorMap { map, address: 0x1000, bits, copies, sizes, strides, extent: List::new(extent), step }
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
        maps.record(&op(&bytes, MapCopies::Tiles, 32, &[32, 2]));
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
            maps.record(&op(&bytes, copies, bits, &[32, 2]));
            assert_eq!(maps.get(&bytes), Some(known));
        }
    }

    #[test]
    fn what_is_no_map_is_not_known() {
        let mut maps = TensorMaps::default();
        maps.record(&op(&[7; SIZE], MapCopies::Tiles, 32, &[32, 2]));
        let (sizes, strides, none) = (List::new(&[]), List::new(&[]), List::new(&[]));
        let (map, copies) = (&[7; WHOLE][..], MapCopies::Tiles);
        let empty = Op::TensorMap { map, address: 16, bits: 8, copies, sizes, strides, extent: none, step: none };
        maps.record(&empty);
        assert_eq!(maps.get(&[7; WHOLE]), None);
        // A box of another number of axes: the tensor alone.
        maps.record(&op(&[7; WHOLE], MapCopies::Tiles, 32, &[32]));
        assert_eq!(maps.get(&[7; WHOLE]), Some(tensor(4, 64, None)));
    }

    #[test]
    fn the_last_maps_are_kept() {
        let mut maps = TensorMaps::default();
        let map = |n: usize| std::array::from_fn::<u8, WHOLE, _>(|i| if i < 8 { n.to_le_bytes()[i] } else { 1 });
        for n in 0..=2 * MAX {
            maps.record(&op(&map(n), MapCopies::Tiles, 32, &[32, 2]));
        }
        assert_eq!(maps.get(&map(0)), None);
        assert!((MAX + 1..=2 * MAX).all(|n| maps.get(&map(n)).is_some()));
    }
}
