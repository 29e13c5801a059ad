//! What the check inside kernels costs: each kernel interpreted with the detector and without it,
//! in turns, on one thread. Prints a row per kernel: the medians, and the median of the ratios of
//! neighbours with its quartiles. Not a test: times are of the processor and of the build.
//!
//! `cargo run --release -p sim --example inside_costs [-- RUNS]`

#[path = "../tests/interp_support/mod.rs"]
mod interp_support;

use interp_support::{Arg, Gpu};
use streamsan_sim::interp::Launch;

const SOURCE: &str = r#"
#define T (int)threadIdx.x
#define N (int)blockDim.x
#define G ((int)blockIdx.x * N + T)
extern "C" {
// Global memory only, each thread its own.
__global__ void scale(float* a, float* b, int n) { for (int i = G; i < n; i += N * gridDim.x) b[i] = 3.f * a[i] + b[i]; }
// Neighbours read what others have staged.
__global__ void stencil(float* a, float* b, int n) {
    __shared__ float s[258];
    s[T + 1] = a[G];
    if (T == 0) { s[0] = a[G ? G - 1 : 0]; s[N + 1] = a[G + 1 < n ? G + 1 : G]; }
    __syncthreads();
    b[G] = s[T] + s[T + 1] + s[T + 2];
}
__global__ void tree(float* a, float* b, int n) {
    __shared__ float s[256];
    s[T] = a[G];
    __syncthreads();
    for (int o = N / 2; o; o /= 2) { if (T < o) s[T] += s[T + o]; __syncthreads(); }
    if (T == 0) b[blockIdx.x] = s[0];
}
// A product of matrices by tiles: all threads of a row read one word.
__global__ void product(float* a, float* b, int n) {
    __shared__ float x[16][16], y[16][16];
    int w = 128, row = blockIdx.x / 8 * 16 + T / 16, column = blockIdx.x % 8 * 16 + T % 16;
    float sum = 0;
    for (int t = 0; t < w / 16; t++) {
        x[T / 16][T % 16] = a[row * w + t * 16 + T % 16];
        y[T / 16][T % 16] = a[(t * 16 + T / 16) * w + column];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += x[T / 16][k] * y[k][T % 16];
        __syncthreads();
    }
    b[row * w + column] = sum;
}
__global__ void histogram(float* a, float* b, int n) {
    __shared__ int bins[64];
    if (T < 64) bins[T] = 0;
    __syncthreads();
    for (int i = 0; i < 8; i++) atomicAdd(&bins[(G * 7 + i * 13) & 63], 1);
    __syncthreads();
    if (T < 64) atomicAdd((int*)b + T, bins[T]);
}
// A table that all threads of all blocks read.
__global__ void table(float* a, float* b, int n) {
    float sum = 0;
    for (int i = 0; i < 64; i++) sum += a[i] * a[(T + i) & 255];
    b[G] = sum;
}
// Words are read across warps, without a barrier between.
__global__ void gather(float* a, float* b, int n) {
    float sum = 0;
    for (int i = 0; i < 16; i++) sum += a[(G * 33 + i * 257) & 16383];
    b[G] = sum;
}
// A filter of many sections: each thread has its rows of two tables, and hands its value on.
__device__ void filter(float* a, float* b, int race) {
    __shared__ float out[2][256], state[512], table[1536];
    for (int i = 0; i < 2; i++) state[T * 2 + i] = a[T * 2 + i];
    for (int i = 0; i < 6; i++) table[T * 6 + i] = a[T * 6 + i];
    out[0][T] = out[1][T] = 0;
    __syncthreads();
    for (int n = 0; n < 16; n++) {
        float x = T ? out[n & 1 & !race][T - 1] : a[n];
        float y = table[T * 6] * x + state[T * 2];
        state[T * 2] = table[T * 6 + 1] * x - table[T * 6 + 4] * y + state[T * 2 + 1];
        state[T * 2 + 1] = table[T * 6 + 2] * x - table[T * 6 + 5] * y;
        out[~n & 1 & !race][T] = y;
        __syncthreads();
    }
    b[G] = out[0][T];
}
__global__ void sections(float* a, float* b, int n) { filter(a, b, 0); }
// Threads read what their neighbours overwrite.
__global__ void racy_sections(float* a, float* b, int n) { filter(a, b, 1); }
}
"#;

const KERNELS: [&str; 9] =
    ["scale", "stencil", "tree", "product", "histogram", "table", "gather", "sections", "racy_sections"];

/// Processor time of this thread in milliseconds: others that use the machine cost none.
fn now() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 * 1e-6
}

fn median(sorted: &mut [f64]) -> [f64; 3] {
    sorted.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| sorted[sorted.len() * quarter / 4])
}

fn main() {
    let runs: usize = std::env::args().nth(1).and_then(|runs| runs.parse().ok()).unwrap_or(15);
    let only = std::env::args().nth(2);
    for (code, mut gpu) in [("PTX", Gpu::new(SOURCE)), ("machine", Gpu::machine(SOURCE, &[]))] {
        gpu.workers = 1;
        let a = gpu.buffer(&(0..16_384).map(|at| at as f32 * 0.5).collect::<Vec<f32>>());
        let b = gpu.zeros::<f32>(16_384);
        for name in KERNELS.into_iter().filter(|name| only.as_ref().is_none_or(|only| only == name)) {
            let launch = || Launch { grid: [64, 1, 1], block: [256, 1, 1], ..Launch::default() };
            let run = |gpu: &Gpu| {
                let args: [Arg; 3] = [(&a).into(), (&b).into(), 16_384i32.into()];
                let start = now();
                gpu.launch_with(name, launch(), &args);
                now() - start
            };
            let (mut bare, mut checked, mut ratios, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0);
            for _ in 0..runs {
                gpu.watch_nothing();
                let without = run(&gpu);
                let detector = gpu.detect();
                let with = run(&gpu);
                bytes = detector.shadow_bytes();
                assert_eq!(detector.races().is_empty(), !name.starts_with("racy"), "{name}");
                bare.push(without);
                checked.push(with);
                ratios.push(with / without);
            }
            let ([_, bare, _], [_, checked, _], [low, ratio, high]) =
                (median(&mut bare), median(&mut checked), median(&mut ratios));
            println!(
                "{code:8} {name:10} {bare:8.2} ms {checked:8.2} ms  {ratio:5.2} ({low:.2} to {high:.2})  {bytes} bytes"
            );
        }
    }
}
