//! Copies by tensor maps: what a map says, and which bytes copies by it touch.
//!
//! Owns the choice between what the driver was seen to make and what a map's bytes say, and what
//! holds on which devices. The step from coordinates to bytes is `kernels::Extent::of_tiles`.

use crate::launches::effects::{Effect, EffectBase, EffectExtent};
use crate::memory::tensor_maps::{Known, TensorMaps};
use device_code::tensor_map::Tensor;
use kernels::{AccessKind, Extent, Tiles};

/// A device, as far as its tensor maps go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MapLayout {
    /// The bytes of maps are understood, and which bytes stores touch was measured.
    measured: bool,
}

impl MapLayout {
    /// That of a compute capability (major * 10 + minor).
    pub(crate) fn of(arch: u32) -> Self {
        Self { measured: arch / 10 == 9 }
    }

    /// What a map says.
    pub(crate) fn read(self, map: &[u8], maps: &TensorMaps) -> Option<Known> {
        let decoded = || Tensor::decode(map).filter(|_| self.measured).map(Known::Tensor);
        maps.get(map).or_else(decoded)
    }

    /// The bytes that copies of tiles touch, relative to the tensor's address. Stores write whole
    /// units of 16 bytes on devices that were measured: where a row ends within one, any other
    /// device may do otherwise, and the tensor is a bound.
    fn extents(self, tensor: &Tensor, tiles: &Tiles, kind: AccessKind) -> Option<Vec<Extent>> {
        let row = tensor.sizes[0].checked_mul(tensor.element)?;
        let sure = self.measured || kind == AccessKind::Read || row.is_multiple_of(16);
        let tile = tensor.tile.filter(|_| sure);
        Extent::of_tiles(&Tensor { tile, ..*tensor }, tiles, kind)
    }

    /// The effects of copies by a map that says this, in the place of `effect`; `base` makes their
    /// base out of the tensor's address. `None`: their bytes are larger than any memory.
    pub(crate) fn effects(
        self,
        known: &Known,
        (effect, kind): (&Effect, AccessKind),
        tiles: &Tiles,
        base: impl Fn(u64) -> EffectBase,
    ) -> Option<Vec<Effect>> {
        let tensor = match known {
            Known::Tensor(tensor) => tensor,
            Known::Address(address) => {
                let (base, bytes) = (base(*address), EffectExtent::Unknown);
                return Some(vec![Effect { base, bytes, ..effect.clone() }]);
            }
        };
        let one = |extent: &Extent| {
            let (base, bytes) = (base(tensor.address), EffectExtent::of(extent, tensor.address));
            Effect { base, bytes, why: None, ..effect.clone() }
        };
        Some(self.extents(tensor, tiles, kind)?.iter().map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device_code::tensor_map::Tile;

    fn extents(arch: u32, width: u64, kind: AccessKind) -> Vec<Extent> {
        let at = |lo: i64| Extent::Bounded { lo, hi: lo + 1, dims: Default::default(), width: 1, exact: true };
        let tiles = Tiles { at: 0, axes: vec![at(0), at(1)], exact: true };
        let tile = Some(Tile { extent: [16, 1, 1, 1, 1], step: [1; 5] });
        let tensor = Tensor { address: 4096, element: 1, sizes: [width, 4, 1, 1, 1], strides: [64, 0, 0, 0], tile };
        MapLayout::of(arch).extents(&tensor, &tiles, kind).expect("extents")
    }

    fn exact(extents: &[Extent]) -> bool {
        extents.iter().all(|e| matches!(e, Extent::Bounded { exact: true, .. }))
    }

    #[test]
    fn ends_of_rows_are_sure_where_they_were_measured() {
        for arch in [90, 100, 120] {
            assert!(exact(&extents(arch, 64, AccessKind::Write)) && exact(&extents(arch, 60, AccessKind::Read)));
            assert_eq!(exact(&extents(arch, 60, AccessKind::Write)), arch == 90, "{arch}");
        }
    }

    #[test]
    fn bytes_are_understood_where_their_layout_is_known() {
        let mut map = [0; 64];
        // Two axes of halves at 16.
        for (at, word) in [(0, 16u32), (2, 0x310), (3, 4), (8, 7), (9, 7)] {
            map[4 * at..4 * at + 4].copy_from_slice(&word.to_le_bytes());
        }
        let maps = TensorMaps::default();
        assert!(MapLayout::of(90).read(&map, &maps).is_some());
        assert_eq!(MapLayout::of(100).read(&map, &maps), None);
    }
}
