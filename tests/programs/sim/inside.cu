// Races inside kernels, each with its mended twin, and kernels that must stay silent.
//
//   inside racy|mended KERNEL...    launches these; without names all, and prints each name
//   inside silent KERNEL...
//   inside broken                   one that writes where no memory is
//
// The lines of a race end in `// NAME: one` and `// NAME: other`.

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cg = cooperative_groups;

#define T (int)threadIdx.x
#define N (int)blockDim.x
#define B (int)blockIdx.x
#define G (B * N + T)

__device__ int total;

template <bool M> __global__ void exchange(int* d, int* f) {
    __shared__ int tile[256];
    tile[T] = d[G]; // exchange: one
    if (M) __syncthreads();
    d[G] = tile[N - 1 - T]; // exchange: other
}

template <bool M> __global__ void dynamic(int* d, int* f) {
    extern __shared__ int room[];
    room[T] = d[G]; // dynamic: one
    if (M) __syncthreads();
    d[G] = room[N - 1 - T]; // dynamic: other
}

template <bool M> __global__ void lanes(int* d, int* f) {
    __shared__ int half[16];
    if (T < 16) half[T] = d[T]; // lanes: one
    if (M) __syncwarp();
    if (T >= 16 && T < 32) d[T] = half[T - 16]; // lanes: other
}

template <bool M> __global__ void blocks(int* d, int* f) {
    int mine = d[G] + 1;
    if (B == 0 && T == 0) (M ? f : d)[N] = mine; // blocks: one
    f[1024 + G] = B == 1 ? d[B * N + T] : 0;      // blocks: other
}

template <bool M> __global__ void scope(int* d, int* f) {
    if (M) atomicAdd(f, 1);
    else atomicAdd_block(f, 1); // scope: one other
}

template <bool M> __global__ void last_block(int* d, int* f) {
    __shared__ bool last;
    d[G] = G; // last_block: one
    if (M) __threadfence();
    __syncthreads();
    if (T == 0) last = atomicAdd(f, 1) == (int)gridDim.x - 1;
    __syncthreads();
    if (last) {
        __threadfence();
        int sum = 0;
        for (int i = T; i < N * (int)gridDim.x; i += N) sum += d[i]; // last_block: other
        f[1 + T] = sum;
    }
}

template <bool M> __global__ void named(int* d, int* f) {
    __shared__ int s[64];
    if (T < 64) {
        s[T] = d[G]; // named: one
        if (M) asm volatile("bar.arrive 1, 128;" ::: "memory");
        else asm volatile("bar.arrive 2, 128;" ::: "memory");
    } else {
        if (M) asm volatile("bar.sync 1, 128;" ::: "memory");
        else asm volatile("bar.sync 1, 64;" ::: "memory");
        f[G] = s[T - 64]; // named: other
    }
}

template <bool M> __global__ void counter(int* d, int* f) {
    if (M) atomicAdd(&total, 1);
    else total += 1; // counter: one other
}

template <bool M> __global__ void bins(int* d, int* f) {
    __shared__ int s[8];
    if (T < 8) s[T] = 0;
    __syncthreads();
    if (M) atomicAdd(&s[d[G] & 7], 1);
    else s[d[G] & 7] += 1; // bins: one other
    __syncthreads();
    if (T < 8) atomicAdd(&f[T], s[T]);
}

template <bool M> __global__ void loop(int* d, int* f) {
    __shared__ int s[256];
    for (int i = 0; i < 3; i++) {
        s[T] = d[G] + i; // loop: one
        __syncthreads();
        d[G] += s[N - 1 - T]; // loop: other
        if (M) __syncthreads();
    }
}

template <bool M> __global__ void copied(int* d, int* f) {
    __shared__ int s[256];
    __pipeline_memcpy_async(&s[T], &d[G], 4);
    __pipeline_commit();
    __pipeline_wait_prior(M ? 0 : 1);
    f[G] = s[T]; // copied: other
}

template <bool M> __global__ void flag(int* d, int* f) {
    if (B == 0) {
        d[T] = T; // flag: one
        __syncthreads();
        if (M) __threadfence();
        if (T == 0) atomicExch(f, 1);
    } else {
        if (T == 0) while (atomicAdd(f, 0) == 0) __nanosleep(20);
        __threadfence();
        __syncthreads();
        d[N + T] = d[N - 1 - T]; // flag: other
    }
}

__device__ __forceinline__ void put(int* at, int value) {
    *at = value; // helper: one
}

__device__ __forceinline__ int get(const int* at) {
    return *at; // helper: other
}

template <bool M> __global__ void helper(int* d, int* f) {
    __shared__ int s[256];
    put(&s[T], d[G]);
    if (M) __syncthreads();
    d[G] = get(&s[N - 1 - T]);
}

template <bool M> __global__ void whole(int* d, int* f) {
    d[G] = G; // whole: one
    if (M) cg::this_grid().sync();
    f[1024 + G] = d[gridDim.x * N - 1 - G]; // whole: other
}

// What must stay silent.

__global__ void tree(int* d, int* f) {
    __shared__ int s[256];
    s[T] = d[G];
    __syncthreads();
    for (int o = N / 2; o; o /= 2) {
        if (T < o) s[T] += s[T + o];
        __syncthreads();
    }
    if (T == 0) f[B] = s[0];
}
__global__ void warps_first(int* d, int* f) {
    __shared__ int s[32];
    int sum = d[G];
    for (int o = 16; o; o /= 2) sum += __shfl_down_sync(~0u, sum, o);
    if (T % 32 == 0) s[T / 32] = sum;
    __syncthreads();
    if (T < 32) {
        sum = T < N / 32 ? s[T] : 0;
        for (int o = 16; o; o /= 2) sum += __shfl_down_sync(~0u, sum, o);
        if (T == 0) f[B] = sum;
    }
}
__global__ void hillis_steele(int* d, int* f) {
    __shared__ int s[2][256];
    int at = 0;
    s[0][T] = d[G];
    __syncthreads();
    for (int o = 1; o < N; o *= 2) {
        s[1 - at][T] = s[at][T] + (T >= o ? s[at][T - o] : 0);
        at = 1 - at;
        __syncthreads();
    }
    f[G] = s[at][T];
}
__global__ void blelloch(int* d, int* f) {
    __shared__ int s[256];
    s[T] = d[G];
    for (int o = 1; o < N; o *= 2) {
        __syncthreads();
        int i = (T + 1) * 2 * o - 1;
        if (i < N) s[i] += s[i - o];
    }
    if (T == 0) s[N - 1] = 0;
    for (int o = N / 2; o; o /= 2) {
        __syncthreads();
        int i = (T + 1) * 2 * o - 1;
        if (i < N) {
            int t = s[i - o];
            s[i - o] = s[i];
            s[i] += t;
        }
    }
    __syncthreads();
    f[G] = s[T];
}
__global__ void transposed(int* d, int* f) {
    __shared__ int s[16][17];
    int x = T % 16, y = T / 16;
    s[y][x] = d[G];
    __syncthreads();
    f[G] = s[x][y];
}
__global__ void product(int* d, int* f) {
    __shared__ int a[16][16], b[16][16];
    int x = T % 16, y = T / 16, sum = 0;
    for (int k = 0; k < 4; k++) {
        a[y][x] = d[y * 64 + k * 16 + x];
        b[y][x] = d[(k * 16 + y) * 16 + x];
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += a[y][i] * b[i][x];
        __syncthreads();
    }
    f[G] = sum;
}
__global__ void halo(int* d, int* f) {
    __shared__ int s[258];
    s[T + 1] = d[G];
    if (T == 0) s[0] = B ? d[G - 1] : 0;
    if (T == N - 1) s[N + 1] = B + 1 < (int)gridDim.x ? d[G + 1] : 0;
    __syncthreads();
    f[G] = s[T] + s[T + 1] + s[T + 2];
}
__global__ void bitonic(int* d, int* f) {
    __shared__ int s[256];
    s[T] = d[G];
    for (int k = 2; k <= N; k *= 2) {
        for (int j = k / 2; j; j /= 2) {
            __syncthreads();
            int i = T ^ j;
            if (i > T && (s[T] > s[i]) == ((T & k) == 0)) {
                int t = s[T];
                s[T] = s[i];
                s[i] = t;
            }
        }
    }
    __syncthreads();
    f[G] = s[T];
}
__global__ void tiles(int* d, int* f) {
    __shared__ int s[256];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<16>(block);
    int base = tile.meta_group_rank() * 16;
    for (int i = 0; i < 2; i++) {
        s[base + tile.thread_rank()] = d[G] + i;
        tile.sync();
        int v = s[base + 15 - tile.thread_rank()];
        tile.sync();
        f[G] = v + cg::reduce(tile, v, cg::plus<int>()) + cg::inclusive_scan(tile, v);
    }
    block.sync();
}
__global__ void coalesced(int* d, int* f) {
    if (d[G] & 1) {
        auto active = cg::coalesced_threads();
        int at = 0;
        if (active.thread_rank() == 0) at = atomicAdd(f, active.size());
        f[1 + active.shfl(at, 0) + active.thread_rank()] = d[G];
    }
}
__global__ void group_copy(int* d, int* f) {
    __shared__ int s[256];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, s, d + B * N, sizeof(int) * N);
    cg::wait(block);
    f[G] = s[N - 1 - T];
}
__global__ void staged(int* d, int* f) {
    __shared__ int s[2][256];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int sum = 0;
    for (int i = 0; i < 5; i++) {
        if (i < 4) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, s[i & 1], d + i * N, sizeof(int) * N, pipe);
            pipe.producer_commit();
        }
        if (i > 0) {
            pipe.consumer_wait();
            sum += s[(i - 1) & 1][N - 1 - T];
            pipe.consumer_release();
        }
    }
    f[G] = sum;
}
__global__ void arrived(int* d, int* f) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ int s[256];
    if (T == 0) init(&bar, N);
    __syncthreads();
    for (int i = 0; i < 3; i++) {
        s[T] = d[G] + i;
        bar.arrive_and_wait();
        f[G] = s[N - 1 - T];
        bar.arrive_and_wait();
    }
}
__global__ void handed(int* d, int* f) {
    cuda::atomic_ref<int, cuda::thread_scope_device> flag(f[0]);
    if (B == 0) {
        d[T] = T;
        __syncthreads();
        if (T == 0) flag.store(1, cuda::memory_order_release);
    } else if (B == 1) {
        if (T == 0) while (!flag.load(cuda::memory_order_acquire)) __nanosleep(20);
        __syncthreads();
        f[1 + T] = d[N - 1 - T];
    }
}
__global__ void locked(int* d, int* f) {
    if (T == 0) {
        while (atomicCAS(f, 0, 1) != 0) __nanosleep(20);
        __threadfence();
        f[1] += B;
        __threadfence();
        atomicExch(f, 0);
    }
}
__global__ void tickets(int* d, int* f) {
    __shared__ int next;
    if (T == 0) next = 0;
    __syncthreads();
    for (;;) {
        int mine = atomicAdd(&next, 1);
        if (mine >= 300) break;
        f[1 + B * 300 + mine] = mine;
    }
}
__global__ void early_exit(int* d, int* f) {
    __shared__ int s[256];
    s[T] = d[G];
    if (T >= N - 5) return;
    __syncthreads();
    f[G] = s[N - 1 - T];
}
__global__ void bytes(int* d, int* f) {
    unsigned char* c = (unsigned char*)f;
    c[G] = (unsigned char)G;
}
__global__ void maxima(int* d, int* f) {
    float* at = (float*)f + 1;
    int* bits = (int*)at;
    int seen = *bits;
    float mine = (float)d[G];
    while (mine > __int_as_float(seen)) {
        int old = atomicCAS(bits, seen, __float_as_int(mine));
        if (old == seen) break;
        seen = old;
    }
}
__global__ void cub_block(int* d, int* f) {
    using Reduce = cub::BlockReduce<int, 256>;
    using Scan = cub::BlockScan<int, 256>;
    using Sort = cub::BlockRadixSort<int, 256, 2>;
    using Exchange = cub::BlockExchange<int, 256, 2>;
    __shared__ union {
        typename Reduce::TempStorage reduce;
        typename Scan::TempStorage scan;
        typename Sort::TempStorage sort;
        typename Exchange::TempStorage exchange;
    } room;
    int two[2] = {d[G], d[G] ^ 0x55};
    int sum = Reduce(room.reduce).Sum(two[0]);
    __syncthreads();
    Scan(room.scan).InclusiveSum(two, two);
    __syncthreads();
    Sort(room.sort).Sort(two);
    __syncthreads();
    Exchange(room.exchange).StripedToBlocked(two, two);
    f[G] = two[0] + two[1] + sum;
}
__global__ void cub_warp(int* d, int* f) {
    using Reduce = cub::WarpReduce<int, 16>;
    using Scan = cub::WarpScan<int>;
    __shared__ typename Reduce::TempStorage reduce[16];
    __shared__ typename Scan::TempStorage scan[8];
    int sum = Reduce(reduce[T / 16]).Sum(d[G]), before = 0;
    Scan(scan[T / 32]).ExclusiveSum(d[G], before);
    f[G] = sum + before;
}

__global__ void broken(int* d, int* f) {
    d[T] = T;
    if (f && T == 3) *(volatile int*)8 = 1;
}

typedef void (*Kernel)(int*, int*);
struct Case {
    const char* name;
    Kernel racy, mended;
    int blocks, threads;
};
#define BOTH(name, blocks, threads) {#name, name<false>, name<true>, blocks, threads}
#define ONE(name, blocks, threads) {#name, name, name, blocks, threads}
const Case RACES[] = {
    BOTH(exchange, 2, 64), BOTH(dynamic, 2, 64), BOTH(lanes, 1, 32), BOTH(blocks, 2, 64), BOTH(scope, 4, 32),
    BOTH(last_block, 4, 64), BOTH(named, 2, 128), BOTH(counter, 4, 32), BOTH(bins, 2, 64), BOTH(loop, 2, 64),
    BOTH(copied, 1, 64), BOTH(flag, 2, 64), BOTH(helper, 2, 64), BOTH(whole, 4, 64),
};
const Case SILENT[] = {
    ONE(tree, 2, 256), ONE(warps_first, 2, 256), ONE(hillis_steele, 2, 256), ONE(blelloch, 2, 256),
    ONE(transposed, 2, 256), ONE(product, 1, 256), ONE(halo, 3, 128), ONE(bitonic, 1, 256), ONE(tiles, 2, 64),
    ONE(coalesced, 2, 64), ONE(group_copy, 2, 128), ONE(staged, 1, 64), ONE(arrived, 1, 64), ONE(handed, 2, 64),
    ONE(locked, 4, 32), ONE(tickets, 2, 64), ONE(early_exit, 2, 64), ONE(bytes, 3, 100), ONE(maxima, 3, 64),
    ONE(cub_block, 1, 256), ONE(cub_warp, 1, 256),
};

static void check(cudaError_t error) {
    if (error != cudaSuccess) {
        fprintf(stderr, "%s\n", cudaGetErrorString(error));
        exit(1);
    }
}

// A device-wide scan, whose blocks wait for each other, and a sort.
static void whole_device(int* d, int* f) {
    void* room = nullptr;
    size_t bytes = 0, more = 0;
    check(cub::DeviceScan::InclusiveSum(nullptr, bytes, d, f, 4000));
    check(cub::DeviceRadixSort::SortKeys(nullptr, more, d, f, 4000));
    bytes = bytes > more ? bytes : more;
    check(cudaMalloc(&room, bytes));
    check(cub::DeviceScan::InclusiveSum(room, bytes, d, f, 4000));
    check(cub::DeviceReduce::Sum(room, bytes, d, f, 4000));
    check(cub::DeviceRadixSort::SortKeys(room, bytes, d, f, 4000));
    check(cudaDeviceSynchronize());
    check(cudaFree(room));
    puts("whole_device");
}

int main(int count, char** words) {
    if (count < 2) return 2;
    bool racy = !strcmp(words[1], "racy"), silent = !strcmp(words[1], "silent");
    auto wanted = [&](const char* name) {
        bool any = count == 2;
        for (int i = 2; i < count; i++) any |= !strcmp(words[i], name);
        return any;
    };
    int *d, *f;
    check(cudaMalloc(&d, 4096 * sizeof(int)));
    check(cudaMalloc(&f, 4096 * sizeof(int)));
    int values[4096];
    for (int i = 0; i < 4096; i++) values[i] = i * 7 % 1021 + 13;
    if (!strcmp(words[1], "broken")) {
        // Its parameters are known from a first launch, for the second one may fail before its
        // call returns.
        broken<<<1, 32>>>(d, nullptr);
        check(cudaDeviceSynchronize());
        broken<<<1, 32>>>(d, f);
        puts(cudaGetErrorString(cudaDeviceSynchronize()));
        return 0;
    }
    const Case* cases = silent ? SILENT : RACES;
    int all = silent ? sizeof SILENT / sizeof *SILENT : sizeof RACES / sizeof *RACES;
    for (int i = 0; i < all; i++) {
        const Case& one = cases[i];
        if (!wanted(one.name)) continue;
        check(cudaMemcpy(d, values, sizeof values, cudaMemcpyHostToDevice));
        check(cudaMemset(f, 0, 4096 * sizeof(int)));
        void* args[] = {&d, &f};
        Kernel kernel = racy ? one.racy : one.mended;
        size_t shared = !strcmp(one.name, "dynamic") ? one.threads * sizeof(int) : 0;
        if (!strcmp(one.name, "whole"))
            check(cudaLaunchCooperativeKernel((void*)kernel, one.blocks, one.threads, args, 0, 0));
        else
            check(cudaLaunchKernel((void*)kernel, one.blocks, one.threads, args, shared, 0)); // launch
        check(cudaDeviceSynchronize());
        puts(one.name);
    }
    if (silent && wanted("whole_device")) whole_device(d, f);
    return 0;
}
