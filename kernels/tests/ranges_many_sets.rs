//! Launches that are exact in many byte sets: rows of triangles and bands, each of another length,
//! and pointers of a table among the parameters, by block and by thread, of each table size.

use device_code::arch::Arch;
use kernels::{AccessKind, Base, CodeImage, Extent, KernelAccess, LaunchArgs};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const SOURCE: &str = r#"
template <int N> struct Table { float *at[N]; };
#define ROWS(name, test) extern "C" __global__ void name(float *a, int m) { \
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y; if (test) a[i * m + j] = 1; }
ROWS(lower, j <= i && j < m)
ROWS(upper, j > i && j < m)
ROWS(band, j > i - 9 && j < i + 5 && j < m)
ROWS(steps, j < (i / 3) * 2 && j < m)
extern "C" __global__ void by_block(const __grid_constant__ Table<4000> t) { t.at[blockIdx.x][threadIdx.x] = 1; }
extern "C" __global__ void by_axis(const __grid_constant__ Table<4000> t) { t.at[blockIdx.y][threadIdx.x] = 1; }
extern "C" __global__ void by_thread(const __grid_constant__ Table<4000> t) { t.at[blockIdx.x * blockDim.x + threadIdx.x][7] = 1; }
extern "C" __global__ void by_group(const __grid_constant__ Table<4000> t) { t.at[blockIdx.x / 4][blockIdx.x % 4 * 64 + threadIdx.x] = 1; }
"#;

fn images() -> Vec<(String, CodeImage)> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("many_sets.cu");
    std::fs::write(&file, SOURCE).expect("a file");
    let image = |arch: &str, form: &str| {
        let code = std::fs::read(tests::build::nvcc(&file, &[form, &format!("-arch={arch}")])).expect("compiled");
        (format!("{arch} {form}"), CodeImage::load(&code, arch.parse::<Arch>().expect("arch")).expect("image"))
    };
    vec![image("sm_80", "-ptx"), image("sm_80", "-cubin"), image("sm_90", "-cubin")]
}

fn evaluate(image: &CodeImage, kernel: &str, (grid, block): ([u32; 3], [u32; 3]), params: &[u8]) -> Vec<KernelAccess> {
    let mut found = Vec::new();
    let summary = image.summary(kernel).unwrap_or_else(|e| panic!("{kernel}: {e}"));
    summary.evaluate(&LaunchArgs::new(grid, block, params), &mut found);
    found.retain(|a| a.kind == AccessKind::Write);
    found
}

/// The bytes that are surely written, by base; fails where anything is not exact.
fn written(what: &str, found: &[KernelAccess]) -> BTreeMap<u64, BTreeSet<i64>> {
    let mut all: BTreeMap<u64, BTreeSet<i64>> = BTreeMap::new();
    for access in found {
        let (Base::Word { value, .. }, Extent::Bounded { lo, dims, width, exact: true, .. }) =
            (access.base, &access.extent)
        else {
            panic!("{what}: {access:?} of {}", found.len());
        };
        let mut starts = vec![*lo];
        for d in dims {
            starts = starts.iter().flat_map(|s| (0..d.count).map(move |k| s + (d.stride * k) as i64)).collect();
        }
        all.entry(value).or_default().extend(starts.into_iter().flat_map(|s| s..s + i64::from(*width)));
    }
    all
}

#[test]
fn rows_of_any_length_are_exact() {
    const POINTER: u64 = 0x7f01_0000_0000;
    type Test = fn(i64, i64) -> bool;
    let kernels: [(&str, Test); 4] = [
        ("lower", |i, j| j <= i),
        ("upper", |i, j| j > i),
        ("band", |i, j| j > i - 9 && j < i + 5),
        ("steps", |i, j| j < (i / 3) * 2),
    ];
    for (form, image) in images() {
        for m in [40_u32, 64, 65, 128, 200, 512] {
            let params = [&POINTER.to_le_bytes()[..], &m.to_le_bytes()].concat();
            let shape = ([m.div_ceil(32), m / 8, 1], [32, 8, 1]);
            for (kernel, holds) in kernels {
                let what = format!("{form} {kernel} {m}");
                let found = written(&what, &evaluate(&image, kernel, shape, &params));
                let m = i64::from(m);
                let places = (0..m / 8 * 8).flat_map(|i| (0..m).filter(move |j| holds(i, *j)).map(move |j| i * m + j));
                let truth: BTreeSet<i64> = places.flat_map(|k| 4 * k..4 * k + 4).collect();
                assert!(found.get(&POINTER) == Some(&truth), "{what}");
            }
        }
    }
}

#[test]
fn tables_of_any_size_lead_to_their_own_pointers() {
    let pointer = |k: u64| 0x7f01_0000_0000 + (k << 20);
    let table: Vec<u8> = (0..4000).flat_map(|k| pointer(k).to_le_bytes()).collect();
    for (form, image) in images() {
        for count in [3_u32, 500, 513, 600, 1200, 3999] {
            let rows = |of: u32, width: i64| -> BTreeMap<u64, BTreeSet<i64>> {
                (0..u64::from(of)).map(|k| (pointer(k), (0..width).collect())).collect()
            };
            let judge = |kernel: &str, shape, params: &[u8], truth: BTreeMap<u64, BTreeSet<i64>>| {
                let what = format!("{form} {kernel} {count}");
                let found = written(&what, &evaluate(&image, kernel, shape, params));
                assert!(found == truth, "{what}: {} pointers, not {}", found.len(), truth.len());
            };
            judge("by_block", ([count, 1, 1], [64, 1, 1]), &table, rows(count, 256));
            judge("by_axis", ([2, count, 1], [64, 1, 1]), &table, rows(count, 256));
            let groups = (count / 4).max(1);
            judge("by_group", ([4 * groups, 1, 1], [64, 1, 1]), &table, rows(groups, 1024));
            let one = |k: u64| (pointer(k), (28..32).collect());
            judge("by_thread", ([count.div_ceil(100), 1, 1], [count.min(100), 1, 1]), &table, {
                let threads = u64::from(count.div_ceil(100) * count.min(100));
                (0..threads.min(4000)).map(one).collect()
            });
        }
    }
}
