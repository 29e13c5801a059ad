//! The bytes of a tensor that copies by tensor map reach. The layout of maps is in
//! `device_code::tensor_map`.
//!
//! Owns the step from coordinates to bytes: the box at each of them, clipped at the ends of the
//! tensor (PTX ISA, "Tensors": what lies outside is not accessed). An H200 stores whole units of 16
//! bytes: where the last one of a row is cut by the tensor's end, all of it is written (measured:
//! `tests/truth/tiles.h200.txt`).

use crate::effects::{AccessKind, Dim, Extent, Tiles};
use device_code::tensor_map::Tensor;
use smallvec::SmallVec;

/// Extents that the tiles of one access may have. More are bounded by the tensor.
const MAX_EXTENTS: usize = 256;
/// Bytes that are stored together.
const UNIT: u64 = 16;
/// Places of a box along one axis that are looked at one by one.
const MAX_PLACES: i64 = 4096;

/// Elements along one axis: runs of `inner` elements (first, step and count), `outer` times.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Piece {
    first: i64,
    inner: (i64, i64),
    outer: (i64, i64),
}

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

    /// The bytes that copies of tiles touch, relative to the tensor's address. Where coordinates
    /// are not known: those of the tensor. `None` when that is larger than any memory.
    #[must_use]
    pub fn of_tiles(tensor: &Tensor, tiles: &Tiles, kind: AccessKind) -> Option<Vec<Extent>> {
        let mut tensor = *tensor;
        if kind != AccessKind::Read {
            let width = tensor.sizes[0].checked_mul(tensor.element)?;
            tensor.sizes[0] = width.checked_next_multiple_of(UNIT)? / tensor.element;
        }
        let whole = Extent::of_tensor(&tensor)?;
        Some(bytes_of_tiles(&tensor, tiles).unwrap_or_else(|| vec![whole]))
    }
}

fn bytes_of_tiles(tensor: &Tensor, tiles: &Tiles) -> Option<Vec<Extent>> {
    let tile = tensor.tile?;
    if tiles.axes.is_empty() {
        return None;
    }
    let mut exact = tiles.exact;
    let mut products: Vec<Vec<Piece>> = vec![Vec::new()];
    for axis in 0..5 {
        let size = i64::try_from(tensor.sizes[axis]).ok()?;
        let pieces = match tiles.axes.get(axis) {
            // A map of fewer axes than the copy names, or of more, is no map of this copy.
            None if size > 1 => return None,
            None => continue,
            Some(set) => {
                let every = i64::from(tile.step[axis]);
                let (pieces, all) = elements(set, i64::from(tile.extent[axis].div_ceil(tile.step[axis])), every, size);
                exact &= all;
                pieces
            }
        };
        let with = |p: &Vec<Piece>| pieces.iter().map(|piece| [&p[..], &[*piece]].concat()).collect::<Vec<_>>();
        products = products.iter().flat_map(with).collect();
        if products.len() > MAX_EXTENTS {
            return None;
        }
    }
    products.iter().map(|pieces| bytes(tensor, pieces, exact)).collect()
}

/// The elements along one axis that boxes at these coordinates hold (`count` of them, every
/// `every`-th), inside the tensor, and whether they are exactly these.
fn elements(at: &Extent, count: i64, every: i64, size: i64) -> (Vec<Piece>, bool) {
    let whole = (vec![Piece { first: 0, inner: (1, size), outer: (1, 1) }], false);
    let Extent::Bounded { lo, hi, dims, exact, .. } = at else { return whole };
    if lo >= hi {
        // Never copied.
        return (Vec::new(), true);
    }
    let mut steps: Vec<(i64, i64)> = vec![(every, count)];
    for d in dims {
        let (Ok(stride), Ok(count)) = (i64::try_from(d.stride), i64::try_from(d.count)) else { return whole };
        steps.push((stride, count));
    }
    let steps = merged(steps);
    let (steps, exact) = match steps[..] {
        [] => ([(1, 1), (1, 1)], *exact),
        [one] => ([one, (1, 1)], *exact),
        [inner, outer] => ([inner, outer], *exact),
        // From the first to the last.
        _ => {
            let Some(last) = hi.checked_add((count - 1) * every) else { return whole };
            ([(1, last - lo), (1, 1)], false)
        }
    };
    let [inner, outer] = steps;
    let (pieces, all) = clipped(*lo, inner, outer, size);
    (pieces, exact && all)
}

/// Sums of progressions as few of them: those that join without gaps are one.
fn merged(mut steps: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    steps.retain(|s| s.1 > 1);
    steps.sort_unstable();
    let mut out: Vec<(i64, i64)> = Vec::new();
    for (step, count) in steps {
        match out.last_mut() {
            Some((below, n)) if *below > 0 && step % *below == 0 && step / *below <= *n => {
                *n += (count - 1) * (step / *below);
            }
            _ => out.push((step, count)),
        }
    }
    out
}

/// What of progressions lies in `0..size`.
fn clipped(first: i64, inner: (i64, i64), outer: (i64, i64), size: i64) -> (Vec<Piece>, bool) {
    // Of one progression from `first`: what it begins with, and how many.
    let inside = |first: i64, (step, count): (i64, i64)| {
        let skip = if first < 0 { (-first + step - 1) / step } else { 0 };
        let end = if first < size { (size - first + step - 1) / step } else { 0 };
        let n = end.min(count) - skip;
        (first + skip * step, n.max(0))
    };
    let (step, count) = inner;
    if outer.1 == 1 {
        let (first, n) = inside(first, inner);
        let piece = Piece { first, inner: (step, n), outer: (1, 1) };
        return (if n > 0 { vec![piece] } else { Vec::new() }, true);
    }
    if count == 1 {
        return clipped(first, outer, (1, 1), size);
    }
    if outer.1 > MAX_PLACES {
        // All of the elements between, unless none is outside.
        let last = first + (count - 1) * step + (outer.1 - 1) * outer.0;
        if first >= 0 && last < size {
            return (vec![Piece { first, inner, outer }], true);
        }
        let (pieces, _) = clipped(first, (1, last - first + 1), (1, 1), size);
        return (pieces, false);
    }
    let mut pieces: Vec<Piece> = Vec::new();
    for k in 0..outer.1 {
        let (first, n) = inside(first + k * outer.0, inner);
        if n == 0 {
            continue;
        }
        match pieces.last_mut() {
            Some(p) if p.inner.1 == n && p.first + p.outer.1 * outer.0 == first => p.outer = (outer.0, p.outer.1 + 1),
            _ => pieces.push(Piece { first, inner: (step, n), outer: (outer.0, 1) }),
        }
    }
    (pieces, true)
}

/// The bytes of a product of elements along the axes.
fn bytes(tensor: &Tensor, pieces: &[Piece], exact: bool) -> Option<Extent> {
    let element = i64::try_from(tensor.element).ok()?;
    // The element itself is a progression, of bytes.
    let (mut lo, mut steps) = (0i64, vec![(1, element)]);
    for (axis, piece) in pieces.iter().enumerate() {
        let stride = if axis == 0 { element } else { i64::try_from(tensor.strides[axis - 1]).ok()? };
        lo = lo.checked_add(piece.first.checked_mul(stride)?)?;
        for (step, count) in [piece.inner, piece.outer] {
            // Rows on top of each other are one.
            if stride > 0 {
                steps.push((step.checked_mul(stride)?, count));
            }
        }
    }
    let mut steps = merged(steps);
    let width = match steps.first() {
        Some(&(1, count)) if u32::try_from(count).is_ok() => {
            steps.remove(0);
            count
        }
        _ => 1,
    };
    let hi = steps.iter().try_fold(lo.checked_add(width)?, |hi, s| hi.checked_add(s.0.checked_mul(s.1 - 1)?))?;
    if hi >= 1 << 47 {
        return None;
    }
    let whole = |steps: &[(i64, i64)], width: i64, exact| {
        let dims = steps.iter().map(|s| Dim { stride: s.0.cast_unsigned(), count: s.1.cast_unsigned() }).collect();
        Some(Extent::Bounded { lo, hi, dims, width: u32::try_from(width).ok()?, exact })
    };
    match steps.len() {
        0..=4 => whole(&steps, width, exact),
        _ => whole(&[(1, hi - lo)], 1, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device_code::tensor_map::Tile;
    use std::collections::BTreeSet;

    fn tensor(element: u64, sizes: [u64; 5], strides: [u64; 4]) -> Tensor {
        Tensor { address: 0x1000, element, sizes, strides, tile: None }
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

    /// Numbers below others, the same in each run.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % n
        }
    }

    fn values(e: &Extent) -> Vec<i64> {
        let Extent::Bounded { lo, dims, width, .. } = e else { panic!("{e:?}") };
        let mut all = vec![*lo];
        for d in dims {
            all = all.iter().flat_map(|at| (0..d.count).map(move |k| at + (k * d.stride) as i64)).collect();
        }
        all.iter().flat_map(|at| *at..*at + i64::from(*width)).collect()
    }

    /// Random tensors, boxes and coordinates, against each element of each box.
    #[test]
    fn tiles_are_boxes_clipped_at_the_tensor() {
        let mut r = Random(1);
        let (mut same, mut bounds) = (0, 0);
        for n in 0..6000 {
            let rank = 1 + n % 5;
            let element = 1 << r.below(4);
            let (mut sizes, mut strides) = ([1; 5], [0; 4]);
            let mut tile = Tile { extent: [1; 5], step: [1; 5] };
            let mut axes = Vec::new();
            for k in 0..rank {
                sizes[k] = 1 + r.below([20, 8, 5, 3, 3][k]);
                tile.extent[k] = 1 + r.below([9, 4, 3, 2, 2][k]) as u32;
                tile.step[k] = if k == 0 || r.below(2) == 0 { 1 } else { 1 + r.below(3) as u32 };
                if k > 0 {
                    let below = if k == 1 { sizes[0] * element } else { sizes[k - 1] * strides[k - 2] };
                    // Some rows overlap, and some are one and the same.
                    strides[k - 1] =
                        if r.below(9) == 0 { 16 * r.below(2) } else { below.div_ceil(16) * 16 + 16 * r.below(2) };
                }
                let extent = u64::from(tile.extent[k]);
                let steps = [(extent, 1 + r.below(4)), (1 + r.below(2 * extent), 1 + r.below(3)), (1, 1)];
                let some = &steps[r.below(3) as usize..][..1];
                let some = if r.below(6) == 0 { &steps[..2] } else { some };
                let lo = r.below(2 * sizes[k]) as i64 - sizes[k] as i64 * i64::from(r.below(2) == 0);
                let dims: SmallVec<[Dim; 3]> = some.iter().map(|s| Dim { stride: s.0, count: s.1 }).collect();
                let hi = lo + 1 + some.iter().map(|s| (s.0 * (s.1 - 1)) as i64).sum::<i64>();
                axes.push(Extent::Bounded { lo, hi, dims, width: 1, exact: true });
            }
            let t = Tensor { tile: Some(tile), ..tensor(element, sizes, strides) };
            let mut touched: BTreeSet<i64> = BTreeSet::from([0]);
            for (k, axis) in axes.iter().enumerate() {
                let stride = if k == 0 { element } else { strides[k - 1] } as i64;
                let box_of =
                    |at: i64| (0..i64::from(tile.extent[k])).step_by(tile.step[k] as usize).map(move |e| at + e);
                let inside: BTreeSet<i64> =
                    values(axis).into_iter().flat_map(box_of).filter(|at| (0..sizes[k] as i64).contains(at)).collect();
                touched = touched.iter().flat_map(|b| inside.iter().map(move |at| b + at * stride)).collect();
            }
            let touched: BTreeSet<i64> = touched.iter().flat_map(|at| *at..*at + element as i64).collect();
            let found = Extent::of_tiles(&t, &Tiles { at: 0, axes: axes.clone(), exact: true }, AccessKind::Read);
            let found = found.expect("extents");
            let named: BTreeSet<i64> = found.iter().flat_map(values).collect();
            let exact = found.iter().all(|e| matches!(e, Extent::Bounded { exact: true, .. }));
            assert!(named.is_superset(&touched), "{t:?} {axes:?}: {found:?}");
            assert!(!exact || named == touched, "{t:?} {axes:?}: {found:?}");
            for e in &found {
                let Extent::Bounded { lo, hi, .. } = e else { panic!("{e:?}") };
                let of = values(e);
                assert_eq!((of.iter().min(), of.iter().max().map(|m| m + 1)), (Some(lo), Some(*hi)));
            }
            if exact { same += 1 } else { bounds += 1 }
        }
        assert!(same > 10 * bounds && bounds > 0, "{same} {bounds}");
    }

    #[test]
    fn stores_end_with_a_whole_unit() {
        let tile = Some(Tile { extent: [24, 1, 1, 1, 1], step: [1; 5] });
        let t = Tensor { tile, ..tensor(2, [131, 2, 1, 1, 1], [288, 0, 0, 0]) };
        let dims = SmallVec::from_slice(&[Dim { stride: 24, count: 6 }]);
        let along = Extent::Bounded { lo: 0, hi: 121, dims, width: 1, exact: true };
        let row = Extent::Bounded { lo: 1, hi: 2, dims: SmallVec::new(), width: 1, exact: true };
        for (kind, end) in [(AccessKind::Read, 262), (AccessKind::Write, 272), (AccessKind::Atomic, 272)] {
            let tiles = Tiles { at: 0, axes: vec![along.clone(), row.clone()], exact: true };
            let found = Extent::of_tiles(&t, &tiles, kind).expect("extents");
            assert_eq!(found.iter().flat_map(values).collect::<Vec<_>>(), (288..288 + end).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_not_known_is_bounded_by_the_tensor() {
        let tile = Some(Tile { extent: [8, 2, 1, 1, 1], step: [1; 5] });
        let t = Tensor { tile, ..tensor(2, [64, 64, 1, 1, 1], [128, 0, 0, 0]) };
        let whole = vec![Extent::of_tensor(&t).expect("a bound")];
        let zero = || Extent::Bounded { lo: 0, hi: 1, dims: SmallVec::new(), width: 1, exact: true };
        let of = |t: &Tensor, axes| Extent::of_tiles(t, &Tiles { at: 0, axes, exact: true }, AccessKind::Write);
        assert_eq!(of(&t, Vec::new()).as_ref(), Some(&whole));
        // An image, and a copy that names another number of axes.
        assert_eq!(of(&Tensor { tile: None, ..t }, vec![zero(), zero()]).as_ref(), Some(&whole));
        assert_eq!(of(&t, vec![zero()]).as_ref(), Some(&whole));
        // One row of two is known, of all columns.
        let unknown = Extent::Unknown { reason: crate::Reason::Loaded };
        let dims = SmallVec::from_slice(&[Dim { stride: 128, count: 2 }]);
        let rows = Extent::Bounded { lo: 0, hi: 256, dims, width: 128, exact: false };
        let found = of(&t, vec![unknown, zero()]).expect("extents");
        assert_eq!(found.iter().map(values).collect::<Vec<_>>(), [values(&rows)]);
        assert!(matches!(found[0], Extent::Bounded { exact: false, .. }));
    }
}
