// What machine code for 9.0 has of its own, against what the PTX of the same kernels computes: lanes
// that have parted and act together within a mask, or elect one of them, cooperative grids, clusters, clamped
// minima.
// Prints a sum of each kernel's results.

#include <cooperative_groups.h>
#include <cstdio>

namespace cg = cooperative_groups;
typedef unsigned u32;

// Each half of a warp acts by itself, as often as it is told to.
__global__ void halves(const u32 *turns, u32 *out) {
    const u32 lane = threadIdx.x & 31, half = lane < 16 ? 0xffffu : 0xffff0000u;
    u32 sum = 0;
    for (u32 i = 0; i < turns[threadIdx.x]; i++) {
        sum += __shfl_xor_sync(half, lane + i, 5) * (i + 1);
        sum ^= __ballot_sync(half, (lane ^ i) & 1);
        if (__any_sync(half, sum == 123456)) sum++;
        if (__all_sync(half, sum != i)) sum += 3;
        sum += __reduce_add_sync(half, i * lane) + __reduce_max_sync(half, sum & 255);
        sum += __match_any_sync(half, lane & 3);
        int same;
        sum += __match_all_sync(half, i, &same) + same;
    }
    out[threadIdx.x] = sum;
}

// Shuffles of a whole warp whose lanes come one by one: code for lanes that have parted.
__global__ void parted(const u32 *turns, u32 *out) {
    const u32 lane = threadIdx.x & 31;
    u32 sum = lane;
    for (u32 i = 0; i < 40 && i < turns[threadIdx.x] + lane; i++) sum = sum * 5 + i;
    for (u32 distance = 16; distance; distance /= 2) sum += __shfl_down_sync(~0u, sum, distance);
    if (turns[threadIdx.x] > 2) sum += __popc(__ballot_sync(turns[0] > 100 ? 1u : __activemask(), sum & 1));
    for (u32 distance = 1; distance < 32; distance *= 2) {
        const u32 other = __shfl_up_sync(~0u, sum, distance);
        if (lane >= distance) sum += other;
    }
    out[threadIdx.x] = sum;
}

__global__ void grid(u32 *out) {
    auto all = cg::this_grid();
    out[all.thread_rank()] = all.thread_rank() * 3;
    all.sync();
    if (all.thread_rank() == 0) {
        u32 sum = 0;
        for (u32 i = 0; i < all.size(); i++) sum += out[i] * i;
        out[0] = sum;
    }
}

// Every launch has clusters, of one block where nobody asks for more.
__global__ void cluster(u32 *out) {
    auto mine = cg::this_cluster();
    u32 value = mine.block_rank() * 1000 + mine.num_blocks() * 100 + mine.num_threads() + mine.thread_rank();
    mine.sync();
    value = value * 31 + mine.dim_blocks().x * 7 + mine.block_index().x * 3 + mine.dim_threads().x;
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void clamped(const u32 *turns, u32 *out) {
    const int a = (int)turns[threadIdx.x] - 4, b = 3 - (int)threadIdx.x, c = (int)(threadIdx.x & 7) - 2;
    u32 value = __vimin_s32_relu(a, b) + __vimax3_s32_relu(a, b, c) * 3 + __viaddmin_s32_relu(a, b, c) * 5;
    value += __viaddmax_s32_relu(a, b, c) * 7 + __vimin_s16x2_relu(a * 65537 + 3, b * 70001) * 11;
    u32 warps;
    asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(warps));
    out[threadIdx.x] = value + warps;
}

// One lane of a warp is elected, or one of each half.
__global__ void elected(const u32 *turns, u32 *out) {
    const u32 lane = threadIdx.x & 31, half = lane < 16 ? 0xffffu : 0xffff0000u;
    u32 is, leader, sum = 0;
    asm volatile("{.reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p;}" : "=r"(leader), "=r"(is));
    sum += is * 1000 + leader;
    for (u32 i = 0; i < turns[threadIdx.x]; i++) {
        if (lane < 16) {
            asm volatile("{.reg .pred p; elect.sync %0|p, %2; selp.u32 %1, 1, 0, p;}"
                         : "=r"(leader), "=r"(is) : "r"(half));
            sum = sum * 3 + is * 100 + leader;
        } else {
            asm volatile("{.reg .pred p; elect.sync %0|p, %2; selp.u32 %1, 1, 0, p;}"
                         : "=r"(leader), "=r"(is) : "r"(half));
            sum = sum * 5 + is * 10 + leader;
        }
    }
    out[threadIdx.x] = sum;
}

int main() {
    constexpr u32 N = 128;
    u32 host[N], *turns, *out;
    for (u32 i = 0; i < N; i++) host[i] = i < 64 ? (i & 16 ? 9 : 3) : i < 80 ? 0 : i / 16;
    cudaMalloc(&turns, sizeof host), cudaMalloc(&out, sizeof host);
    cudaMemcpy(turns, host, sizeof host, cudaMemcpyHostToDevice);
    for (int which = 0; which < 6; which++) {
        static const char *const names[] = {"halves", "parted", "grid", "cluster", "clamped", "elected"};
        void *arguments[] = {&out};
        cudaMemset(out, 0, sizeof host);
        if (which == 0) halves<<<1, N>>>(turns, out);
        if (which == 1) parted<<<1, N>>>(turns, out);
        if (which == 2) cudaLaunchCooperativeKernel((void *)grid, dim3(4), dim3(N / 4), arguments, 0, 0);
        if (which == 3) cluster<<<4, N / 4>>>(out);
        if (which == 4) clamped<<<1, N>>>(turns, out);
        if (which == 5) elected<<<1, N>>>(turns, out);
        cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
        u32 sum = 0;
        for (u32 value : host) sum = sum * 31 + value;
        printf("%s %u %s\n", names[which], sum, cudaGetErrorString(cudaGetLastError()));
    }
    return 0;
}
