//! Flags in shared memory, in CUDA C++ as PTX and as machine code, where nothing says that they are
//! flags: racy and mended.

use sim_races::{Grade, Race};
use streamsan_sim::interp::Launch;

use crate::interp_support::{Arg, Gpu};

/// The parameters say whether the writer's fence is there, and whether the writer's warp runs
/// first.
const SOURCE: &str = r#"
#include <cuda/atomic>
#define T (int)threadIdx.x
#define V(x) (*(volatile int*)&(x))
#define PREPARE __shared__ int s[128], x[128]; s[T] = 0; x[T] = T; __syncthreads();
#define WRITES(first) (T == (first ? 0 : 64))
#define READS(first) (T == (first ? 64 : 0))
template <bool M, bool F> __device__ void polled(int* d) {
    PREPARE
    if (WRITES(F)) { x[1] = d[0]; if (M) __threadfence_block(); V(s[1]) = 1; }
    if (READS(F)) { while (!V(s[1])) ; __threadfence_block(); d[1] = x[1]; }
}
template <bool M, bool F> __device__ void slept(int* d) {
    PREPARE
    if (WRITES(F)) { x[1] = d[0]; if (M) __threadfence(); V(s[d[2] & 7]) = 1; }
    if (READS(F)) { while (V(s[d[2] & 7]) != 1) __nanosleep(20); __threadfence(); d[1] = x[1]; }
}
template <bool M, bool F> __device__ void released(int* d) {
    PREPARE
    cuda::atomic_ref<int, cuda::thread_scope_block> flag(s[1]);
    if (WRITES(F)) { x[1] = d[0]; flag.store(1, M ? cuda::memory_order_release : cuda::memory_order_relaxed); }
    if (READS(F)) { while (!flag.load(cuda::memory_order_acquire)) ; d[1] = x[1]; }
}
// Two flags, there and back.
template <bool M, bool F> __device__ void answered(int* d) {
    PREPARE
    if (WRITES(F)) {
        x[1] = d[0]; __threadfence_block(); V(s[1]) = 1;
        while (!V(s[2])) ;
        __threadfence_block();
        d[1] = x[2];
    }
    if (READS(F)) {
        while (!V(s[1])) ;
        __threadfence_block();
        x[2] = x[1] + 1; if (M) __threadfence_block(); V(s[2]) = 1;
    }
}
// No flag, but data that a loop reads again and again, without a barrier or with one.
template <bool M, bool F> __device__ void reread(int* d) {
    PREPARE
    if (WRITES(F)) x[1] = d[0];
    if (M) __syncthreads();
    if (READS(F)) { int sum = 0; for (int i = 0; i < d[3]; i++) sum += x[1] * d[i]; d[1] = sum; }
}
// A word that is looked at behind a barrier in each turn.
template <bool M, bool F> __device__ void turns(int* d) {
    PREPARE
    for (;;) {
        if (WRITES(F)) s[1]++;
        __syncthreads();
        if (s[1] >= 5) break;
        if (M) __syncthreads();
    }
    d[T] = s[1];
}
#define BOTH(name) \
    extern "C" __global__ void name##_racy(int* d) { name<false, true>(d); } \
    extern "C" __global__ void name##_racy_late(int* d) { name<false, false>(d); } \
    extern "C" __global__ void name##_mended(int* d) { name<true, true>(d); } \
    extern "C" __global__ void name##_mended_late(int* d) { name<true, false>(d); }
BOTH(polled) BOTH(slept) BOTH(released) BOTH(answered) BOTH(reread) BOTH(turns)
"#;

fn races(gpu: &Gpu, name: &str) -> Vec<Race> {
    let detector = gpu.detect();
    let data = gpu.buffer(&(0..128).map(|at| at * 3 + 7).collect::<Vec<i32>>());
    let args: [Arg; 1] = [(&data).into()];
    gpu.launch_with(name, Launch { grid: [1, 1, 1], block: [128, 1, 1], ..Launch::default() }, &args);
    detector.races()
}

#[test]
fn flags_in_shared_memory_order_what_fences_release() {
    for gpu in Gpu::both(SOURCE) {
        for name in ["polled", "slept", "released", "answered", "reread", "turns"] {
            for late in ["", "_late"] {
                let found = races(&gpu, &format!("{name}_racy{late}"));
                let surest = found.first().map(|race| race.grade);
                assert_eq!(surest, Some(Grade::Certain), "{name}{late}: {found:?}");
                let machine = gpu.is_machine();
                // Of a loop whose first turn stands apart, that turn's load may be `possible`.
                let mended = races(&gpu, &format!("{name}_mended{late}"));
                let silent = mended.iter().all(|race| race.grade <= Grade::Possible);
                assert!(silent, "{name}{late}, machine: {machine}: {mended:?}");
            }
        }
    }
}
