//! Asynchronous copies whose source is overwritten, or whose target another copy of the thread
//! fills or threads read, in CUDA C++ as PTX and as machine code: racy and mended.

use sim_races::{Grade, Race};
use streamsan_sim::interp::Launch;

use crate::interp_support::{Arg, Gpu};

/// The parameter says whether the kernel is mended.
const SOURCE: &str = r#"
#include <cuda_pipeline.h>
#define T (int)threadIdx.x
#define N (int)blockDim.x
// Each thread writes what it copies.
template <bool M> __device__ void own(int* d) {
    __shared__ int s[64];
    __pipeline_memcpy_async(&s[T], &d[T], 4);
    __pipeline_commit();
    if (M) __pipeline_wait_prior(0);
    d[T] = T;
    __pipeline_wait_prior(0);
    d[N + T] = s[T];
}
// Another thread writes it, behind a barrier.
template <bool M> __device__ void other(int* d) {
    __shared__ int s[64];
    __pipeline_memcpy_async(&s[T], &d[T], 4);
    __pipeline_commit();
    if (M) __pipeline_wait_prior(0);
    __syncthreads();
    d[N - 1 - T] = T;
    __pipeline_wait_prior(0);
    d[N + T] = s[T];
}
// Two stages: the first one's source is free, the second one's is not.
template <bool M> __device__ void stages(int* d) {
    __shared__ int s[2][64];
    for (int i = 0; i < 2; i++) {
        __pipeline_memcpy_async(&s[i][T], &d[i * N + T], 4);
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    d[(M ? 0 : N) + T] = s[0][T];
    __pipeline_wait_prior(0);
    d[2 * N + T] = s[1][T];
}
// The stages of a loop, as pipelines have them.
template <bool M> __device__ void loop(int* d) {
    __shared__ int s[2][64];
    __pipeline_memcpy_async(&s[0][T], &d[T], 4);
    __pipeline_commit();
    for (int i = 0; i < 4; i++) {
        if (i + 1 < 4) __pipeline_memcpy_async(&s[i + 1 & 1][T], &d[(i + 1) * N + T], 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        d[(M ? i : i + 1) * N + T] = s[i & 1][T] + 1;
    }
}
// Of four words, the copy reads three and fills one: what it fills may be overwritten.
template <bool M> __device__ void filled(int* d) {
    __shared__ int s[64][4];
    __pipeline_memcpy_async(&s[T], &d[4 * T], 16, 4);
    __pipeline_commit();
    d[4 * T + (M ? 3 : 2)] = T;
    __pipeline_wait_prior(0);
    d[4 * N + T] = s[T][0] + s[T][3];
}
// The length differs from thread to thread: the last one reads nothing.
template <bool M> __device__ void tail(int* d) {
    __shared__ int s[64];
    bool in = T < N - 1;
    __pipeline_memcpy_async(&s[T], &d[T], 4, in ? 0 : 4);
    __pipeline_commit();
    if (T == 0) d[M ? N - 1 : 0] = 1;
    __pipeline_wait_prior(0);
    d[N + T] = s[T];
}
// The stage is filled again; its first contents are read, or not, by a thread that has waited.
template <bool M> __device__ void refilled(int* d) {
    __shared__ int s[64];
    __pipeline_memcpy_async(&s[T], &d[T], 4);
    __pipeline_commit();
    if (M) __pipeline_wait_prior(0);
    __pipeline_memcpy_async(&s[T], &d[N + T], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    d[2 * N + T] = s[T];
}
// Both copies are of one group.
template <bool M> __device__ void doubled(int* d) {
    __shared__ int s[128];
    __pipeline_memcpy_async(&s[T], &d[T], 4);
    __pipeline_memcpy_async(&s[T + (M ? N : 0)], &d[N + T], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    d[2 * N + T] = s[T];
}
// Four buffers, and five copies before the first wait: the fifth one's target is read. All threads
// have read a buffer behind the barrier of the round after.
template <bool M> __device__ void ring(int* d) {
    __shared__ int s[4][64];
    for (int i = 0, next = 0; i < 8; i++) {
        for (; next < 8 && next < (M ? i + 3 : i + 5); next++) {
            __pipeline_memcpy_async(&s[next & 3][T], &d[next * N + T], 4);
            __pipeline_commit();
        }
        __pipeline_wait_prior(next - 1 - i);
        __syncthreads();
        d[(8 + i) * N + T] = s[i & 3][N - 1 - T];
    }
}
#define BOTH(name) \
    extern "C" __global__ void name##_racy(int* d) { name<false>(d); } \
    extern "C" __global__ void name##_mended(int* d) { name<true>(d); }
BOTH(own) BOTH(other) BOTH(stages) BOTH(loop) BOTH(filled) BOTH(tail)
BOTH(refilled) BOTH(doubled) BOTH(ring)
"#;

fn races(gpu: &Gpu, name: &str) -> Vec<Race> {
    let detector = gpu.detect();
    let data = gpu.buffer(&(0..1024).map(|at| at * 3 + 7).collect::<Vec<i32>>());
    let args: [Arg; 1] = [(&data).into()];
    gpu.launch_with(name, Launch { grid: [1, 1, 1], block: [64, 1, 1], ..Launch::default() }, &args);
    detector.races()
}

#[test]
fn sources_are_overwritten_behind_the_wait_only() {
    for gpu in Gpu::both(SOURCE) {
        for name in ["own", "other", "stages", "loop", "filled", "tail", "ring"] {
            let found = races(&gpu, &format!("{name}_racy"));
            let copies = |race: &&Race| race.sides.iter().any(|side| side.asynchronous);
            let surest = found.iter().find(copies).map(|race| race.grade);
            assert_eq!(surest, Some(Grade::Certain), "{name}: {found:?}");
            assert_eq!(races(&gpu, &format!("{name}_mended")), [], "{name}");
        }
    }
}

#[test]
fn a_stage_is_filled_again_behind_the_wait_only() {
    for gpu in Gpu::both(SOURCE) {
        for (name, grade) in [("refilled", Grade::Possible), ("doubled", Grade::Likely)] {
            let found = races(&gpu, &format!("{name}_racy"));
            let copies = |race: &Race| race.sides.iter().all(|side| side.asynchronous);
            assert!(
                !found.is_empty() && found.iter().all(|race| copies(race) && race.grade == grade),
                "{name}: {found:?}"
            );
            assert_eq!(races(&gpu, &format!("{name}_mended")), [], "{name}");
        }
    }
}
