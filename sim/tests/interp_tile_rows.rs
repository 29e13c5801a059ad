//! Where the rows of a tile lie: with a swizzle each at a multiple of its width, and what is stored
//! ends with a whole unit of 16 bytes (both measured on an H200). Results, races with what lies
//! between and behind, and maps that copies do not reach.

use device_code::tensor_map::{Tensor, Tile};
use sim_races::Grade;
use streamsan_sim::interp::exec::tensor::map::TensorMap;
use streamsan_sim::interp::{BulkTiming, FaultKind, Launch};

use crate::interp_support::{Arg, Gpu, compile, ptx};

/// Another warp touches a word of shared memory (0) or of global memory (1), while a tile is copied
/// or when it has been.
const SOURCE: &str = r#"
#define T (int)threadIdx.x
typedef unsigned long long u64;
struct alignas(64) Map { char bytes[128]; };
__device__ __forceinline__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
template <bool LOADS> __device__ __forceinline__ void tile(const void* map, int* s, u64* bar, int bytes) {
    if (LOADS) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(bar)), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {0, 0}], [%2];" :: "r"(at(s)), "l"(map), "r"(at(bar)) : "memory");
        int done = 0;
        while (!done)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(at(bar)) : "memory");
    } else {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {0, 0}], [%1];" :: "l"(map), "r"(at(s)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
template <bool LOADS> __device__ void copies(const void* map, int* f, int bytes, int space, int word, int waits) {
    __shared__ alignas(1024) int s[256];
    __shared__ u64 bar;
    for (int i = T; i < 256; i += 64) s[i] = 1000 + i;
    if (T == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(&bar)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (T == 0) tile<LOADS>(map, s, &bar, bytes);
    if (waits) __syncthreads();
    if (T == 32 && word >= 0) (space ? f : s)[word] = 7;
}
extern "C" __global__ void loads(const __grid_constant__ Map map, int* f, int bytes, int space, int word, int waits) { copies<true>(&map, f, bytes, space, word, waits); }
extern "C" __global__ void stores(const __grid_constant__ Map map, int* f, int bytes, int space, int word, int waits) { copies<false>(&map, f, bytes, space, word, waits); }
// The map is copied to local memory, and to shared memory.
extern "C" __global__ void local_copy(const Map map, int* f, int bytes, int space, int word, int waits) { copies<true>(&map, f, bytes, space, word, waits); }
extern "C" __global__ void shared_copy(const __grid_constant__ Map map, int* f, int bytes, int space, int word, int waits) {
    __shared__ Map own;
    if (T < 32) ((int*)&own)[T] = ((const int*)&map)[T];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    copies<true>(&own, f, bytes, space, word, waits);
}
"#;

fn gpus() -> [Gpu; 2] {
    let machine = compile(SOURCE, &["-cubin", "-gencode", "arch=compute_90a,code=sm_90a"], &[]);
    [Gpu::from_ptx(&ptx(SOURCE, "compute_90a", &[])), Gpu::from_cubin(machine)]
}

/// Rows of so many words in memory of eight words each, and boxes of so many by four.
fn map(address: u64, row: u64, width: u32, swizzle: u32) -> TensorMap {
    let tile = Tile { extent: [width, 4, 1, 1, 1], step: [1; 5] };
    let tensor = Tensor { address, element: 4, sizes: [row, 4, 1, 1, 1], strides: [32, 0, 0, 0], tile: Some(tile) };
    TensorMap { tensor, tile, image: None, kind: 3, rank: 2, swizzle }
}

/// What is touched, the copy, the box, and the word.
struct Touch {
    kernel: &'static str,
    row: u64,
    width: u32,
    swizzle: u32,
    space: i32,
    word: i32,
    races: bool,
}

const fn touch(kernel: &'static str, shape: (u64, u32, u32), touched: (i32, i32), races: bool) -> Touch {
    let ((row, width, swizzle), (space, word)) = (shape, touched);
    Touch { kernel, row, width, swizzle, space, word, races }
}

const TOUCHES: &[Touch] = &[
    // Rows of 16 bytes begin at multiples of 64: the first, what is between, the second.
    touch("stores", (8, 4, 64), (0, 3), true),
    touch("stores", (8, 4, 64), (0, 4), false),
    touch("stores", (8, 4, 64), (0, 15), false),
    touch("stores", (8, 4, 64), (0, 16), true),
    touch("loads", (8, 4, 64), (0, 8), false),
    touch("loads", (8, 4, 64), (0, 16), true),
    // Without a swizzle they follow each other.
    touch("stores", (8, 4, 0), (0, 4), true),
    touch("stores", (8, 4, 0), (0, 16), false),
    // A row of six words ends within a unit: its store has all of it, its load has not.
    touch("stores", (6, 8, 0), (1, 5), true),
    touch("stores", (6, 8, 0), (1, 7), true),
    touch("loads", (6, 8, 0), (1, 5), true),
    touch("loads", (6, 8, 0), (1, 7), false),
    // A row of four: nothing of the next unit is stored.
    touch("stores", (4, 8, 0), (1, 3), true),
    touch("stores", (4, 8, 0), (1, 4), false),
];

#[test]
fn what_lies_between_and_behind_rows_may_be_touched() {
    for gpu in gpus() {
        for (n, case) in TOUCHES.iter().enumerate() {
            for waits in [0, 1] {
                let detector = gpu.detect();
                let memory = gpu.zeros::<i32>(32);
                let bytes = Arg::from(4 * 4 * case.width as i32);
                let map = Arg::Bytes(map(memory.address, case.row, case.width, case.swizzle).encode().to_vec());
                let shape = Launch { grid: [1; 3], block: [64, 1, 1], bulk: BulkTiming::Late, ..Launch::default() };
                let args = [map, (&memory).into(), bytes, case.space.into(), case.word.into(), waits.into()];
                gpu.launch_with(case.kernel, shape, &args);
                let found: Vec<_> = detector.races().iter().map(|race| race.grade).collect();
                let want: &[Grade] = if case.races && waits == 0 { &[Grade::Certain] } else { &[] };
                assert_eq!(found, want, "{n}, waits {waits}, machine code {}", gpu.is_machine());
            }
        }
    }
}

#[test]
fn the_last_unit_of_a_row_is_stored_whole() {
    for gpu in gpus() {
        for (row, width, swizzle) in [(6, 8, 0), (5, 8, 32), (8, 4, 128), (2, 4, 32), (4, 8, 64)] {
            // The last row's unit reaches behind an allocation that ends with the tensor.
            let words = 24 + row as usize;
            let memory = gpu.zeros::<i32>(words);
            let map = Arg::Bytes(map(memory.address, row, width, swizzle).encode().to_vec());
            let shape = Launch { grid: [1; 3], block: [64, 1, 1], ..Launch::default() };
            gpu.launch_with("stores", shape, &[map, (&memory).into(), 0.into(), 0.into(), (-1).into(), 1.into()]);
            let pitch = if swizzle == 0 { width as usize } else { swizzle as usize / 4 };
            let units = swizzle as usize / 16;
            for (at, got) in memory.read::<i32>().into_iter().enumerate() {
                let (y, x) = (at / 8, at % 8);
                let place = y * pitch + x;
                let place = place ^ (((place / 32) & units.saturating_sub(1)) * 4);
                let stored = x < (width as usize).min(row.next_multiple_of(4) as usize);
                assert_eq!(got, if stored { 1000 + place as i32 } else { 0 }, "{row} {width} {swizzle}: {x} {y}");
            }
        }
    }
}

#[test]
fn a_map_in_local_or_shared_memory_is_an_illegal_address() {
    for gpu in gpus() {
        let memory = gpu.zeros::<i32>(32);
        let args = || {
            let map = Arg::Bytes(map(memory.address, 8, 8, 0).encode().to_vec());
            [map, (&memory).into(), 128.into(), 0.into(), (-1).into(), 1.into()]
        };
        let shape = || Launch { grid: [1; 3], block: [64, 1, 1], ..Launch::default() };
        gpu.launch_with("loads", shape(), &args());
        for (kernel, why) in [("local_copy", "__grid_constant__"), ("shared_copy", "in shared memory")] {
            let fault = gpu.try_launch(kernel, shape(), &args()).unwrap_err();
            let says = fault.to_string();
            assert!(matches!(fault.kind, FaultKind::MapPlace(_)) && says.contains(why), "{says}");
        }
    }
}
