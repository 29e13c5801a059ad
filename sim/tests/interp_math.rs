//! Tests of CUDA's math functions as nvcc lowers them: long chains of fused multiply-adds, bit
//! tricks, conversions and local arrays, against the host's functions.

use crate::interp_support::Gpu;

#[test]
fn math_functions_agree_with_the_host() {
    let gpu = Gpu::new(
        "extern \"C\" __global__ void single(const float* x, float* y) {
            float v = x[threadIdx.x]; float* o = y + threadIdx.x * 12;
            o[0] = sinf(v); o[1] = cosf(v * 1e5f); o[2] = expf(v); o[3] = logf(fabsf(v) + 1e-3f); o[4] = powf(fabsf(v), 1.7f);
            o[5] = tanhf(v); o[6] = sqrtf(fabsf(v)); o[7] = atan2f(v, 2.f); o[8] = fmodf(v, 0.7f); o[9] = cbrtf(v);
            o[10] = roundf(v); o[11] = exp2f(v);
        }
        extern \"C\" __global__ void twice(const double* x, double* y) {
            double v = x[threadIdx.x]; double* o = y + threadIdx.x * 12;
            o[0] = sin(v); o[1] = cos(v * 1e5); o[2] = exp(v); o[3] = log(fabs(v) + 1e-3); o[4] = pow(fabs(v), 1.7);
            o[5] = tanh(v); o[6] = sqrt(fabs(v)); o[7] = atan2(v, 2.0); o[8] = fmod(v, 0.7); o[9] = cbrt(v);
            o[10] = rint(v); o[11] = 1.0 / (v + 100.0);
        }",
    );
    let x: Vec<f64> = (0..64).map(|i| (f64::from(i) - 31.5) * 0.37).collect();
    let singles: Vec<f32> = x.iter().map(|&v| v as f32).collect();
    let (dx, dy) = (gpu.buffer(&singles), gpu.zeros::<f32>(64 * 12));
    gpu.launch("single", 1, 64, &[(&dx).into(), (&dy).into()]);
    let got = dy.read::<f32>();
    for (i, &v) in singles.iter().enumerate() {
        let a = v.abs();
        let want = [
            v.sin(),
            (v * 1e5).cos(),
            v.exp(),
            (a + 1e-3).ln(),
            a.powf(1.7),
            v.tanh(),
            a.sqrt(),
            v.atan2(2.0),
            v % 0.7,
            v.cbrt(),
            v.round(),
            v.exp2(),
        ];
        for (at, (got, want)) in got[i * 12..].iter().zip(want).enumerate() {
            let error = (got - want).abs() / want.abs().max(1e-6);
            assert!(error < 4e-6, "function {at} of {v}: {got}, not {want}");
        }
    }
    let (dx, dy) = (gpu.buffer(&x), gpu.zeros::<f64>(64 * 12));
    gpu.launch("twice", 1, 64, &[(&dx).into(), (&dy).into()]);
    let got = dy.read::<f64>();
    for (i, &v) in x.iter().enumerate() {
        let a = v.abs();
        let want = [
            v.sin(),
            (v * 1e5).cos(),
            v.exp(),
            (a + 1e-3).ln(),
            a.powf(1.7),
            v.tanh(),
            a.sqrt(),
            v.atan2(2.0),
            v % 0.7,
            v.cbrt(),
            v.round_ties_even(),
            1.0 / (v + 100.0),
        ];
        for (at, (got, want)) in got[i * 12..].iter().zip(want).enumerate() {
            let error = (got - want).abs() / want.abs().max(1e-12);
            assert!(error < 1e-14, "function {at} of {v}: {got}, not {want}");
        }
    }
}

#[test]
fn transpose_histogram_and_large_launch() {
    let gpu = Gpu::new(
        "extern \"C\" __global__ void transpose(const float* in, float* out, int w, int h) {
            __shared__ float t[32][33]; int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
            for (int j = 0; j < 32; j += 8) if (x < w && y + j < h) t[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
            __syncthreads();
            x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
            for (int j = 0; j < 32; j += 8) if (x < h && y + j < w) out[(y + j) * h + x] = t[threadIdx.x][threadIdx.y + j];
        }
        extern \"C\" __global__ void histogram(const unsigned char* in, int n, unsigned* bins) {
            __shared__ unsigned local[256];
            for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
            __syncthreads();
            for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i]], 1u);
            __syncthreads();
            for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
        }
        extern \"C\" __global__ void saxpy(int n, float a, const float* x, float* y) {
            int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i];
        }",
    );
    let (w, h) = (70, 45);
    let input: Vec<f32> = (0..w * h).map(|i| i as f32).collect();
    let (din, out) = (gpu.buffer(&input), gpu.zeros::<f32>(w * h));
    let launch = streamsan_sim::interp::Launch { grid: [3, 2, 1], block: [32, 8, 1], ..Default::default() };
    gpu.launch_with("transpose", launch, &[(&din).into(), (&out).into(), (w as i32).into(), (h as i32).into()]);
    let want: Vec<f32> = (0..w * h).map(|i| input[i % h * w + i / h]).collect();
    assert_eq!(out.read::<f32>(), want);
    let bytes: Vec<u8> = (0..10_000u32).map(|i| (i * i / 7) as u8).collect();
    let (din, bins) = (gpu.buffer(&bytes), gpu.zeros::<u32>(256));
    gpu.launch("histogram", 5, 96, &[(&din).into(), 10_000i32.into(), (&bins).into()]);
    let mut want = vec![0u32; 256];
    bytes.iter().for_each(|&b| want[usize::from(b)] += 1);
    assert_eq!(bins.read::<u32>(), want);
    let n = 1 << 20;
    let (x, y) = (gpu.buffer(&vec![3f32; n]), gpu.buffer(&vec![1f32; n]));
    gpu.launch("saxpy", 4096, 256, &[(n as i32 - 1).into(), 2f32.into(), (&x).into(), (&y).into()]);
    let got = y.read::<f32>();
    assert!(got[..n - 1].iter().all(|&v| v == 7.0) && got[n - 1] == 1.0);
}
