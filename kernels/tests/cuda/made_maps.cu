// Kernels that make tensor maps themselves: a map of the host gets another address, in shared memory
// with a copy to global memory, or in global memory.
#include <cuda.h>

typedef unsigned long long u64;

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// A warp copies the map, and one thread puts the tensor in.
__device__ void make(int *m, const CUtensorMap &like, const void *tensor, CUtensorMap *there) {
    int lane = threadIdx.x & 31;
    m[lane] = ((const int *)&like)[lane];
    __syncwarp();
    if (lane == 0)
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"l"((u64)at(m)), "l"(tensor) : "memory");
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(there),
                 "r"(at(m)) : "memory");
}

__device__ void acquire(const CUtensorMap *map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

__device__ void load(const void *tile, const CUtensorMap *map, int x, int y, const u64 *bar) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at(tile)),
                 "l"(map), "r"(x), "r"(y), "r"(at(bar)) : "memory");
}

__device__ void store(const void *tile, const CUtensorMap *map, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y),
                 "r"(at(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

struct Shared {
    alignas(128) int maps[2][32];
    alignas(128) char tile[2048];
    u64 bar;
};

// One map of each block.
extern "C" __global__ void one(const __grid_constant__ CUtensorMap like, float *out, CUtensorMap *maps) {
    __shared__ Shared s;
    CUtensorMap *mine = maps + blockIdx.x;
    make(s.maps[0], like, out, mine);
    acquire(mine);
    if (threadIdx.x == 0) store(s.tile, mine, 0, blockIdx.x * 16);
}

// What one of them is made for is loaded, and what the other is made for is stored.
extern "C" __global__ void two(const __grid_constant__ CUtensorMap like, const float *in, float *out, CUtensorMap *maps,
                               CUtensorMap *others) {
    __shared__ Shared s;
    CUtensorMap *mine = maps + blockIdx.x, *other = others + blockIdx.x;
    make(s.maps[0], like, in, mine);
    make(s.maps[1], like, out, other);
    acquire(mine);
    acquire(other);
    if (threadIdx.x == 0) {
        load(s.tile, mine, 0, 0, &s.bar);
        store(s.tile, other, 0, 0);
    }
}

// The same, and a barrier lies before what goes to shared memory.
extern "C" __global__ void two_apart(const __grid_constant__ CUtensorMap like, const float *in, float *out, CUtensorMap *maps,
                                     CUtensorMap *others) {
    __shared__ Shared s;
    CUtensorMap *mine = maps + blockIdx.x, *other = others + blockIdx.x;
    make(s.maps[0], like, in, mine);
    make(s.maps[1], like, out, other);
    acquire(mine);
    acquire(other);
    __syncthreads();
    if (threadIdx.x == 0) {
        load(s.tile, mine, 0, 0, &s.bar);
        store(s.tile, other, 0, 0);
    }
}

// The tensor is one of a table.
extern "C" __global__ void table(const __grid_constant__ CUtensorMap like, float *const *outs, CUtensorMap *maps) {
    __shared__ Shared s;
    CUtensorMap *mine = maps + blockIdx.x;
    make(s.maps[0], like, outs[blockIdx.x], mine);
    acquire(mine);
    if (threadIdx.x == 0) store(s.tile, mine, 0, 0);
}

// A map is made, and a copy is made by another one that lies in memory.
extern "C" __global__ void other(const __grid_constant__ CUtensorMap like, float *out, CUtensorMap *maps, const CUtensorMap *host) {
    __shared__ Shared s;
    make(s.maps[0], like, out, maps + blockIdx.x);
    if (threadIdx.x == 0) store(s.tile, host, 0, 0);
}

// ... or by the one beside it.
extern "C" __global__ void beside(const __grid_constant__ CUtensorMap like, float *out, CUtensorMap *maps) {
    __shared__ Shared s;
    make(s.maps[0], like, out, maps + 2 * blockIdx.x);
    if (threadIdx.x == 0) store(s.tile, maps + 2 * blockIdx.x + 1, 0, 0);
}

// A copy by a parameter: what is made is for nothing.
extern "C" __global__ void parameter(const __grid_constant__ CUtensorMap like, float *out, CUtensorMap *maps) {
    __shared__ Shared s;
    make(s.maps[0], like, out, maps + blockIdx.x);
    if (threadIdx.x == 0) store(s.tile, &like, 0, 0);
}

// The tensor comes out of the map that is copied: nothing is put in.
extern "C" __global__ void copied(const __grid_constant__ CUtensorMap like, float *out, CUtensorMap *maps) {
    __shared__ Shared s;
    s.maps[0][threadIdx.x] = ((const int *)&like)[threadIdx.x];
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(maps),
                 "r"(at(s.maps[0])) : "memory");
    if (threadIdx.x == 0) {
        out[0] = 1;
        store(s.tile, maps, 0, 0);
    }
}

// A map that lies in global memory gets another address there.
extern "C" __global__ void in_place(float *out, CUtensorMap *map) {
    __shared__ Shared s;
    if (threadIdx.x == 0) {
        asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(map), "l"(out) : "memory");
        asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
        acquire(map);
        store(s.tile, map, 0, 0);
    }
}

// Two warps make the same map, in the same words.
extern "C" __global__ void by_two_warps(const __grid_constant__ CUtensorMap like, float *out, CUtensorMap *maps) {
    __shared__ Shared s;
    CUtensorMap *mine = maps + blockIdx.x;
    make(s.maps[0], like, out, mine);
    __syncthreads();
    if (threadIdx.x == 0) store(s.tile, mine, 0, blockIdx.x * 16);
}

// The words are stored in a loop, of which each turn makes another map there.
extern "C" __global__ void in_turns(const __grid_constant__ CUtensorMap like, float *out, float *second, CUtensorMap *maps, int turns) {
    __shared__ Shared s;
    CUtensorMap *mine = maps + blockIdx.x;
    for (int k = 0; k < turns; k++) {
        make(s.maps[0], like, k == 0 ? out : second, mine);
        acquire(mine);
        if (threadIdx.x == 0) store(s.tile, mine, 0, blockIdx.x * 16);
        __syncthreads();
    }
}

// Something unknown goes to the same memory, without a barrier in between.
extern "C" __global__ void overwritten(const __grid_constant__ CUtensorMap like, float *out, CUtensorMap *maps, int at) {
    __shared__ Shared s;
    CUtensorMap *mine = maps + blockIdx.x;
    make(s.maps[0], like, out, mine);
    if (threadIdx.x == 1) s.maps[0][s.tile[at]] = 1;
    __syncthreads();
    if (threadIdx.x == 0) store(s.tile, mine, 0, blockIdx.x * 16);
}

// ... and behind one.
extern "C" __global__ void used_again(const __grid_constant__ CUtensorMap like, float *out, CUtensorMap *maps, int at) {
    __shared__ Shared s;
    CUtensorMap *mine = maps + blockIdx.x;
    make(s.maps[0], like, out, mine);
    __syncthreads();
    s.maps[0][s.tile[at]] = 1;
    if (threadIdx.x == 0) store(s.tile, mine, 0, blockIdx.x * 16);
}

// Whether a word is put in is data.
extern "C" __global__ void by_data(const __grid_constant__ CUtensorMap like, float *out, CUtensorMap *maps, const int *asked) {
    __shared__ Shared s;
    CUtensorMap *mine = maps + blockIdx.x;
    if (threadIdx.x == 0 && *asked) s.maps[1][9] = 5;
    make(s.maps[0], like, out, mine);
    acquire(mine);
    if (threadIdx.x == 0) store(s.tile, mine, 0, blockIdx.x * 16);
}

// Another store of the kernel may go to the map.
extern "C" __global__ void written(const __grid_constant__ CUtensorMap like, float *out, CUtensorMap *maps, int at) {
    __shared__ Shared s;
    CUtensorMap *mine = maps + blockIdx.x;
    make(s.maps[0], like, out, mine);
    ((int *)maps)[at] = 3;
    acquire(mine);
    if (threadIdx.x == 0) store(s.tile, mine, 0, blockIdx.x * 16);
}
