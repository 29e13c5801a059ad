//! Tests of clusters: shared memory of other blocks, the cluster's barrier, stores and bulk copies
//! that arrive at a barrier.

use crate::interp_support::{Gpu, toolkit};
use streamsan_sim::interp::Launch;

const SOURCE: &str = r#"#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// Rows and columns of a cluster of 2 by 3 blocks: each block adds up what the blocks of its column
// hold.
extern "C" __global__ void __cluster_dims__(2, 3, 1) columns(int* out) {
    __shared__ int mine[32];
    auto cluster = cg::this_cluster();
    int block = blockIdx.y * gridDim.x + blockIdx.x;
    mine[threadIdx.x] = block * 100 + threadIdx.x;
    cluster.sync();
    int sum = 0;
    for (int row = 0; row < 3; row++) {
        int* theirs = cluster.map_shared_rank(mine, row * 2 + cluster.block_index().x);
        sum += theirs[31 - threadIdx.x];
        if (cluster.query_shared_rank(theirs) != row * 2 + cluster.block_index().x) sum += 1000000;
    }
    cluster.sync();
    out[block * 32 + threadIdx.x] = sum;
}

// Every block counts into the first block's memory, by address in the window and by atomics; some
// threads leave early.
extern "C" __global__ void count(int* out) {
    __shared__ int total;
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0) total = 0;
    cluster.sync();
    unsigned own = (unsigned)__cvta_generic_to_shared(&total), first;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(first) : "r"(own));
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" :: "r"(first), "r"(cluster.block_rank() + 1) : "memory");
    if (threadIdx.x >= 40 && cluster.block_rank() != 0) return;
    cluster.barrier_arrive();
    int busy = threadIdx.x;
    cluster.barrier_wait();
    if (threadIdx.x == 0 && cluster.block_rank() == 0) out[blockIdx.x / cluster.num_blocks()] = total + busy;
}

// Block 1 gets numbers by st.async from block 0 and knows by its barrier when all have come; then a
// bulk copy to both.
extern "C" __global__ void __cluster_dims__(2, 1, 1) sent(const int* in, int* out) {
    __shared__ __align__(16) int got[64];
    __shared__ __align__(16) int tile[64];
    __shared__ __align__(8) unsigned long long bar[2];
    auto cluster = cg::this_cluster();
    unsigned t = threadIdx.x, b0 = (unsigned)__cvta_generic_to_shared(&bar[0]), b1 = (unsigned)__cvta_generic_to_shared(&bar[1]);
    unsigned g = (unsigned)__cvta_generic_to_shared(&got[t]), s = (unsigned)__cvta_generic_to_shared(tile);
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b0));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b1));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(b0));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(b1));
    }
    cluster.sync();
    if (cluster.block_rank() == 0) {
        unsigned there, bar_there;
        asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(there) : "r"(g));
        asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(bar_there) : "r"(b0));
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
            :: "r"(there), "r"(t * 3), "r"(bar_there) : "memory");
        if (t == 0) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;"
            :: "r"(s), "l"(in), "r"(b1), "h"((short)3) : "memory");
    }
    unsigned done = 0;
    if (cluster.block_rank() == 1)
        while (!done) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(b0) : "memory");
    done = 0;
    while (!done) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(b1) : "memory");
    out[blockIdx.x * 64 + t] = tile[63 - t] + (cluster.block_rank() == 1 ? got[t] : 0);
    cluster.sync();
}

extern "C" __global__ void outside(int* out) {
    __shared__ int x;
    x = 1;
    unsigned there, own = (unsigned)__cvta_generic_to_shared(&x);
    asm volatile("mapa.shared::cluster.u32 %0, %1, 5;" : "=r"(there) : "r"(own));
    out[0] = there;
}
"#;

#[test]
fn blocks_of_a_cluster_share() {
    let include = format!("-I{}", toolkit().join("include/cccl").display());
    let gpu = Gpu::with(SOURCE, "compute_90", &[&include]);

    let out = gpu.zeros::<i32>(4 * 6 * 32);
    let launch = Launch { grid: [4, 6, 1], block: [32, 1, 1], ..Launch::default() };
    gpu.launch_with("columns", launch, &[(&out).into()]);
    for (at, got) in out.read::<i32>().into_iter().enumerate() {
        let (block, t) = (at as i32 / 32, at as i32 % 32);
        let (x, first) = (block % 4, block / 4 / 3 * 3);
        let want: i32 = (first..first + 3).map(|row| (row * 4 + x) * 100 + 31 - t).sum();
        assert_eq!(got, want, "block {block}, thread {t}");
    }

    let out = gpu.zeros::<i32>(3);
    let launch = Launch { grid: [12, 1, 1], block: [64, 1, 1], cluster: [4, 1, 1], ..Launch::default() };
    gpu.launch_with("count", launch, &[(&out).into()]);
    assert_eq!(out.read::<i32>(), [640; 3]);

    let input: Vec<i32> = (0..64).map(|i| i * i).collect();
    let (din, out) = (gpu.buffer(&input), gpu.zeros::<i32>(6 * 64));
    gpu.launch("sent", 6, 64, &[(&din).into(), (&out).into()]);
    for (at, got) in out.read::<i32>().into_iter().enumerate() {
        let (block, t) = (at / 64, at as i32 % 64);
        assert_eq!(got, (63 - t) * (63 - t) + if block % 2 == 1 { 3 * t } else { 0 }, "block {block}, thread {t}");
    }

    let launch = |cluster| Launch { grid: [4, 1, 1], block: [1, 1, 1], cluster, ..Launch::default() };
    let out = gpu.zeros::<i32>(1);
    let text = gpu.try_launch("outside", launch([2, 1, 1]), &[(&out).into()]).unwrap_err().to_string();
    assert!(text.contains("out-of-bounds shared read"), "{text}");
    let text = gpu.try_launch("outside", launch([3, 1, 1]), &[(&out).into()]).unwrap_err().to_string();
    assert!(text.contains("multiple of its cluster"), "{text}");
}
