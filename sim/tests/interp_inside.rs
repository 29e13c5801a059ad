//! Races inside kernels, end to end: CUDA C++ as PTX and as machine code, executed with a detector.
//! Each kernel is a template with a racy and a mended form.

use sim_races::{Grade, Inexact, Race};
use streamsan_sim::interp::Launch;

use crate::interp_support::{Arg, Gpu};

/// The parameter says whether the kernel is mended.
const SOURCE: &str = r#"
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#define T (int)threadIdx.x
#define N (int)blockDim.x
#define B (int)blockIdx.x
#define G (B * N + T)
typedef volatile int vint;
__device__ __forceinline__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Threads exchange values through shared memory.
template <bool M> __device__ void exchange(int* d, int* f) {
    __shared__ int s[256];
    s[T] = d[G];
    if (M) __syncthreads(); // between
    d[G] = s[N - 1 - T]; // behind
}
// And write what was read.
template <bool M> __device__ void reuse(int* d, int* f) {
    __shared__ int s[256];
    for (int i = 0; i < 3; i++) {
        s[T] = d[G] + i;
        __syncthreads();
        d[G] += s[N - 1 - T];
        if (M) __syncthreads();
    }
}
// Two buffers need one barrier in each step.
template <bool M> __device__ void double_buffer(int* d, int* f) {
    __shared__ int s[2][256];
    for (int i = 0; i < 4; i++) {
        s[M ? i & 1 : 0][T] = d[G] + i;
        __syncthreads();
        d[G] += s[M ? i & 1 : 0][N - 1 - T];
    }
}
template <bool M> __device__ void tree(int* d, int* f) {
    __shared__ int s[256];
    s[T] = d[G];
    __syncthreads();
    for (int o = N / 2; o; o /= 2) {
        if (T < o) s[T] += s[T + o];
        if (M) __syncthreads();
    }
    if (T == 0) d[B * N] = s[0];
}
// The last warp of a tree without barriers, as it was written before Volta.
template <bool M> __device__ void last_warp(int* d, int* f) {
    __shared__ int s[64];
    if (T < 32) {
        s[T] = d[G]; s[T + 32] = 0;
        for (int o = 16; o; o /= 2) {
            if (M) __syncwarp(); else asm volatile("" ::: "memory");
            int v = s[T + o];
            if (M) __syncwarp(); else asm volatile("" ::: "memory");
            s[T] += v;
        }
        d[G] = s[T];
    }
}
// The same with volatile accesses: by the model they do not race, and only lockstep orders them.
template <bool M> __device__ void last_warp_volatile(int* d, int* f) {
    __shared__ vint s[64];
    s[T] = d[G]; s[T + 32] = 0;
    if (M) __syncwarp();
    for (int o = 16; o; o /= 2) {
        int v = s[T + o];
        if (M) __syncwarp();
        s[T] += v;
        if (M) __syncwarp();
    }
    d[G] = s[T];
}
// Lanes on different paths.
template <bool M> __device__ void apart(int* d, int* f) {
    __shared__ int s[32];
    if (T < 16) s[T] = d[T];
    if (M) __syncwarp();
    if (T >= 16) d[T] = s[T - 16];
}
template <bool M> __device__ void histogram(int* d, int* f) {
    __shared__ int s[8];
    if (T < 8) s[T] = 0;
    __syncthreads();
    if (M) atomicAdd(&s[d[G] & 7], 1); else s[d[G] & 7]++;
    __syncthreads();
    if (T < 8) atomicAdd(&f[T], s[T]);
}
template <bool M> __device__ void counter(int* d, int* f) {
    if (M) atomicAdd(f, 1); else f[0]++;
}
template <bool M> __device__ void block_scope(int* d, int* f) {
    if (M) atomicAdd(f, 1); else atomicAdd_block(f, 1);
}
// What one block writes its neighbour reads.
template <bool M> __device__ void stencil(int* d, int* f) {
    int sum = d[G] + d[G + 1];
    (M ? f : d)[G] = sum;
}
template <bool M> __device__ void bytes(int* d, int* f) {
    unsigned char* c = (unsigned char*)d;
    if (M) c[G] = G; else if (G % 2 == 0) *(unsigned short*)(c + (G & ~3)) = G;
    if (!M && G % 4 == 1) c[G] = 1;
}
// A block hands data to another through a flag.
template <bool M> __device__ void flag(int* d, int* f) {
    if (B == 0) {
        d[T] = T;
        __syncthreads();
        if (M) __threadfence();
        if (T == 0) atomicExch(f, 1);
    } else {
        if (T == 0) while (atomicAdd(f, 0) == 0) __nanosleep(20);
        __threadfence();
        __syncthreads();
        d[N + T] = d[N - 1 - T];
    }
}
template <bool M> __device__ void flag_reader(int* d, int* f) {
    if (B == 0) {
        d[T] = T;
        __threadfence();
        __syncthreads();
        if (T == 0) *(vint*)f = 1;
    } else {
        if (T == 0) { while (*(vint*)f == 0) __nanosleep(20); if (M) __threadfence(); }
        __syncthreads();
        d[N + T] = d[N - 1 - T];
    }
}
template <bool M> __device__ void release_acquire(int* d, int* f) {
    if (B == 0) {
        d[T] = T;
        __syncthreads();
        if (T == 0) {
            if (M) asm volatile("st.release.gpu.global.u32 [%0], 1;" :: "l"(f) : "memory");
            else asm volatile("st.release.cta.global.u32 [%0], 1;" :: "l"(f) : "memory");
        }
    } else {
        if (T == 0) { int v; do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(f) : "memory"); while (!v); }
        __syncthreads();
        d[N + T] = d[N - 1 - T];
    }
}
template <bool M> __device__ void plain_flag(int* d, int* f) {
    if (B == 0) { if (T == 0) { if (M) atomicExch(f, 1); else f[0] = 1; } }
    else if (T == 0) while (atomicAdd(f, 0) == 0) __nanosleep(20);
}
// The block that comes last adds up what all have written.
template <bool M> __device__ void last_block(int* d, int* f) {
    __shared__ bool last;
    d[G] = G;
    if (M) __threadfence();
    __syncthreads();
    if (T == 0) last = atomicAdd(f, 1) == (int)gridDim.x - 1;
    __syncthreads();
    if (last) {
        if (M) __threadfence();
        int sum = 0;
        for (int i = T; i < N * (int)gridDim.x; i += N) sum += ((vint*)d)[i];
        f[1 + T] = sum;
    }
}
template <bool M> __device__ void lock(int* d, int* f) {
    if (T == 0) {
        while (atomicCAS(f, 0, 1) != 0) __nanosleep(20);
        if (M) __threadfence();
        d[0] += B;
        if (M) __threadfence();
        atomicExch(f, 0);
    }
}
// Each block waits for the one before it.
template <bool M> __device__ void chain(int* d, int* f) {
    if (T == 0) {
        if (B > 0) while (atomicAdd(&f[B - 1], 0) == 0) __nanosleep(20);
        if (M) __threadfence();
        d[B + 1] = d[B] + 1;
        __threadfence();
        atomicExch(&f[B], 1);
    }
}
template <bool M> __device__ void grid_sync(int* d, int* f) {
    d[G] = G;
    if (M) cooperative_groups::this_grid().sync();
    f[G] = d[gridDim.x * N - 1 - G];
}
template <bool M> __device__ void async_copy(int* d, int* f) {
    __shared__ int s[2][256];
    __pipeline_memcpy_async(&s[0][T], &d[G], 4);
    __pipeline_commit();
    __pipeline_memcpy_async(&s[1][T], &d[N + G], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    int sum = s[0][T];
    __pipeline_wait_prior(M ? 0 : 1);
    f[G] = sum + s[1][T];
}
template <bool M> __device__ void async_copy_shared(int* d, int* f) {
    __shared__ int s[256];
    __pipeline_memcpy_async(&s[T], &d[G], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    if (M) __syncthreads();
    f[G] = s[N - 1 - T];
}
// Half of the threads produce, half consume.
template <bool M> __device__ void named(int* d, int* f) {
    __shared__ int s[64];
    if (T < 64) {
        s[T] = d[G];
        if (M) asm volatile("bar.arrive 1, 128;" ::: "memory"); else asm volatile("bar.arrive 2, 128;" ::: "memory");
    } else {
        if (M) asm volatile("bar.sync 1, 128;" ::: "memory"); else asm volatile("bar.sync 1, 64;" ::: "memory");
        f[G] = s[T - 64];
    }
}
template <bool M> __device__ void early(int* d, int* f) {
    __shared__ int s[256];
    s[T] = d[G];
    if (T >= N - 5) return;
    if (M) __syncthreads();
    d[G] = s[N - 1 - T];
}
template <bool M> __device__ void object(int* d, int* f) {
    __shared__ __align__(8) unsigned long long bar;
    __shared__ int s[256];
    if (T == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at(&bar)), "r"(N) : "memory");
    __syncthreads();
    s[T] = d[G];
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at(&bar)) : "memory");
    if (M) { int done = 0; while (!done) asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at(&bar)), "l"(state) : "memory"); }
    f[G] = s[N - 1 - T];
}
template <bool M> __device__ void matrix(int* d, int* f) {
    __shared__ __align__(16) int s[128];
    s[T] = d[G];
    if (M) __syncthreads();
    int r0, r1;
    if (T < 32) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(at(&s[(T & 15) * 4 + 64])) : "memory");
        f[G] = r0 + r1;
    }
}
// All raise one flag.
template <bool M> __device__ void raise(int* d, int* f) {
    if (M) atomicExch(f, 1); else f[0] = 1;
}

// What must stay silent in every form.
template <bool M> __device__ void votes(int* d, int* f) {
    __shared__ int s[256];
    s[T] = d[G];
    int n = __syncthreads_count(s[T] & 1);
    d[G] = s[N - 1 - T] + n;
    if (__syncthreads_or(n)) s[T] = 1;
    int sum = 0;
    for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, n, o);
    if (__ballot_sync(~0u, sum) == 1) s[0] = 3;
}
template <bool M> __device__ void vectors(int* d, int* f) {
    __shared__ int4 s[64];
    if (T < 64) s[T] = ((int4*)d)[T];
    __syncthreads();
    int v = ((int*)s)[T] + ((short*)s)[T] + ((char*)s)[T];
    __syncthreads();
    if (T < 128) ((int2*)s)[T] = make_int2(v, v);
}
template <bool M> __device__ void transpose(int* d, int* f) {
    __shared__ int s[16][17];
    int x = T % 16, y = T / 16;
    s[y][x] = d[G];
    __syncthreads();
    f[B * N + x * 16 + y] = s[y][x] + s[x][y];
}
template <bool M> __device__ void tables(int* d, int* f) {
    int sum = 0;
    for (int i = 0; i < 32; i++) sum += d[i] + d[(T + i) & 63];
    f[G] = sum;
}
template <bool M> __device__ void warps(int* d, int* f) {
    __shared__ int s[8][32];
    int w = T / 32, l = T % 32;
    for (int i = 0; i < 3; i++) {
        s[w][l] = d[G] + i;
        __syncwarp();
        d[G] += s[w][31 - l];
        __syncwarp();
    }
}
template <bool M> __device__ void claims(int* d, int* f) {
    __shared__ int next;
    if (T == 0) next = 0;
    __syncthreads();
    for (;;) {
        int mine = atomicAdd(&next, 1);
        if (mine >= 300) break;
        d[B * 300 + mine] = mine;
    }
}

#define BOTH(name) \
    extern "C" __global__ void name##_racy(int* d, int* f) { name<false>(d, f); } \
    extern "C" __global__ void name##_mended(int* d, int* f) { name<true>(d, f); }
BOTH(exchange) BOTH(reuse) BOTH(double_buffer) BOTH(tree) BOTH(last_warp) BOTH(apart) BOTH(histogram) BOTH(counter)
BOTH(block_scope) BOTH(stencil) BOTH(bytes) BOTH(flag) BOTH(flag_reader) BOTH(release_acquire) BOTH(plain_flag)
BOTH(last_block) BOTH(lock) BOTH(chain) BOTH(grid_sync) BOTH(async_copy) BOTH(async_copy_shared) BOTH(named)
BOTH(early) BOTH(object) BOTH(matrix) BOTH(raise)
BOTH(votes) BOTH(vectors) BOTH(transpose) BOTH(tables) BOTH(last_warp_volatile) BOTH(warps) BOTH(claims)
"#;

use Grade::{Benign, Certain, Likely, Possible};

/// A kernel: its blocks, its threads, and the grade of the surest race of its racy form as PTX and
/// as machine code.
type Case = (&'static str, u32, u32, Option<Grade>, Option<Grade>);

const fn both(name: &'static str, blocks: u32, threads: u32, grade: Grade) -> Case {
    (name, blocks, threads, Some(grade), Some(grade))
}

/// Machine code has no barrier of a warp that is together, so that lockstep has to count there.
const CASES: [Case; 27] = [
    both("exchange", 2, 64, Certain),
    both("reuse", 2, 64, Certain),
    both("double_buffer", 2, 64, Certain),
    both("tree", 2, 128, Certain),
    ("last_warp", 2, 32, Some(Possible), None),
    ("last_warp_volatile", 1, 32, Some(Possible), None),
    ("apart", 1, 32, Some(Certain), None),
    both("histogram", 2, 64, Certain),
    both("counter", 4, 32, Certain),
    both("block_scope", 4, 32, Certain),
    both("stencil", 4, 64, Certain),
    both("bytes", 2, 64, Certain),
    both("flag", 2, 64, Certain),
    both("flag_reader", 2, 64, Certain),
    both("release_acquire", 2, 64, Certain),
    both("plain_flag", 2, 64, Certain),
    // Volatile is no word of machine code.
    ("last_block", 4, 64, Some(Likely), Some(Certain)),
    both("lock", 4, 32, Certain),
    both("chain", 5, 32, Certain),
    both("grid_sync", 4, 64, Certain),
    both("async_copy", 1, 64, Certain),
    both("async_copy_shared", 1, 64, Certain),
    both("named", 2, 128, Certain),
    both("early", 2, 64, Certain),
    both("object", 1, 64, Certain),
    both("matrix", 2, 128, Certain),
    both("raise", 2, 64, Benign),
];

/// Where threads spin, the schedule says which instructions are executed.
const SPINNING: [&str; 6] = ["flag", "flag_reader", "release_acquire", "plain_flag", "lock", "chain"];

const SILENT: [(&str, u32, u32); 6] = [
    ("votes", 2, 64),
    ("vectors", 2, 256),
    ("transpose", 2, 256),
    ("tables", 9, 256),
    ("warps", 2, 64),
    ("claims", 2, 64),
];

fn run(gpu: &Gpu, name: &str, blocks: u32, threads: u32, schedule: u64) -> (Vec<Race>, Inexact) {
    let detector = gpu.detect();
    let (data, flags) = (gpu.buffer(&(0..4096).map(|at| at * 7 + 13).collect::<Vec<i32>>()), gpu.zeros::<i32>(4096));
    let launch = Launch {
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        cooperative: name.starts_with("grid_sync"),
        schedule,
        ..Launch::default()
    };
    let args: [Arg; 2] = [(&data).into(), (&flags).into()];
    gpu.launch_with(name, launch, &args);
    (detector.races(), detector.inexact())
}

fn verdicts(gpu: &Gpu, machine: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, blocks, threads, ptx, code) in CASES {
        let want = if machine { code } else { ptx };
        let mut verdict = None;
        for schedule in 0..16 {
            let (races, _) = run(gpu, &format!("{name}_racy"), blocks, threads, schedule);
            let got = races.first().map(|race| race.grade);
            if got != want {
                wrong.push(format!("{name}_racy, schedule {schedule}: {got:?}, not {want:?}: {races:?}"));
            }
            // The pairs of instructions do not hang on the schedule.
            let mut pairs: Vec<_> =
                races.iter().map(|race| (race.sides.map(|side| (side.site, side.kind)), race.grade)).collect();
            pairs.sort_unstable();
            let first = verdict.get_or_insert_with(|| pairs.clone());
            if *first != pairs && !SPINNING.contains(&name) {
                wrong.push(format!("{name}_racy, schedule {schedule}: {pairs:?}, in order {first:?}"));
            }
            let (races, inexact) = run(gpu, &format!("{name}_mended"), blocks, threads, schedule);
            if !races.is_empty() || inexact.widened != 0 {
                wrong.push(format!("{name}_mended, schedule {schedule}: {races:?} {inexact:?}"));
            }
        }
    }
    for (name, blocks, threads) in SILENT {
        for schedule in 0..16 {
            for form in ["racy", "mended"] {
                let (races, inexact) = run(gpu, &format!("{name}_{form}"), blocks, threads, schedule);
                if !races.is_empty() || inexact.widened != 0 {
                    wrong.push(format!("{name}_{form}, schedule {schedule}: {races:?} {inexact:?}"));
                }
            }
        }
    }
    wrong
}

#[test]
fn twins_of_ptx() {
    let wrong = verdicts(&Gpu::new(SOURCE), false);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn twins_of_machine_code() {
    let wrong = verdicts(&Gpu::machine(SOURCE, &[]), true);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn both_sides_have_their_lines() {
    let line = |marker: &str| SOURCE.lines().position(|line| line.ends_with(marker)).unwrap() as u32 + 1;
    for gpu in Gpu::both(SOURCE) {
        let (races, _) = run(&gpu, "exchange_racy", 1, 256, 0);
        let (program, _) = gpu.kernels().into_iter().find(|(_, kernel)| kernel.name() == "exchange_racy").unwrap();
        let lines = races[0].sides.map(|side| program.source(side.site).unwrap().1);
        assert_eq!(lines, [line("// between") - 1, line("// behind")]);
        let threads = races[0].sides.map(|side| side.thread.unwrap());
        assert!(threads[0] != threads[1] && threads[0] + threads[1] == 255);
    }
}
