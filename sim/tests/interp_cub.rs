//! Tests with CUB's block-wide algorithms, which depend on shuffles, votes, bit tricks and shared
//! memory.

use crate::interp_support::{Gpu, toolkit};

fn random(seed: u64, count: usize) -> Vec<u32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u32
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn block_sort_scan_and_reduce() {
    let include = format!("-I{}", toolkit().join("include/cccl").display());
    for arch in ["compute_75", "compute_90"] {
        let gpu = Gpu::with(
            r#"#include <cub/block/block_radix_sort.cuh>
            #include <cub/block/block_scan.cuh>
            #include <cub/block/block_reduce.cuh>
            #include <cub/block/block_merge_sort.cuh>
            #include <cub/warp/warp_reduce.cuh>
            extern "C" __global__ void sort(unsigned* keys, unsigned* values) {
                typedef cub::BlockRadixSort<unsigned, 128, 4, unsigned> Sort;
                __shared__ typename Sort::TempStorage temp;
                unsigned k[4], v[4]; int at = (blockIdx.x * 128 + threadIdx.x) * 4;
                for (int i = 0; i < 4; i++) k[i] = keys[at + i], v[i] = at + i;
                Sort(temp).Sort(k, v);
                for (int i = 0; i < 4; i++) keys[at + i] = k[i], values[at + i] = v[i];
            }
            extern "C" __global__ void scan(const unsigned* in, unsigned long long* out, unsigned* total) {
                typedef cub::BlockScan<unsigned long long, 256> Scan;
                __shared__ typename Scan::TempStorage temp;
                unsigned long long sum, all;
                Scan(temp).ExclusiveSum((unsigned long long)in[threadIdx.x], sum, all);
                out[threadIdx.x] = sum;
                if (threadIdx.x == 0) total[0] = (unsigned)all;
            }
            extern "C" __global__ void reduce(const unsigned* in, unsigned* out) {
                typedef cub::BlockReduce<unsigned, 192> Reduce;
                __shared__ typename Reduce::TempStorage temp;
                unsigned m = Reduce(temp).Reduce(in[blockIdx.x * 192 + threadIdx.x], [] (unsigned a, unsigned b) { return a > b ? a : b; });
                if (threadIdx.x == 0) out[blockIdx.x] = m;
            }
            struct Less { __device__ bool operator()(float a, float b) const { return a < b; } };
            extern "C" __global__ void merge(float* x) {
                typedef cub::BlockMergeSort<float, 64, 8> Sort;
                __shared__ typename Sort::TempStorage temp;
                float k[8]; for (int i = 0; i < 8; i++) k[i] = x[threadIdx.x * 8 + i];
                Sort(temp).Sort(k, Less());
                for (int i = 0; i < 8; i++) x[threadIdx.x * 8 + i] = k[i];
            }"#,
            arch,
            &[&include],
        );
        let keys = random(1, 1024);
        let (dk, dv) = (gpu.buffer(&keys), gpu.zeros::<u32>(1024));
        gpu.launch("sort", 2, 128, &[(&dk).into(), (&dv).into()]);
        for half in 0..2 {
            let mut want: Vec<(u32, u32)> = (half * 512..half * 512 + 512).map(|i| (keys[i], i as u32)).collect();
            want.sort();
            let got = dk.read::<u32>().into_iter().zip(dv.read::<u32>()).skip(half * 512).take(512);
            assert_eq!(got.collect::<Vec<_>>(), want);
        }
        let input = random(2, 256);
        let (din, out, total) = (gpu.buffer(&input), gpu.zeros::<u64>(256), gpu.zeros::<u32>(1));
        gpu.launch("scan", 1, 256, &[(&din).into(), (&out).into(), (&total).into()]);
        let mut sum = 0u64;
        let want: Vec<u64> = input
            .iter()
            .map(|&x| {
                sum += u64::from(x);
                sum - u64::from(x)
            })
            .collect();
        assert_eq!(out.read::<u64>(), want);
        assert_eq!(total.read::<u32>(), [sum as u32]);
        let input = random(3, 192 * 3);
        let (din, out) = (gpu.buffer(&input), gpu.zeros::<u32>(3));
        gpu.launch("reduce", 3, 192, &[(&din).into(), (&out).into()]);
        assert_eq!(out.read::<u32>(), input.chunks(192).map(|c| *c.iter().max().unwrap()).collect::<Vec<_>>());
        let mut floats: Vec<f32> = random(4, 512).into_iter().map(|x| x as f32 - 1e9).collect();
        let dx = gpu.buffer(&floats);
        gpu.launch("merge", 1, 64, &[(&dx).into()]);
        floats.sort_by(f32::total_cmp);
        assert_eq!(dx.read::<f32>(), floats);
    }
}
