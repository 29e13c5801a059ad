// Shuffles, votes, matches, warp reductions, special registers, cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void shuffles(int *o, const int *a, int n)
{
    int t = threadIdx.x, v = a[t]; double d = a[t + 1];
    o[0] = __shfl_sync(~0u, v, 3) + __shfl_sync(~0u, v, n) + __shfl_sync(n, v, t & 7, 8) + __shfl_up_sync(~0u, v, 1) + __shfl_down_sync(~0u, v, n, 16) + __shfl_xor_sync(~0u, v, 16) + __shfl_xor_sync(~0u, v, n) + __shfl_down_sync(~0u, v, 4, n) + __shfl_sync(~0u, v, t ^ 5, n);
    o[1] = (int)__shfl_xor_sync(~0u, d, 8); int p; asm volatile("{ .reg .pred q; shfl.sync.idx.b32 %0|q, %1, %2, 31, -1; @q add.s32 %0, %0, 1; }" : "=r"(p) : "r"(v), "r"(n)); o[2] = p;
}
__global__ void votes(unsigned *o, const int *a, int n)
{
    int t = threadIdx.x; bool b = a[t] > n;
    o[0] = __ballot_sync(~0u, b) + __any_sync(~0u, b) + 2 * __all_sync(~0u, b) + __activemask() + __ballot_sync(n, n > 3);
    o[1] = __match_any_sync(~0u, a[t]); int p; o[2] = __match_all_sync(~0u, a[t], &p) + p; o[3] = __match_any_sync(~0u, (long long)a[t] * n); unsigned long long w = a[t]; o[4] = __match_all_sync(~0u, w, &p) + p;
    __syncwarp(); __syncwarp(n); if (b) { __syncwarp(0xff); o[5] = __popc(__activemask()); }
    o[6] = __syncthreads_count(b) + __syncthreads_and(b) + __syncthreads_or(b);
    int q; asm volatile("{ .reg .pred x, y; setp.gt.s32 x, %1, 0; vote.sync.uni.pred y, x, -1; selp.s32 %0, 1, 0, y; }" : "=r"(q) : "r"(a[t])); o[7] = q;
#if __CUDA_ARCH__ >= 800
    o[8] = __reduce_add_sync(~0u, a[t]) + __reduce_min_sync(~0u, a[t]) + __reduce_max_sync(~0u, (unsigned)a[t]) + __reduce_and_sync(~0u, o[t]) + __reduce_or_sync(~0u, o[t]) + __reduce_xor_sync(n, o[t]);
#endif
    __nanosleep(20); __nanosleep(n);
}
__global__ void specials(unsigned *o, long long *w)
{
    unsigned r; unsigned long long q;
#define S(n, k) asm volatile("mov.u32 %0, %" #n ";" : "=r"(r)); o[k] = r;
    S(%laneid, 0) S(%warpid, 1) S(%nwarpid, 2) S(%smid, 3) S(%nsmid, 4) S(%lanemask_eq, 6) S(%lanemask_lt, 7) S(%lanemask_le, 8) S(%lanemask_gt, 9) S(%lanemask_ge, 10) S(%clock, 11) S(%clock_hi, 12) S(%total_smem_size, 13) S(%dynamic_smem_size, 14) S(%tid.z, 15) S(%ctaid.z, 16) S(%nctaid.y, 17) S(%ntid.z, 18)
    w[0] = clock64(); asm volatile("mov.u64 %0, %globaltimer;" : "=l"(q)); w[1] = q; w[2] = clock();
#if __CUDA_ARCH__ >= 900
    S(%clusterid.x, 19) S(%cluster_ctarank, 20) S(%cluster_nctarank, 21)
#endif
}
__global__ void groups(int *o, const int *a, int n)
{
    auto block = cg::this_thread_block(); auto tile = cg::tiled_partition<8>(block); auto co = cg::coalesced_threads();
    int v = a[block.thread_rank()];
    o[0] = cg::reduce(tile, v, cg::plus<int>()); tile.sync(); block.sync();
    if (v > n) { auto c = cg::coalesced_threads(); o[1] = cg::reduce(c, v, cg::greater<int>()) + c.shfl(v, n) + c.any(v); }
    o[2] = tile.shfl_xor(v, 3) + tile.ballot(v) + tile.match_any(v) + co.num_threads();
    cg::this_grid().sync();
}
