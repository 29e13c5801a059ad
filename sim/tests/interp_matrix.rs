//! Tests of matrix instructions, `mbarrier`, asynchronous copies and textures.

use crate::interp_support::{self, Gpu, toolkit};
use streamsan_sim::interp::Launch;

/// A half from a small integer or multiple of 1/8: exact in half, bfloat16 and tf32.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    if value == 0.0 {
        0
    } else {
        ((bits >> 16 & 0x8000) | ((bits >> 23 & 255) - 112) << 10 | (bits >> 13 & 0x3ff)) as u16
    }
}

fn values(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + seed * 3 + i / 5) % 17) as f32 / 8.0 - 1.0).collect()
}

fn product(a: &[f32], b: &[f32], m: usize, n: usize, k: usize) -> Vec<f32> {
    let mut out = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            out[i * n + j] = (0..k).map(|x| a[i * k + x] * b[x * n + j]).sum();
        }
    }
    out
}

#[test]
fn fragments_of_halves_and_bytes() {
    let gpu = Gpu::new(
        "#include <mma.h>
        using namespace nvcuda;
        template <class A, class C, class LA, class LB> __device__ void go(const A* a, const A* b, C* c, int la, int lb) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, A, LA> fa; wmma::fragment<wmma::matrix_b, 16, 16, 16, A, LB> fb;
            wmma::fragment<wmma::accumulator, 16, 16, 16, C> fc;
            wmma::fill_fragment(fc, (C)1.0f);
            wmma::load_matrix_sync(fa, a, la); wmma::load_matrix_sync(fb, b, lb);
            wmma::mma_sync(fc, fa, fb, fc);
            for (int i = 0; i < fc.num_elements; i++) fc.x[i] = fc.x[i] * (C)2.0f;
            wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
        }
        extern \"C\" __global__ void rows(const half* a, const half* b, float* c) { go<half, float, wmma::row_major, wmma::row_major>(a, b, c, 16, 16); }
        extern \"C\" __global__ void mixed(const half* a, const half* b, float* c) { go<half, float, wmma::row_major, wmma::col_major>(a, b, c, 16, 16); }
        extern \"C\" __global__ void bytes(const signed char* a, const signed char* b, int* c) { go<signed char, int, wmma::row_major, wmma::col_major>(a, b, c, 16, 16); }",
    );
    let (a, b) = (values(256, 1), values(256, 2));
    let want: Vec<f32> = product(&a, &b, 16, 16, 16).iter().map(|v| (v + 1.0) * 2.0).collect();
    let transposed: Vec<f32> = (0..256).map(|i| b[i % 16 * 16 + i / 16]).collect();
    let bits = |v: &[f32]| gpu.buffer(&v.iter().map(|&x| half(x)).collect::<Vec<u16>>());
    let (da, db, dt, c) = (bits(&a), bits(&b), bits(&transposed), gpu.zeros::<f32>(256));
    gpu.launch("rows", 1, 32, &[(&da).into(), (&db).into(), (&c).into()]);
    assert_eq!(c.read::<f32>(), want);
    gpu.launch("mixed", 1, 32, &[(&da).into(), (&dt).into(), (&c).into()]);
    assert_eq!(c.read::<f32>(), want);
    let whole = |v: &[f32]| v.iter().map(|x| (x * 8.0) as i8).collect::<Vec<i8>>();
    let (da, dt, c) = (gpu.buffer(&whole(&a)), gpu.buffer(&whole(&transposed)), gpu.zeros::<i32>(256));
    gpu.launch("bytes", 1, 32, &[(&da).into(), (&dt).into(), (&c).into()]);
    let want: Vec<i32> = product(&a, &b, 16, 16, 16).iter().map(|v| ((v * 64.0) as i32 + 1) * 2).collect();
    assert_eq!(c.read::<i32>(), want);
}

/// `mma.m16n8k16` with operands that come through `ldmatrix` from shared memory, as in every
/// hand-written kernel.
#[test]
fn mma_with_ldmatrix() {
    let gpu = Gpu::new(
        r#"#include <cuda_fp16.h>
        extern "C" __global__ void mma(const half* a, const half* b, float* c) {
            __shared__ __align__(16) half sa[16 * 16], sb[16 * 8];
            for (int i = threadIdx.x; i < 256; i += 32) sa[i] = a[i];
            for (int i = threadIdx.x; i < 128; i += 32) sb[i] = b[i];
            __syncthreads();
            unsigned ra[4], rb[2]; float d[4] = {0, 0, 0, 0};
            int l = threadIdx.x;
            unsigned pa = (unsigned)__cvta_generic_to_shared(sa + (l % 16) * 16 + (l / 16) * 8);
            unsigned pb = (unsigned)__cvta_generic_to_shared(sb + (l % 16) * 8);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
            asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
            for (int i = 0; i < 4; i++) c[(l / 4 + (i / 2) * 8) * 8 + l % 4 * 2 + i % 2] = d[i];
        }"#,
    );
    let (a, b) = (values(256, 3), values(128, 4));
    let bits = |v: &[f32]| gpu.buffer(&v.iter().map(|&x| half(x)).collect::<Vec<u16>>());
    let (da, db, c) = (bits(&a), bits(&b), gpu.zeros::<f32>(128));
    gpu.launch("mma", 1, 32, &[(&da).into(), (&db).into(), (&c).into()]);
    assert_eq!(c.read::<f32>(), product(&a, &b, 16, 8, 16));
}

#[test]
fn barriers_in_shared_memory_and_asynchronous_copies() {
    let include = format!("-I{}", toolkit().join("include/cccl").display());
    for arch in ["compute_80", "compute_90"] {
        let gpu = Gpu::with(
            "#include <cuda/barrier>
            #include <cuda/pipeline>
            #include <cooperative_groups.h>
            #include <cooperative_groups/memcpy_async.h>
            #include <cooperative_groups/reduce.h>
            namespace cg = cooperative_groups;
            extern \"C\" __global__ void phases(int* out) {
                #pragma nv_diag_suppress static_var_with_dynamic_init
                __shared__ cuda::barrier<cuda::thread_scope_block> bar; __shared__ int x[96];
                if (threadIdx.x == 0) init(&bar, blockDim.x);
                __syncthreads();
                int v = threadIdx.x;
                for (int r = 0; r < 4; r++) { x[threadIdx.x] = v; bar.arrive_and_wait(); v = x[(threadIdx.x + 1) % 96] + 1; bar.arrive_and_wait(); }
                out[threadIdx.x] = v;
            }
            extern \"C\" __global__ void copies(const int* in, int* out) {
                __shared__ int s[128]; auto block = cg::this_thread_block();
                cg::memcpy_async(block, s, in, sizeof(s)); cg::wait(block);
                auto warp = cg::tiled_partition<32>(block);
                int sum = cg::reduce(warp, s[threadIdx.x], cg::plus<int>());
                auto four = cg::tiled_partition<4>(block);
                int most = cg::reduce(four, s[threadIdx.x], cg::greater<int>());
                out[threadIdx.x] = sum * 1000 + most;
            }
            extern \"C\" __global__ void pipe(const int* in, int* out) {
                __shared__ int s[2][64]; auto p = cuda::make_pipeline();
                for (int i = 0; i < 3; i++) {
                    p.producer_acquire(); cuda::memcpy_async(&s[i & 1][threadIdx.x], &in[i * 64 + threadIdx.x], cuda::aligned_size_t<4>(4), p); p.producer_commit();
                    p.consumer_wait(); out[i * 64 + threadIdx.x] = s[i & 1][threadIdx.x] + 1; p.consumer_release();
                }
            }",
            arch,
            &[&include],
        );
        let out = gpu.zeros::<i32>(96);
        gpu.launch("phases", 1, 96, &[(&out).into()]);
        assert_eq!(out.read::<i32>(), (0..96).map(|i| (i + 4) % 96 + 4).collect::<Vec<i32>>());
        let data: Vec<i32> = (0..192).map(|i| i * 5 % 37).collect();
        let (din, out) = (gpu.buffer(&data), gpu.zeros::<i32>(192));
        gpu.launch("copies", 1, 128, &[(&din).into(), (&out).into()]);
        for (i, got) in out.read::<i32>()[..128].iter().enumerate() {
            let sum: i32 = data[i / 32 * 32..][..32].iter().sum();
            assert_eq!(*got, sum * 1000 + data[i / 4 * 4..][..4].iter().max().unwrap(), "{i}");
        }
        gpu.launch("pipe", 1, 64, &[(&din).into(), (&out).into()]);
        assert_eq!(out.read::<i32>(), data.iter().map(|x| x + 1).collect::<Vec<i32>>());
    }
}

#[test]
fn textures_are_asked_of_the_device() {
    let gpu = Gpu::new(
        "extern \"C\" __global__ void fetch(unsigned long long t, int* out) { out[threadIdx.x] = tex1Dfetch<int>((cudaTextureObject_t)t, threadIdx.x * 2); }",
    );
    let out = gpu.zeros::<i32>(8);
    gpu.launch("fetch", 1, 8, &[77u64.into(), (&out).into()]);
    // The test's device answers with the object, so that is what arrives.
    assert_eq!(out.read::<i32>(), [77; 8]);
}

#[test]
fn faults_name_the_thread_and_the_place() {
    let gpu = Gpu::new(
        "#include <cassert>
        extern \"C\" __global__ void outside(int* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; x[i + n] = 1; }
        extern \"C\" __global__ void odd(char* x) { *(int*)(x + threadIdx.x) = 1; }
        extern \"C\" __global__ void shared_outside(int* x, int n) { extern __shared__ int s[]; s[n] = 1; __syncthreads(); x[0] = s[0]; }
        extern \"C\" __global__ void asserts(int n) { assert(n == 3 && \"three\"); }
        extern \"C\" __global__ void traps() { __trap(); }
        extern \"C\" __global__ void endless(int n) { if (threadIdx.x < 32) asm volatile(\"barrier.sync 1, 128;\"); }
        extern \"C\" __device__ __noinline__ int deep(int n) { volatile int x[64]; x[n & 63] = n; return n == 0 ? 0 : deep(n - 1) + x[n & 63]; }
        extern \"C\" __global__ void recurse(int* x, int n) { x[0] = deep(n); }",
    );
    let x = gpu.zeros::<i32>(64);
    let run = |name: &str, block: u32, args: &[interp_support::Arg]| {
        let launch = Launch { grid: [2, 1, 1], block: [block, 1, 1], ..Launch::default() };
        gpu.try_launch(name, launch, args).unwrap_err().to_string()
    };
    let text = run("outside", 32, &[(&x).into(), 3i32.into()]);
    assert!(
        text.contains("out-of-bounds global write of 4 bytes") && text.contains("block (1,0,0), thread (29,0,0)"),
        "{text}"
    );
    assert!(text.contains("a.cu:2"), "{text}");
    assert!(run("odd", 2, &[(&x).into()]).contains("misaligned write of 4 bytes"));
    assert!(run("shared_outside", 2, &[(&x).into(), 9i32.into()]).contains("out-of-bounds shared write"));
    assert!(run("asserts", 1, &[4i32.into()]).contains("assertion failed"));
    assert!(gpu.printed().contains("Assertion `n == 3 && \"three\"` failed."), "{}", gpu.printed());
    assert!(run("traps", 1, &[]).starts_with("trap"));
    assert!(run("endless", 64, &[1i32.into()]).contains("deadlock"));
    assert!(run("recurse", 1, &[(&x).into(), 1_000_000i32.into()]).contains("stack overflow"));
    gpu.launch("recurse", 1, 1, &[(&x).into(), 20i32.into()]);
    assert_eq!(x.read::<i32>()[0], 210);
}
