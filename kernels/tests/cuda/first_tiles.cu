// Persistent kernels: blocks take the numbers of tiles from a counter in memory. (All lanes of a warp
// have the number of the first one: so compilers put coordinates into uniform registers at once.)
#include <cuda.h>

typedef unsigned long long u64;

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void store(const void *tile, const CUtensorMap *map, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y),
                 "r"(at(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

struct Shared {
    alignas(128) char tile[2048];
    int next;
};

__device__ void walk(int tile, const CUtensorMap *map, int *next, int across, int tiles, Shared &s) {
    while (tile < tiles) {
        __syncthreads();
        if (threadIdx.x == 0) {
            store(s.tile, map, tile % across * 32, tile / across * 16);
            s.next = atomicAdd(next, 1) + gridDim.x;
        }
        __syncthreads();
        tile = __shfl_sync(0xffffffff, s.next, 0);
    }
}

// The first tile is the block's own.
extern "C" __global__ void own_first(const __grid_constant__ CUtensorMap map, int *next, int across, int tiles) {
    __shared__ Shared s;
    walk(blockIdx.x, &map, next, across, tiles, s);
}

// The first one comes from memory, too.
extern "C" __global__ void none_first(const __grid_constant__ CUtensorMap map, int *next, int across, int tiles) {
    __shared__ Shared s;
    if (threadIdx.x == 0) s.next = atomicAdd(next, 1);
    __syncthreads();
    walk(__shfl_sync(0xffffffff, s.next, 0), &map, next, across, tiles, s);
}

// Whether the first one is copied is data.
extern "C" __global__ void perhaps_first(const __grid_constant__ CUtensorMap map, int *next, int across, int tiles) {
    __shared__ Shared s;
    if (*next < 5) walk(blockIdx.x, &map, next, across, tiles, s);
}
