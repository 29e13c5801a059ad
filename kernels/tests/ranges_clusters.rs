//! Addresses made of a block's place in its cluster, against the bytes that each thread stores.
//!
//! Machine code computes the index of the cluster by a rounded reciprocal out of the constant bank;
//! PTX names it. Bounds must hold for launches of any size, and launches that are small enough must
//! be exact.

use crate::support::cuda;
use kernels::{Base, CodeImage, Extent, KernelAccess, LaunchArgs};
use std::collections::BTreeSet;

const THREADS: u32 = 64;
const TILES: u32 = 7;

/// What one block stores: the places of its first thread, in units of blocks.
type Stores = fn(&Block) -> Vec<u32>;

struct Block {
    at: [u32; 2],
    grid: [u32; 2],
    cluster: [u32; 2],
}

impl Block {
    fn index(&self, d: usize) -> u32 {
        self.at[d] / self.cluster[d]
    }

    fn own(&self, d: usize) -> u32 {
        self.at[d] % self.cluster[d]
    }

    fn clusters(&self, d: usize) -> u32 {
        self.grid[d] / self.cluster[d]
    }

    fn rank(&self) -> u32 {
        self.own(0) + self.cluster[0] * self.own(1)
    }

    fn cluster(&self) -> u32 {
        self.index(1) * self.clusters(0) + self.index(0)
    }
}

const KERNELS: [(&str, Stores); 5] = [
    ("k_ranks", |b| vec![b.cluster() * b.cluster[0] * b.cluster[1] + b.rank()]),
    ("k_places", |b| vec![b.at[1] * b.grid[0] + b.at[0]]),
    ("k_leaders", |b| if b.rank() == 0 { vec![b.cluster()] } else { Vec::new() }),
    ("k_halves", |b| if b.own(0) * 2 < b.cluster[0] { vec![b.at[1] * b.grid[0] + b.at[0]] } else { Vec::new() }),
    ("k_walk", |b| {
        let tiles = (b.index(0)..TILES).step_by(b.clusters(0) as usize);
        tiles.map(|tile| tile * b.cluster[0] + b.own(0)).collect()
    }),
];

const SHAPES: [([u32; 2], [u32; 2]); 6] =
    [([6, 2], [1, 1]), ([6, 2], [2, 1]), ([4, 4], [2, 2]), ([8, 2], [4, 2]), ([3, 4], [1, 2]), ([9, 1], [3, 1])];

#[test]
fn places_in_clusters_are_known_in_machine_code() {
    cuda::deep(|| check("-cubin"));
}

#[test]
fn places_in_clusters_are_known_in_ptx() {
    cuda::deep(|| check("-ptx"));
}

fn check(form: &str) {
    let image = cuda::image("clusters.cu", "sm_90a", form);
    for (kernel, stores) in KERNELS {
        for (grid, cluster) in SHAPES {
            let wanted = stored(stores, grid, cluster);
            let name = format!("{kernel} {form} {grid:?} in {cluster:?}");
            for by_forms in [true, false] {
                let (found, exact) = told(&evaluated(&image, kernel, grid, cluster, by_forms), &name);
                assert!(wanted.is_subset(&found), "{name}: not all bytes ({by_forms})");
                assert!(!exact || found == wanted, "{name}: bytes that are not stored ({by_forms})");
                assert!(exact || by_forms, "{name}: not exact");
            }
        }
    }
}

#[test]
fn places_in_clusters_of_large_launches_are_bounded() {
    cuda::deep(|| {
        for form in ["-cubin", "-ptx"] {
            let image = cuda::image("clusters.cu", "sm_90a", form);
            for (kernel, stores) in &KERNELS[..4] {
                let (grid, cluster) = ([8192, 2], [4, 2]);
                let name = format!("{kernel} {form}");
                let wanted = stored(*stores, grid, cluster);
                let (found, exact) = told(&evaluated(&image, kernel, grid, cluster, true), &name);
                assert!(wanted.is_subset(&found), "{name}: not all bytes");
                assert!(!exact || found == wanted, "{name}: bytes that are not stored");
            }
        }
    });
}

fn stored(stores: Stores, grid: [u32; 2], cluster: [u32; 2]) -> BTreeSet<i64> {
    let all = (0..grid[1]).flat_map(|y| (0..grid[0]).map(move |x| [x, y]));
    let places: BTreeSet<u32> = all.flat_map(|at| stores(&Block { at, grid, cluster })).collect();
    // (Words, not bytes: all stores are of words.)
    places.iter().flat_map(|place| i64::from(place * THREADS)..i64::from((place + 1) * THREADS)).collect()
}

fn evaluated(image: &CodeImage, kernel: &str, grid: [u32; 2], cluster: [u32; 2], by_forms: bool) -> Vec<KernelAccess> {
    let summary = image.summary(kernel).expect("summary");
    let params: Vec<u8> = [&0x7f00_0000_0000_u64.to_le_bytes()[..], &TILES.to_le_bytes()].concat();
    let launch = LaunchArgs {
        cluster: [cluster[0], cluster[1], 1],
        ..LaunchArgs::new([grid[0], grid[1], 1], [THREADS, 1, 1], &params)
    };
    let mut found = Vec::new();
    match by_forms {
        true => summary.evaluate_by_forms(&launch, &mut found),
        false => summary.evaluate(&launch, &mut found),
    }
    found
}

/// The words behind the pointer that accesses name, and whether they are exactly these.
fn told(found: &[KernelAccess], name: &str) -> (BTreeSet<i64>, bool) {
    let (mut words, mut exact) = (BTreeSet::new(), !found.is_empty());
    for access in found {
        assert!(matches!(access.base, Base::Word { offset: 0, .. }), "{name}: {access:?}");
        let Extent::Bounded { lo, dims, width, exact: all, .. } = &access.extent else { panic!("{name}: {access:?}") };
        exact &= *all;
        let mut at = vec![*lo];
        for d in dims {
            at = at.iter().flat_map(|at| (0..d.count).map(move |k| at + (k * d.stride) as i64)).collect();
        }
        words.extend(at.iter().flat_map(|at| *at..*at + i64::from(*width)).map(|byte| byte.div_euclid(4)));
    }
    (words, exact)
}
