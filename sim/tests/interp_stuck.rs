//! Blocks whose threads wait for each other for ever: who waits where is told, and blocks of which
//! some threads have ended go on.

use streamsan_sim::interp::Launch;

use crate::interp_support::{Arg, Gpu};

const SOURCE: &str = r#"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
// Half of the threads wait for all.
extern "C" __global__ void half_block(int* d) {
    if (threadIdx.x < 64) asm volatile("bar.sync 1, 128;" ::: "memory"); // here
    d[threadIdx.x] = 1;
}
extern "C" __global__ void apart(int* d) {
    if (threadIdx.x < 64) asm volatile("bar.sync 1, 128;" ::: "memory"); // low
    else asm volatile("bar.sync 2, 128;" ::: "memory"); // high
    d[threadIdx.x] = 1;
}
// Those that have ended hold nobody up at a barrier of all threads.
extern "C" __global__ void ended(int* d) {
    if (threadIdx.x >= 64) return;
    __syncthreads();
    d[threadIdx.x] = 1;
}
extern "C" __global__ void in_turn(int* d) {
    if (threadIdx.x < 64) asm volatile("bar.arrive 1, 128;" ::: "memory");
    else asm volatile("bar.sync 1, 128;" ::: "memory");
    d[threadIdx.x] = 1;
}
// Of four blocks two come to the grid's barrier.
extern "C" __global__ void half_grid(int* d) {
    if (blockIdx.x < 2) cg::this_grid().sync(); // grid
    d[threadIdx.x] = 1;
}
// All come, some late, and other lanes of the warp that polls go on with their work.
extern "C" __global__ void late_grid(int* d) {
    int v = threadIdx.x;
    for (int i = 0; i < (int)blockIdx.x * 4000; i++) v = v * 7 + d[v & 63];
    cg::this_grid().sync();
    for (int i = 0; i < (int)(threadIdx.x & 1) * 4000; i++) v = v * 7 + d[v & 63];
    cg::this_grid().sync();
    if (threadIdx.x < 128) d[threadIdx.x] = v | 1;
}
// A warp never comes to the barrier of its tile.
extern "C" __global__ void half_tile(int* d) {
    auto tile = cg::tiled_partition<64>(cg::this_thread_block());
    if (threadIdx.x / 32 != 1) tile.sync(); // tile
    d[threadIdx.x] = 1;
}
extern "C" __global__ void late_tile(int* d) {
    auto tile = cg::tiled_partition<64>(cg::this_thread_block());
    int v = threadIdx.x;
    for (int i = 0; i < (int)threadIdx.x / 32 * 4000; i++) v = v * 7 + d[v & 63];
    for (int i = 0; i < 3; i++) tile.sync();
    d[threadIdx.x] = v | 1;
}
"#;

fn line(marker: &str) -> usize {
    SOURCE.lines().position(|line| line.ends_with(marker)).expect("a marked line") + 1
}

/// What a cooperative kernel of four blocks of 128 threads ends with.
fn grid_ends(gpu: &Gpu, name: &str) -> Result<(), String> {
    let data = gpu.zeros::<i32>(128);
    let args: [Arg; 1] = [(&data).into()];
    let launch = Launch { grid: [4, 1, 1], block: [128, 1, 1], cooperative: true, ..Launch::default() };
    gpu.try_launch(name, launch, &args).map_err(|fault| fault.to_string())
}

/// What a kernel of 128 threads ends with.
fn ends(gpu: &Gpu, name: &str) -> Result<(), String> {
    let data = gpu.zeros::<i32>(128);
    let args: [Arg; 1] = [(&data).into()];
    let launch = Launch { grid: [1, 1, 1], block: [128, 1, 1], ..Launch::default() };
    gpu.try_launch(name, launch, &args).map_err(|fault| fault.to_string())
}

#[test]
fn who_waits_where_is_told() {
    for gpu in Gpu::both(SOURCE) {
        let said = ends(&gpu, "half_block").unwrap_err();
        assert!(said.starts_with("deadlock: "), "{said}");
        assert!(said.contains("threads 0 to 63 wait at barrier 1 ("), "{said}");
        assert!(said.contains(&format!(":{})", line("// here"))), "{said}");
        assert!(said.contains("threads 64 to 127 have ended"), "{said}");
        let said = ends(&gpu, "apart").unwrap_err();
        for (threads, barrier, marker) in [("0 to 63", 1, "// low"), ("64 to 127", 2, "// high")] {
            assert!(said.contains(&format!("threads {threads} wait at barrier {barrier} (")), "{said}");
            assert!(said.contains(&format!(":{})", line(marker))), "{said}");
        }
        assert!(!said.contains("ended"), "{said}");
        assert_eq!(ends(&gpu, "ended"), Ok(()));
        assert_eq!(ends(&gpu, "in_turn"), Ok(()));
    }
}

#[test]
fn barriers_of_the_grid_and_of_tiles_that_some_never_reach_end() {
    // Each that ends so takes two seconds.
    for (gpu, checked) in Gpu::both(SOURCE).into_iter().zip([&[false, true][..], &[true]]) {
        for &inside in checked {
            if inside {
                gpu.detect();
            } else {
                gpu.watch_nothing();
            }
            let said = grid_ends(&gpu, "half_grid").unwrap_err();
            assert!(said.starts_with("deadlock: "), "{said}");
            assert!(said.contains("threads 0 poll the barrier of a grid or a tile ("), "{said}");
            assert!(said.contains("to 127 wait at barrier 0 ("), "{said}");
            assert!(said.contains("2 of 4 blocks have ended"), "{said}");
            let said = ends(&gpu, "half_tile").unwrap_err();
            assert!(said.starts_with("deadlock: "), "{said}");
            assert!(said.contains("poll the barrier of a grid or a tile ("), "{said}");
            assert!(said.contains("threads 32 to 127 have ended"), "{said}");
            assert_eq!(grid_ends(&gpu, "late_grid"), Ok(()));
            assert_eq!(ends(&gpu, "late_tile"), Ok(()));
        }
    }
}
