//! Tests of whole kernels: loops, guards, shared memory, barriers, warps, calls, printf.

use crate::interp_support::{Arg, Gpu};
use streamsan_sim::interp::Launch;

#[test]
fn saxpy_with_guard() {
    let gpu = Gpu::new(
        "__global__ void saxpy(int n, float a, const float* x, float* y) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }",
    );
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let (dx, dy) = (gpu.buffer(&x), gpu.buffer(&vec![1f32; 1000]));
    gpu.launch("saxpy", 8, 128, &[1000i32.into(), 2f32.into(), (&dx).into(), (&dy).into()]);
    let want: Vec<f32> = x.iter().map(|x| 2.0 * x + 1.0).collect();
    assert_eq!(dy.read::<f32>(), want);
}

#[test]
fn loops_and_atomics() {
    let gpu = Gpu::new(
        "__global__ void sum(const int* x, int n, int* out, unsigned long long* big) {
             int s = 0;
             for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i] * (i % 3);
             atomicAdd(out, s); atomicMax(out + 1, s); atomicMin(out + 2, s); atomicAdd(big, (unsigned long long)s);
         }",
    );
    let x: Vec<i32> = (0..5000).map(|i| i * 7 % 13 - 6).collect();
    let (dx, out, big) = (gpu.buffer(&x), gpu.zeros::<i32>(3), gpu.zeros::<u64>(1));
    gpu.launch("sum", 3, 100, &[(&dx).into(), 5000i32.into(), (&out).into(), (&big).into()]);
    let mut sums = vec![0i32; 300];
    x.iter().enumerate().for_each(|(i, x)| sums[i % 300] += x * (i as i32 % 3));
    let total: i32 = sums.iter().sum();
    assert_eq!(out.read::<i32>(), [total, (*sums.iter().max().unwrap()).max(0), (*sums.iter().min().unwrap()).min(0)]);
    assert_eq!(big.read::<u64>(), [total as i64 as u64]);
}

#[test]
fn block_reduction_with_shuffles_and_barriers() {
    let gpu = Gpu::new(
        "__global__ void reduce(const float* x, float* out, int n) {
             __shared__ float part[32];
             int i = blockIdx.x * blockDim.x + threadIdx.x;
             float v = i < n ? x[i] : 0.f;
             for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);
             if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
             __syncthreads();
             if (threadIdx.x < 32) {
                 v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.f;
                 for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
                 if (threadIdx.x == 0) out[blockIdx.x] = v;
             }
         }",
    );
    let x: Vec<f32> = (0..1000).map(|i| (i % 17) as f32).collect();
    let (dx, out) = (gpu.buffer(&x), gpu.zeros::<f32>(4));
    gpu.launch("reduce", 4, 256, &[(&dx).into(), (&out).into(), 1000i32.into()]);
    let want: Vec<f32> = x.chunks(256).map(|chunk| chunk.iter().sum()).collect();
    assert_eq!(out.read::<f32>(), want);
}

#[test]
fn tiled_matrix_product_and_dynamic_shared_memory() {
    let gpu = Gpu::new(
        "__global__ void matmul(const float* a, const float* b, float* c, int n) {
             __shared__ float ta[16][16]; extern __shared__ float tb[];
             int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x; float sum = 0;
             for (int t = 0; t < n; t += 16) {
                 ta[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
                 tb[threadIdx.y * 16 + threadIdx.x] = b[(t + threadIdx.y) * n + col];
                 __syncthreads();
                 for (int k = 0; k < 16; k++) sum += ta[threadIdx.y][k] * tb[k * 16 + threadIdx.x];
                 __syncthreads();
             }
             c[row * n + col] = sum;
         }",
    );
    let n = 48usize;
    let a: Vec<f32> = (0..n * n).map(|i| (i % 7) as f32).collect();
    let b: Vec<f32> = (0..n * n).map(|i| (i % 5) as f32 - 2.0).collect();
    let (da, db, dc) = (gpu.buffer(&a), gpu.buffer(&b), gpu.zeros::<f32>(n * n));
    let launch = Launch { grid: [3, 3, 1], block: [16, 16, 1], dynamic_shared: 1024, ..Launch::default() };
    gpu.launch_with("matmul", launch, &[(&da).into(), (&db).into(), (&dc).into(), (n as i32).into()]);
    let c = dc.read::<f32>();
    for i in 0..n {
        for j in 0..n {
            let want: f32 = (0..n).map(|k| a[i * n + k] * b[k * n + j]).sum();
            assert_eq!(c[i * n + j], want, "({i},{j})");
        }
    }
}

#[test]
fn printf_recursion_function_pointers_and_structs() {
    let gpu = Gpu::new(
        r#"#include <cstdio>
        __device__ __noinline__ int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }
        __device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
        typedef int (*F)(int);
        __device__ int inc(int x) { return x + 1; } __device__ int twice(int x) { return x * 2; }
        __device__ F table[2] = {inc, twice};
        struct P { float a[3]; int n; };
        __device__ __noinline__ P change(P p, int by) { p.n += by; p.a[by % 3] *= 2; return p; }
        __constant__ int offsets[4] = {10, 20, 30, 40};
        struct S { const char* s; int* p; }; __device__ int seven = 7; __device__ S global = {"text", &seven};
        __global__ void k(int* out, P p) {
            int i = threadIdx.x;
            P q = change(p, i);
            out[i] = fact(i % 8) + fib(i % 10) * 10000 + table[i & 1](i) * 100000000;
            out[32 + i] = q.n + (int)q.a[i % 3] * 1000 + offsets[i & 3] * 100000;
            if (i == 5) printf("%d|%5.2f|%s|%c|%lld|%x|%%|%-4d|%e\n", -i, 3.14159, global.s, 'z', 1LL << 40, 255u, *global.p, 12345.678);
        }"#,
    );
    let out = gpu.zeros::<i32>(64);
    let mut p = Vec::new();
    [1f32, 2.0, 3.0].iter().for_each(|v| p.extend(v.to_le_bytes()));
    p.extend(100i32.to_le_bytes());
    gpu.launch("k", 1, 32, &[(&out).into(), Arg::Bytes(p)]);
    fn fib(n: i32) -> i32 {
        if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
    }
    let got = out.read::<i32>();
    for i in 0..32i32 {
        let fact: i32 = (1..=i % 8).product();
        let called = if i & 1 == 0 { i + 1 } else { i * 2 };
        assert_eq!(
            got[i as usize],
            fact.wrapping_add(fib(i % 10) * 10000).wrapping_add(called.wrapping_mul(100000000)),
            "{i}"
        );
        let a = (i % 3 + 1) * 2;
        assert_eq!(got[32 + i as usize], 100 + i + a * 1000 + (i % 4 + 1) * 1000000, "{i}");
    }
    assert_eq!(gpu.printed(), "-5| 3.14|text|z|1099511627776|ff|%|7   |1.234568e+04\n");
}

#[test]
fn grid_barrier_of_cooperative_groups() {
    let gpu = Gpu::new(
        "#include <cooperative_groups.h>
         namespace cg = cooperative_groups;
         __global__ void rounds(int* a, int* b, int n) {
             cg::grid_group grid = cg::this_grid();
             int i = grid.thread_rank(), count = grid.size();
             for (int r = 0; r < 5; r++) {
                 b[(i + 77) % count] = a[i] + 1;
                 grid.sync();
                 a[i] = b[i];
                 grid.sync();
             }
         }",
    );
    let n = 64 * 13;
    let start: Vec<i32> = (0..n).collect();
    let (a, b) = (gpu.buffer(&start), gpu.zeros::<i32>(n as usize));
    let launch = Launch { grid: [13, 1, 1], block: [64, 1, 1], cooperative: true, ..Launch::default() };
    gpu.launch_with("rounds", launch, &[(&a).into(), (&b).into(), n.into()]);
    let want: Vec<i32> = (0..n).map(|i| (i - 77 * 5).rem_euclid(n) + 5).collect();
    assert_eq!(a.read::<i32>(), want);
}

#[test]
fn spin_locks_between_lanes_warps_and_blocks() {
    let gpu = Gpu::new(
        "__global__ void locked(int* lock, int* counter) {
             while (atomicCAS(lock, 0, 1) != 0) {}
             int v = *(volatile int*)counter; *(volatile int*)counter = v + 1;
             __threadfence();
             atomicExch(lock, 0);
         }
         __global__ void chain(volatile int* flags, int* out) {   // every block waits for the one after it
             if (threadIdx.x == 0) {
                 if (blockIdx.x + 1 < gridDim.x) while (flags[blockIdx.x + 1] == 0) {}
                 out[blockIdx.x] = blockIdx.x + 1 < gridDim.x ? out[blockIdx.x + 1] + 1 : 1;
                 __threadfence();
                 flags[blockIdx.x] = 1;
             }
         }
         __global__ void lanes(volatile int* flag, int* out) {    // lane 0 waits for lane 31 of its own warp
             if (threadIdx.x == 0) { while (*flag == 0) {} out[0] = 7; }
             else if (threadIdx.x == 31) { *flag = 1; }
             __syncthreads();
             out[threadIdx.x + 1] = out[0];
         }",
    );
    let (lock, counter) = (gpu.zeros::<i32>(1), gpu.zeros::<i32>(1));
    gpu.launch("locked", 4, 96, &[(&lock).into(), (&counter).into()]);
    assert_eq!(counter.read::<i32>(), [384]);
    let (flags, out) = (gpu.zeros::<i32>(20), gpu.zeros::<i32>(20));
    gpu.launch("chain", 20, 64, &[(&flags).into(), (&out).into()]);
    assert_eq!(out.read::<i32>(), (0..20).map(|i| 20 - i).collect::<Vec<i32>>());
    let (flag, out) = (gpu.zeros::<i32>(1), gpu.zeros::<i32>(33));
    gpu.launch("lanes", 1, 32, &[(&flag).into(), (&out).into()]);
    assert_eq!(out.read::<i32>(), [7; 33]);
}

/// Whoever spins gives way, asleep or not: lanes of a warp, warps and blocks, whichever is behind.
#[test]
fn lanes_that_sleep_in_a_spin_loop_let_the_others_run() {
    let gpu = Gpu::new(
        "__global__ void flags(volatile int* flag, int* out, int sleep) { // odd lanes wait for even ones
             int l = threadIdx.x;
             if (l & 1) { while (flag[l / 2] == 0) if (sleep) __nanosleep(20); out[l] = flag[l / 2]; }
             else { int v = 0; for (int i = 0; i < 50; ++i) v += i % (l + 2); out[l] = v; __threadfence(); flag[l / 2] = v; }
         }
         __global__ void locked(int* lock, volatile int* count, int sleep) {
             while (atomicCAS(lock, 0, 1) != 0) if (sleep) __nanosleep(32);
             *count = *count + 1;
             __threadfence();
             atomicExch(lock, 0);
         }
         __global__ void tried(int* lock, volatile int* count, int sleep) {
             for (bool done = false; !done;)
                 if (atomicCAS(lock, 0, 1) == 0) { *count = *count + 1; __threadfence(); atomicExch(lock, 0); done = true; }
                 else if (sleep) __nanosleep(threadIdx.x * 4);
         }
         __global__ void turns(volatile int* turn, int* out, int sleep) { // round and round a warp
             for (int round = 0; round < 4; ++round) {
                 int mine = round * 32 + threadIdx.x;
                 while (*turn != mine) if (sleep) __nanosleep(8);
                 out[mine] = mine; __threadfence(); *turn = mine + 1;
             }
         }
         __global__ void last_first(volatile int* turn, int* out, int sleep) { // block after block, backwards
             int mine = gridDim.x - 1 - blockIdx.x;
             if (threadIdx.x == 0) {
                 while (*turn != mine) if (sleep) __nanosleep(100);
                 out[mine] = mine; __threadfence(); *turn = mine + 1;
             }
             __syncthreads();
         }
         __global__ void forked(volatile int* flag, int* out) { // all but lane 0 spin, and diverge while they do
             int l = threadIdx.x, n = 0;
             if (l) while (flag[0] == 0) {
                 if (n++ % 3 == l % 3) { if (flag[l] == 7) out[0] = 9; __threadfence(); } else if (flag[l + 1] == 9) out[1] = 9;
             } else {
                 for (int i = 0; i < 40; ++i) { if (flag[i + 1] == 3) out[2] = 9; __threadfence(); }
                 flag[0] = 1;
             }
             out[l] = l;
         }",
    );
    for sleep in [0, 1] {
        let (flag, out) = (gpu.zeros::<i32>(128), gpu.zeros::<i32>(256));
        for threads in [2, 256] {
            gpu.launch("flags", 1, threads, &[(&flag).into(), (&out).into(), sleep.into()]);
            let out = out.read::<i32>();
            assert!(out[..threads as usize].chunks(2).all(|pair| pair[0] == pair[1] && pair[0] != 0), "{out:?}");
        }
        for kernel in ["locked", "tried"] {
            let (lock, count) = (gpu.zeros::<i32>(1), gpu.zeros::<i32>(1));
            gpu.launch(kernel, 1, 32, &[(&lock).into(), (&count).into(), sleep.into()]);
            gpu.launch(kernel, 5, 96, &[(&lock).into(), (&count).into(), sleep.into()]);
            assert_eq!(count.read::<i32>(), [512], "{kernel}");
        }
        let (turn, out) = (gpu.zeros::<i32>(1), gpu.zeros::<i32>(128));
        gpu.launch("turns", 1, 32, &[(&turn).into(), (&out).into(), sleep.into()]);
        assert_eq!(out.read::<i32>(), (0..128).collect::<Vec<i32>>());
        let (turn, out) = (gpu.zeros::<i32>(1), gpu.zeros::<i32>(64));
        gpu.launch("last_first", 64, 64, &[(&turn).into(), (&out).into(), sleep.into()]);
        assert_eq!(out.read::<i32>(), (0..64).collect::<Vec<i32>>());
    }
    let (flag, out) = (gpu.zeros::<i32>(64), gpu.zeros::<i32>(32));
    gpu.launch("forked", 1, 32, &[(&flag).into(), (&out).into()]);
    assert_eq!(out.read::<i32>(), (0..32).collect::<Vec<i32>>());
}

#[test]
fn clusters_are_of_one_block_unless_asked_for() {
    let gpu = Gpu::with(
        "#include <cooperative_groups.h>
         extern \"C\" __global__ void k(int* x) { auto c = cooperative_groups::this_cluster(); c.sync(); x[blockIdx.x] = c.num_blocks(); }",
        "compute_90",
        &[],
    );
    let x = gpu.zeros::<i32>(2);
    let launch = Launch { grid: [2, 1, 1], block: [32, 1, 1], ..Launch::default() };
    gpu.launch_with("k", launch.clone(), &[(&x).into()]);
    assert_eq!(x.read::<i32>(), [1, 1]);
    gpu.launch_with("k", Launch { cluster: [2, 1, 1], ..launch }, &[(&x).into()]);
    assert_eq!(x.read::<i32>(), [2, 2]);
}

#[test]
fn a_kernel_that_cannot_be_compiled_leaves_the_others_usable() {
    let gpu = streamsan_sim::interp::Program::compile(
        &device_code::ptx::parse(
            ".version 8.0 .target sm_90 .address_size 64
            .visible .entry bad() { tcgen05.wait.ld.sync.aligned; ret; }
            .visible .func helper() { .reg .b32 %r1; frobnicate.b32 %r1, %r1; ret; }
            .visible .entry worse() { call helper; ret; }
            .visible .entry good() { ret; }",
        )
        .unwrap(),
        &Nobody,
    );
    let error = |name: &str| gpu.kernel(name).unwrap().error().map(|error| error.to_string());
    assert!(error("bad").unwrap().contains("Unsupported(tcgen05.wait.ld.sync.aligned) in `bad`, PTX line 2"));
    assert!(error("worse").unwrap().contains("Unsupported(frobnicate.b32) in `helper`"));
    assert_eq!(error("good"), None);
}

/// A linker without symbols.
pub(crate) struct Nobody;

impl streamsan_sim::interp::Linker for Nobody {
    fn symbol(&self, _: &str, _: device_code::ptx::Space) -> Option<u64> {
        None
    }
}
