//! Copies of tiles by tensor maps: the bytes of each launch, against the box at each coordinate.
//!
//! Maps, boxes and walks are random; the kernels are machine code and PTX.

use crate::support::cuda;
use device_code::tensor_map::{Tensor, Tile};
use kernels::{AccessKind, Base, CodeImage, Extent, KernelAccess, LaunchArgs, Tiles};
use std::collections::BTreeSet;

/// As in `tiles.cu`.
#[derive(Clone, Copy, Debug)]
struct Walk {
    start: [i64; 5],
    step: [i64; 5],
    count: [i64; 5],
}

/// Numbers below others, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn tensor(&mut self, rank: usize) -> Tensor {
        let element = 1 << self.below(4);
        let (mut sizes, mut strides) = ([1; 5], [0; 4]);
        let mut tile = Tile { extent: [1; 5], step: [1; 5] };
        for k in 0..rank {
            sizes[k] = 1 + self.below([90, 20, 7, 3, 3][k]);
            tile.extent[k] = 1 + self.below([30, 6, 3, 2, 2][k]) as u32;
            if k > 0 {
                tile.step[k] = 1 + self.below(3).saturating_sub(1) as u32;
                let below = if k == 1 { sizes[0] * element } else { sizes[k - 1] * strides[k - 2] };
                strides[k - 1] = below.div_ceil(16) * 16 + 16 * self.below(2);
            }
        }
        Tensor { address: 0x7f00_0000_0000, element, sizes, strides, tile: Some(tile) }
    }

    fn walk(&mut self, rank: usize, tensor: &Tensor) -> Walk {
        let mut w = Walk { start: [0; 5], step: [0; 5], count: [1; 5] };
        let extent = tensor.tile.expect("tiles").extent;
        for k in 0..rank {
            let (size, extent) = (tensor.sizes[k], u64::from(extent[k]));
            w.start[k] = if self.below(3) > 0 { 0 } else { self.below(2 * size) as i64 - size as i64 };
            w.step[k] = (if self.below(3) > 0 { extent } else { 1 + self.below(2 * extent) }) as i64;
            w.count[k] = if k > 2 { 1 } else { 1 + self.below(size.div_ceil(extent)) as i64 };
        }
        w
    }
}

/// The bytes behind the tensor's address that the box at these coordinates has inside the tensor.
fn box_at(t: &Tensor, at: [i64; 5], touched: &mut BTreeSet<i64>) {
    let tile = t.tile.expect("tiles");
    let mut places = BTreeSet::from([0]);
    for k in 0..5 {
        let stride = if k == 0 { t.element } else { t.strides[k - 1] } as i64;
        let inside: Vec<i64> = (0..i64::from(tile.extent[k]))
            .step_by(tile.step[k] as usize)
            .map(|e| at[k] + e)
            .filter(|at| (0..t.sizes[k] as i64).contains(at))
            .collect();
        places = places.iter().flat_map(|p| inside.iter().map(move |at| p + at * stride)).collect();
    }
    touched.extend(places.iter().flat_map(|p| *p..*p + t.element as i64));
}

/// The tensor with rows as long as stores have them: whole units of 16 bytes.
fn stored(t: &Tensor) -> Tensor {
    let mut t = *t;
    t.sizes[0] = (t.sizes[0] * t.element).next_multiple_of(16) / t.element;
    t
}

fn walked(t: &Tensor, w: &Walk, tiles: impl Iterator<Item = [i64; 3]>) -> BTreeSet<i64> {
    let mut touched = BTreeSet::new();
    for place in tiles {
        let at = std::array::from_fn(|k| w.start[k] + w.step[k] * place.get(k).unwrap_or(&0));
        box_at(t, at, &mut touched);
    }
    touched
}

fn bytes(e: &Extent) -> Vec<i64> {
    let Extent::Bounded { lo, dims, width, .. } = e else { panic!("{e:?}") };
    let mut all = vec![*lo];
    for d in dims {
        all = all.iter().flat_map(|at| (0..d.count).map(move |k| at + (k * d.stride) as i64)).collect();
    }
    all.iter().flat_map(|at| *at..*at + i64::from(*width)).collect()
}

/// What a launch with these parameters, each at its place, is said to touch.
fn evaluated(image: &CodeImage, kernel: &str, grid: [i64; 3], values: &[Vec<u8>]) -> Vec<KernelAccess> {
    let summary = image.summary(kernel).expect("summary");
    let mut params = Vec::new();
    for (p, value) in summary.params().iter().zip(values) {
        params.resize(usize::from(p.offset), 0);
        params.extend(value);
    }
    let mut found = Vec::new();
    summary.evaluate(&LaunchArgs::new(grid.map(|n| n as u32), [64, 1, 1], &params), &mut found);
    found
}

fn map() -> Vec<u8> {
    vec![0; 128]
}

fn packed(w: &Walk) -> Vec<u8> {
    [w.start, w.step, w.count].iter().flatten().flat_map(|n| (*n as i32).to_le_bytes()).collect()
}

/// The bytes of all tiles, and whether they are exactly these.
fn named(t: &Tensor, found: &[KernelAccess]) -> (BTreeSet<i64>, bool) {
    let of = |a: &KernelAccess| Extent::of_tiles(t, a.tiles.as_deref().expect("tiles"), a.kind).expect("extents");
    let all: Vec<Extent> = found.iter().flat_map(of).collect();
    let exact = all.iter().all(|e| matches!(e, Extent::Bounded { exact: true, .. }));
    (all.iter().flat_map(bytes).collect(), exact)
}

fn grid(n: [i64; 3]) -> impl Iterator<Item = [i64; 3]> {
    (0..n[2]).flat_map(move |z| (0..n[1]).flat_map(move |y| (0..n[0]).map(move |x| [x, y, z])))
}

#[test]
fn tiles_of_machine_code_are_boxes_at_their_coordinates() {
    cuda::deep(|| check("-cubin"));
}

#[test]
fn tiles_of_ptx_are_boxes_at_their_coordinates() {
    cuda::deep(|| check("-ptx"));
}

fn check(form: &str) {
    let image = cuda::image("tiles.cu", "sm_90a", form);
    let mut r = Random(3);
    let (mut exact, mut all) = (0, 0);
    for n in 0..200 {
        let rank = 1 + n % 5;
        let (t, family) = (r.tensor(rank), n / 5 % 5);
        let w = r.walk(rank, &t);
        let [x, y, z, ..] = w.count;
        let (name, kind, blocks) = match family {
            0 => ("loads", AccessKind::Read, [x, y, z]),
            1 => ("stores", AccessKind::Write, [x, y, z]),
            2 => ("adds", AccessKind::Atomic, [x, y, z]),
            3 => ("loops", AccessKind::Write, [y, 1, 1]),
            _ => ("numbers", AccessKind::Write, [1 + r.below(4) as i64, 1, 1]),
        };
        let case = format!("{form} {name}{rank} {blocks:?} {t:?} {w:?}");
        let found = evaluated(&image, &format!("{name}{rank}"), blocks, &[map(), packed(&w)]);
        assert!(found.iter().all(|a| a.kind == kind && matches!(a.base, Base::TensorMap { .. })), "{case}: {found:?}");
        let touched = walked(&if kind == AccessKind::Read { t } else { stored(&t) }, &w, grid([x, y, z]));
        let (bytes, is_exact) = named(&t, &found);
        assert!(bytes.is_superset(&touched), "{case}: {found:?}");
        assert!(!is_exact || bytes == touched, "{case}: {found:?}");
        all += 1;
        exact += usize::from(is_exact);
    }
    assert!(exact * 10 > all * 9, "{exact} of {all} to the byte");
}

/// What an H200 stored, with kernels of the same walks.
#[test]
fn tiles_are_those_that_a_gpu_stored() {
    cuda::deep(|| {
        let image = cuda::image("tiles.cu", "sm_90a", "-cubin");
        let element = |kind: i64| [1, 2, 4, 4, 8, 8, 2, 4, 8, 2][kind as usize];
        let mut seen = 0;
        for line in include_str!("truth/tiles.h200.txt").lines().filter(|l| !l.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |w: &&str| w.parse::<i64>().ok();
            let [name, ref head @ ..] = words[..] else { panic!("{line}") };
            let head: Vec<i64> = head.iter().map_while(number).collect();
            let [kind, rank, offset] = head[..] else { panic!("{line}") };
            let list = |name: &str| -> Vec<i64> {
                let at = words.iter().position(|w| *w == name).expect("a list");
                words[at + 1..].iter().map_while(number).collect()
            };
            let five = |name: &str, rest: i64| -> [i64; 5] {
                let mut all = list(name);
                all.resize(5, rest);
                all.try_into().expect("five")
            };
            let strides: [i64; 5] = five("strides", 0);
            let tile = Tile { extent: five("box", 1).map(|n| n as u32), step: five("every", 1).map(|n| n as u32) };
            let t = Tensor {
                address: 0x7f00_0000_0000,
                element: element(kind),
                sizes: five("sizes", 1).map(|n| n as u64),
                strides: std::array::from_fn(|k| strides[k] as u64),
                tile: Some(tile),
            };
            let w = Walk { start: five("start", 0), step: five("step", 0), count: five("count", 1) };
            let changed = words.iter().skip_while(|w| **w != "changed").skip(1).map(|r| {
                let (from, to) = r.split_once('-').expect("a run");
                (from.parse::<i64>().expect("a number") - offset)..(to.parse::<i64>().expect("a number") - offset)
            });
            let changed: BTreeSet<i64> = changed.flatten().collect();
            let kernel = match name {
                "blocks" => "stores",
                "persistent" => "numbers",
                other => other,
            };
            let blocks = list("grid").try_into().expect("three");
            let found = evaluated(&image, &format!("{kernel}{rank}"), blocks, &[map(), packed(&w)]);
            let (bytes, is_exact) = named(&t, &found);
            assert!(bytes.is_superset(&changed), "{line}: {found:?}");
            // What an addition changes need not be every byte.
            assert!(!is_exact || name == "adds" || bytes == changed, "{line}: {found:?}");
            seen += 1;
        }
        assert!(seen > 20, "{seen}");
    });
}

#[test]
fn tiles_in_the_order_of_groups_are_exact() {
    cuda::deep(|| {
        let image = cuda::image("tiles.cu", "sm_90a", "-cubin");
        let mut r = Random(5);
        for n in 0..12 {
            let (t, mut w) = (r.tensor(2), r.walk(2, &Random(5).tensor(2)));
            (w.count[0], w.count[1]) = (1 + r.below(5) as i64, 1 + r.below(9) as i64);
            // Every third launch leaves some of the tiles out.
            let blocks = w.count[0] * w.count[1] - if n % 3 == 0 { 1 } else { 0 };
            let group = 3;
            let order = |pid: i64| {
                let in_group = group * w.count[0];
                let first = pid / in_group * group;
                let size = group.min(w.count[1] - first);
                [pid % in_group / size, first + pid % in_group % size, 0]
            };
            let found = evaluated(&image, "grouped2", [blocks, 1, 1], &[map(), packed(&w)]);
            assert_eq!(
                named(&t, &found),
                (walked(&stored(&t), &w, (0..blocks).map(order)), true),
                "{blocks} {w:?}: {found:?}"
            );
        }
    });
}

/// One block goes through 25,000 copies: more than its blocks of code may be without a price.
#[test]
fn tiles_of_long_walks_are_exact() {
    cuda::deep(|| {
        for form in ["-cubin", "-ptx"] {
            let image = cuda::image("tiles.cu", "sm_90a", form);
            for (blocks, [x, y, z], strip) in [(1, [24, 16, 64], 2), (3, [5, 8, 700], 3)] {
                let tile = Tile { extent: [16, 1, 1, 1, 1], step: [1; 5] };
                let (sizes, strides) =
                    ([16 * x as u64, y as u64, z as u64, 1, 1], [16 * x as u64, 16 * (x * y) as u64]);
                let strides = [strides[0], strides[1], 0, 0];
                let t = Tensor { address: 0x7f00_0000_0000, element: 1, sizes, strides, tile: Some(tile) };
                let w = Walk { start: [0; 5], step: [16, 1, 1, 0, 0], count: [x, y, z, strip, 1] };
                let found = evaluated(&image, "strips3", [blocks, 1, 1], &[map(), packed(&w)]);
                let (bytes, is_exact) = named(&t, &found);
                assert!(is_exact, "{form} {w:?}: {found:?}");
                assert_eq!(bytes, (0..16 * x * y * z).collect::<BTreeSet<i64>>(), "{form} {w:?}: {found:?}");
            }
        }
    });
}

#[test]
fn what_is_not_known_of_a_copy_is_bounded() {
    cuda::deep(|| {
        for form in ["-cubin", "-ptx"] {
            let image = cuda::image("tiles.cu", "sm_90a", form);
            let mut r = Random(7);
            let (t, pointer) = (r.tensor(2), 0x7f10_0000_0000_u64.to_le_bytes().to_vec());
            let w = r.walk(2, &t);
            let blocks = [w.count[0], 1, 1];
            let tiles = |found: &[KernelAccess], what: &str| -> Vec<Tiles> {
                let of = found.iter().filter(|a| a.kind == AccessKind::Write);
                of.map(|a| a.tiles.as_deref().unwrap_or_else(|| panic!("{form} {what}: {a:?}")).clone()).collect()
            };
            // One coordinate out of memory: all of that axis, what is known of the other.
            let found = evaluated(&image, "told2", blocks, &[map(), packed(&w), pointer.clone()]);
            let [ref told] = tiles(&found, "told")[..] else { panic!("{found:?}") };
            let rows = walked(&t, &w, grid([w.count[0], 1, 1]));
            let whole = bytes(&Extent::of_tensor(&t).expect("a tensor"));
            let told_bytes = |tiles: &Tiles| Extent::of_tiles(&t, tiles, AccessKind::Read).expect("extents");
            let named: BTreeSet<i64> = told_bytes(told).iter().flat_map(bytes).collect();
            assert!(!told.exact && named.is_superset(&rows) && named.iter().all(|at| whole.contains(at)), "{told:?}");
            // One map or the other: both.
            let found = evaluated(&image, "chosen2", [4, 1, 1], &[map(), packed(&w), map()]);
            let bases: BTreeSet<String> = found.iter().map(|a| format!("{:?}", a.base)).collect();
            assert_eq!(bases.len(), 2, "{form} {found:?}");
            // Maps in constant and in global memory: where they lie, and which tiles.
            let found = evaluated(&image, "constant2", blocks, &[packed(&w)]);
            assert!(matches!(found[0].base, Base::Global(_)) && tiles(&found, "constant")[0].at == 0, "{found:?}");
            let found = evaluated(&image, "pointed2", blocks, &[pointer.clone(), packed(&w)]);
            assert!(matches!(found[0].base, Base::Word { value: 0x7f10_0000_0000, .. }), "{found:?}");
            assert!(tiles(&found, "pointed")[0].at == 128, "{found:?}");
            // Of an image the tensor; a prefetch touches nothing.
            let found = evaluated(&image, "image4", [1, 1, 1], &[map(), packed(&w)]);
            let [ref image_of] = found[..] else { panic!("{found:?}") };
            assert!(image_of.kind == AccessKind::Read && image_of.tiles.as_ref().is_some_and(|t| t.axes.is_empty()));
            for rank in 1..=5 {
                let found = evaluated(&image, &format!("prefetches{rank}"), [2, 2, 2], &[map(), packed(&w)]);
                assert!(found.is_empty(), "{form} {found:?}");
            }
        }
    });
}
