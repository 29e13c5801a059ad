//! Coordinates of tiles as threads give them, and as few products of progressions.
//!
//! Owns both. Where the tiles lie in memory is in the map, which the launch has.

use super::runs::Runs;
use crate::Extent;
use crate::effects::Tiles;
use crate::ranges::domain::int::Int;
use std::collections::{BTreeMap, BTreeSet};

/// Tiles of one access.
const MAX_TILES: usize = 1 << 16;
/// Products that tiles are told in.
const MAX_PRODUCTS: usize = 64;

/// The coordinates of a tile, zero beyond the rank.
type Tile = [i32; 5];

/// Tiles that are copied whatever the data are, and tiles that may be.
#[derive(Clone, Debug, Default)]
pub(super) struct TileSet {
    surely: BTreeSet<Tile>,
    perhaps: BTreeSet<Tile>,
}

/// The values along each axis, of tiles at all combinations of them.
type Product = Vec<Vec<i32>>;

impl TileSet {
    /// Adds a tile; `None`: there are too many.
    pub(crate) fn put(&mut self, tile: Tile, perhaps: bool) -> Option<()> {
        let tiles = if perhaps { &mut self.perhaps } else { &mut self.surely };
        tiles.insert(tile);
        (tiles.len() <= MAX_TILES).then_some(())
    }

    /// Adds those of another one.
    pub(crate) fn append(&mut self, other: &TileSet) -> Option<()> {
        self.surely.extend(&other.surely);
        self.perhaps.extend(&other.perhaps);
        (self.surely.len().max(self.perhaps.len()) <= MAX_TILES).then_some(())
    }

    /// The same tiles as products; `None`: they are too many.
    pub(crate) fn products(self) -> Option<Vec<Tiles>> {
        let perhaps: BTreeSet<Tile> = self.perhaps.difference(&self.surely).copied().collect();
        let mut all = Vec::new();
        for (tiles, exact) in [(self.surely, true), (perhaps, false)] {
            for product in products(&tiles.into_iter().collect::<Vec<_>>(), 5)? {
                all.extend(told(&product, exact)?);
            }
        }
        (all.len() <= MAX_PRODUCTS).then_some(all)
    }
}

/// Products whose union is these tiles: values along the last axis that have the same tiles along
/// the others belong together.
fn products(tiles: &[Tile], axes: usize) -> Option<Vec<Product>> {
    if tiles.is_empty() {
        return Some(Vec::new());
    }
    let Some(axis) = axes.checked_sub(1) else { return Some(vec![Vec::new()]) };
    let mut layers: BTreeMap<i32, Vec<Tile>> = BTreeMap::new();
    for tile in tiles {
        let mut rest = *tile;
        rest[axis] = 0;
        layers.entry(tile[axis]).or_default().push(rest);
    }
    let mut alike: BTreeMap<Vec<Tile>, Vec<i32>> = BTreeMap::new();
    for (at, mut rest) in layers {
        rest.sort_unstable();
        alike.entry(rest).or_default().push(at);
    }
    let mut all = Vec::new();
    for (rest, at) in alike {
        all.extend(products(&rest, axis)?.into_iter().map(|product| [product, vec![at.clone()]].concat()));
        if all.len() > MAX_PRODUCTS {
            return None;
        }
    }
    Some(all)
}

/// A product in progressions: several, where values along an axis are none.
fn told(product: &Product, exact: bool) -> Option<Vec<Tiles>> {
    let mut all: Vec<Vec<Extent>> = vec![Vec::new()];
    for values in product {
        let mut runs = Runs::default();
        values.iter().for_each(|at| runs.put(i64::from(*at), 1));
        let sets = runs.joined().byte_sets(true, MAX_PRODUCTS)?;
        let sets: Vec<Extent> = sets.iter().map(|set| unit_wide(&set.finished(Int::now))).collect::<Option<_>>()?;
        all = all
            .iter()
            .flat_map(|axes| sets.iter().map(|set| [&axes[..], std::slice::from_ref(set)].concat()))
            .collect();
        if all.len() > MAX_PRODUCTS {
            return None;
        }
    }
    Some(all.into_iter().map(|axes| Tiles { at: 0, axes, exact }).collect())
}

/// A set of numbers with the run of each element as a progression of its own.
fn unit_wide(set: &Extent) -> Option<Extent> {
    let Extent::Bounded { lo, hi, dims, width, exact } = set else { return None };
    let mut dims = dims.clone();
    if *width > 1 {
        dims.insert(0, crate::Dim { stride: 1, count: u64::from(*width) });
    }
    Some(Extent::Bounded { lo: *lo, hi: *hi, dims, width: 1, exact: *exact })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles_of(all: &[Tiles]) -> BTreeSet<Tile> {
        let values = |e: &Extent| {
            let Extent::Bounded { lo, dims, width: 1, .. } = e else { panic!("{e:?}") };
            let mut all = vec![*lo as i32];
            for d in dims {
                all = all.iter().flat_map(|at| (0..d.count).map(move |k| at + (k * d.stride) as i32)).collect();
            }
            all
        };
        let mut found = BTreeSet::new();
        for tiles in all {
            let mut some: Vec<Vec<i32>> = vec![Vec::new()];
            for axis in &tiles.axes {
                some = some.iter().flat_map(|t| values(axis).into_iter().map(|v| [&t[..], &[v]].concat())).collect();
            }
            for tile in some {
                assert!(found.insert(tile.try_into().expect("five axes")), "a tile is told twice");
            }
        }
        found
    }

    #[test]
    fn products_are_the_tiles() {
        // A full grid; half of one, row by row; a triangle; single tiles.
        let grid: Vec<Tile> = (0..6).flat_map(|y| (0..5).map(move |x| [64 * x, 128 * y, 0, 7, -3])).collect();
        let triangle = (0..8).flat_map(|y| (0..=y).map(move |x| [64 * x, 64 * y, 0, 0, 0]));
        let cases: [(Vec<Tile>, usize); 4] = [
            (grid.clone(), 1),
            (grid[..17].to_vec(), 2),
            (triangle.collect(), 8),
            (vec![[1, 2, 3, 4, 5], [-9, 0, 0, 1 << 30, 0]], 2),
        ];
        for (tiles, most) in cases {
            let mut set = TileSet::default();
            tiles.iter().for_each(|t| set.put(*t, false).expect("room"));
            let all = set.products().expect("products");
            assert_eq!(tiles_of(&all), tiles.iter().copied().collect());
            assert!(all.len() <= most && all.iter().all(|t| t.exact), "{all:?}");
        }
    }

    #[test]
    fn tiles_that_may_be_copied_are_told_apart() {
        let mut set = TileSet::default();
        for (at, perhaps) in [(0, false), (8, false), (8, true), (16, true)] {
            set.put([at, 0, 0, 0, 0], perhaps).expect("room");
        }
        let all = set.products().expect("products");
        assert_eq!(all.iter().map(|t| t.exact).collect::<Vec<_>>(), [true, false]);
        assert_eq!(tiles_of(&all).len(), 3);
        // Too many to tell: squares in no order.
        let mut set = TileSet::default();
        (0..200).for_each(|k| set.put([k * k, k, k * k % 7, 0, 0], false).expect("room"));
        assert!(set.products().is_none());
    }
}
