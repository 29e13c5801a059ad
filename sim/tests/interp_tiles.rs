//! Tiles of several warps (cooperative groups): they meet at barriers in the part of shared memory
//! that the system keeps of each block.

use sim_races::{Grade, Race};
use streamsan_sim::interp::{FaultKind, Launch};

use crate::interp_support::{Arg, Gpu};

/// The parameters are the size of the tiles, and whether the kernel is mended.
const SOURCE: &str = r#"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

// The tile's threads exchange what they hold.
template <int S, bool M> __device__ void exchange(int* d) {
    __shared__ int held[256];
    __shared__ cg::block_tile_memory<256> room;
    auto tile = cg::tiled_partition<S>(cg::this_thread_block(room));
    int t = threadIdx.x;
    for (int i = 0; i < 3; i++) {
        held[t] = t + i;
        if (M || i) tile.sync();
        d[blockIdx.x * 256 + t] = held[t ^ (S - 1)];
        tile.sync();
    }
}
// A tile of which a part does not come.
template <int S, bool M> __device__ void left(int* d) {
    __shared__ cg::block_tile_memory<256> room;
    auto tile = cg::tiled_partition<S>(cg::this_thread_block(room));
    if (M || threadIdx.x / S != 1) tile.sync();
    d[blockIdx.x * 256 + threadIdx.x] = tile.meta_group_rank();
}
template <int S, bool M> __device__ void sums(int* d) {
    __shared__ cg::block_tile_memory<256> room;
    auto tile = cg::tiled_partition<S>(cg::this_thread_block(room));
    d[blockIdx.x * 256 + threadIdx.x] = cg::reduce(tile, (int)threadIdx.x, cg::plus<int>());
}
#define BOTH(name, size) \
    extern "C" __global__ void name##_##size##_racy(int* d) { name<size, false>(d); } \
    extern "C" __global__ void name##_##size##_mended(int* d) { name<size, true>(d); }
BOTH(exchange, 64) BOTH(exchange, 128) BOTH(exchange, 256)
BOTH(left, 64) BOTH(sums, 64) BOTH(sums, 128)

// Behind its own shared memory no thread may look, whatever the system keeps there.
extern "C" __global__ void beyond(int* d) {
    __shared__ int held[64];
    held[threadIdx.x & 63] = 1;
    __syncthreads();
    d[threadIdx.x] = *(volatile int*)((char*)held + d[0]);
}
"#;

fn launch() -> Launch {
    Launch { grid: [3, 1, 1], block: [256, 1, 1], ..Launch::default() }
}

fn run(gpu: &Gpu, name: &str) -> Vec<i32> {
    let data = gpu.zeros::<i32>(3 * 256);
    let args: [Arg; 1] = [(&data).into()];
    gpu.launch_with(name, launch(), &args);
    data.read()
}

/// The races in one block of a kernel.
fn races(gpu: &Gpu, name: &str) -> Vec<Race> {
    let detector = gpu.detect();
    let data = gpu.zeros::<i32>(256);
    let args: [Arg; 1] = [(&data).into()];
    gpu.launch_with(name, Launch { grid: [1, 1, 1], ..launch() }, &args);
    detector.races()
}

#[test]
fn tiles_of_several_warps_meet() {
    for gpu in Gpu::both(SOURCE) {
        for (name, size) in [("exchange_64_mended", 64), ("exchange_128_mended", 128), ("exchange_256_mended", 256)] {
            let expected: Vec<i32> = (0..3 * 256).map(|at| ((at % 256) ^ (size - 1)) + 2).collect();
            assert_eq!(run(&gpu, name), expected, "{name}");
        }
        let ranks: Vec<i32> = (0..3 * 256).map(|at| at % 256 / 64).collect();
        assert_eq!(run(&gpu, "left_64_mended"), ranks);
        assert_eq!(run(&gpu, "left_64_racy"), ranks, "the other tiles wait for nobody");
        for (name, size) in [("sums_64_racy", 64), ("sums_128_mended", 128)] {
            let first = |at: i32| at % 256 / size * size;
            let sum = |at: i32| size * first(at) + size * (size - 1) / 2;
            assert_eq!(run(&gpu, name), (0..3 * 256).map(sum).collect::<Vec<i32>>(), "{name}");
        }
    }
}

#[test]
fn barriers_of_tiles_order_the_threads_of_the_tile() {
    for gpu in Gpu::both(SOURCE) {
        for size in [64, 256] {
            let found = races(&gpu, &format!("exchange_{size}_racy"));
            assert!(found.iter().any(|race| race.grade == Grade::Certain), "{size}: {found:?}");
            assert_eq!(races(&gpu, &format!("exchange_{size}_mended")), [], "{size}");
        }
        assert_eq!(races(&gpu, "left_64_mended"), []);
    }
}

#[test]
fn what_the_system_keeps_is_nobody_elses() {
    let quiet = SOURCE.split("#define BOTH").next().unwrap_or_default();
    let beyond = &SOURCE[SOURCE.find("// Behind its own").expect("a kernel")..];
    for gpu in Gpu::both(&format!("{quiet}{beyond}")) {
        let data = gpu.buffer(&[264i32; 256]);
        let args: [Arg; 1] = [(&data).into()];
        let fault = gpu.try_launch("beyond", launch(), &args).expect_err("out of bounds");
        assert!(matches!(fault.kind, FaultKind::OutOfBounds { .. }), "{fault}");
    }
}
