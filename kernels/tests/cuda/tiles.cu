// Copies of tiles by tensor maps, for each number of axes: coordinates from block indices, from
// loops, from one number for all axes, from memory; maps among the parameters and elsewhere.
#include <cstdint>

struct alignas(64) Map {
    char bytes[128];
};
struct Walk {
    int start[5], step[5], count[5];
};

__device__ unsigned shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

extern __shared__ __align__(128) char tile[];

enum { LOADS, STORES, ADDS, PREFETCHES };

#define COPY(n, list)                                                                                                  \
    if (WHAT == LOADS)                                                                                                 \
        asm volatile("cp.async.bulk.tensor." #n "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%1], "    \
                     "[%0, {" list "}], [%7];" ::"l"(map), "r"(shared(tile)), "r"(c[0]), "r"(c[1]), "r"(c[2]),         \
                     "r"(c[3]), "r"(c[4]), "r"(shared(tile + 16384)) : "memory");                                      \
    else if (WHAT == STORES)                                                                                           \
        asm volatile("cp.async.bulk.tensor." #n "d.global.shared::cta.tile.bulk_group [%0, {" list "}], [%1];" ::"l"(  \
                         map), "r"(shared(tile)), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]) : "memory");   \
    else if (WHAT == ADDS)                                                                                             \
        asm volatile("cp.reduce.async.bulk.tensor." #n "d.global.shared::cta.add.tile.bulk_group [%0, {" list          \
                     "}], [%1];" ::"l"(map), "r"(shared(tile)), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]),            \
                     "r"(c[4]) : "memory");                                                                            \
    else                                                                                                               \
        asm volatile("cp.async.bulk.prefetch.tensor." #n "d.L2.global.tile [%0, {" list "}];" ::"l"(map),              \
                     "r"(shared(tile)), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]) : "memory");

template <int RANK, int WHAT> __device__ void copy(const Map *map, const int (&c)[5]) {
    if constexpr (RANK == 1) { COPY(1, "%2") }
    if constexpr (RANK == 2) { COPY(2, "%2, %3") }
    if constexpr (RANK == 3) { COPY(3, "%2, %3, %4") }
    if constexpr (RANK == 4) { COPY(4, "%2, %3, %4, %5") }
    if constexpr (RANK == 5) { COPY(5, "%2, %3, %4, %5, %6") }
}

template <int RANK, int WHAT> __device__ void at(const Map *map, const Walk &w, int x, int y, int z) {
    int c[5] = {w.start[0] + w.step[0] * x, w.start[1] + w.step[1] * y, w.start[2] + w.step[2] * z, w.start[3], w.start[4]};
    copy<RANK, WHAT>(map, c);
}

template <int RANK, int WHAT> __device__ void by_block(const Map *map, const Walk &w) {
    if (threadIdx.x == 0)
        at<RANK, WHAT>(map, w, blockIdx.x, blockIdx.y, blockIdx.z);
}

template <int RANK> __device__ void by_loops(const Map *map, const Walk &w) {
    if (threadIdx.x == 0)
        for (int z = 0; z < w.count[2]; z++)
            for (int x = 0; x < w.count[0]; x++)
                at<RANK, STORES>(map, w, x, blockIdx.x, z);
}

template <int RANK> __device__ void by_number(const Map *map, const Walk &w) {
    if (threadIdx.x == 0)
        for (int t = blockIdx.x; t < w.count[0] * w.count[1] * w.count[2]; t += gridDim.x)
            at<RANK, STORES>(map, w, t % w.count[0], t / w.count[0] % w.count[1], t / w.count[0] / w.count[1]);
}

__constant__ Map constant_map;

#define MAP const __grid_constant__ Map map, const __grid_constant__ Walk w
#define KERNELS(R)                                                                                                     \
    extern "C" __global__ void loads##R(MAP) { by_block<R, LOADS>(&map, w); }                                          \
    extern "C" __global__ void stores##R(MAP) { by_block<R, STORES>(&map, w); }                                        \
    extern "C" __global__ void adds##R(MAP) { by_block<R, ADDS>(&map, w); }                                            \
    extern "C" __global__ void prefetches##R(MAP) { by_block<R, PREFETCHES>(&map, w); }                                \
    extern "C" __global__ void loops##R(MAP) { by_loops<R>(&map, w); }                                                 \
    extern "C" __global__ void numbers##R(MAP) { by_number<R>(&map, w); }

KERNELS(1)
KERNELS(2)
KERNELS(3)
KERNELS(4)
KERNELS(5)

// As Triton orders the tiles of a product.
extern "C" __global__ void grouped2(MAP) {
    if (threadIdx.x == 0) {
        int group = 3, pid = blockIdx.x, in_group = group * w.count[0], first = pid / in_group * group;
        int size = min(w.count[1] - first, group);
        at<2, STORES>(&map, w, pid % in_group / size, first + pid % in_group % size, 0);
    }
}

// As CUTLASS orders the tiles of a persistent product: strips of so many rows, whose number is a power
// of two; for each tile of the product all tiles along the third axis.
extern "C" __global__ void strips3(MAP) {
    if (threadIdx.x == 0)
        for (int t = blockIdx.x; t < w.count[0] * w.count[1]; t += gridDim.x) {
            int row = t & ((1 << w.count[3]) - 1), rest = t >> w.count[3];
            for (int z = 0; z < w.count[2]; z++)
                at<3, STORES>(&map, w, rest % w.count[0], (rest / w.count[0] << w.count[3]) + row, z);
        }
}

// The second axis out of memory.
extern "C" __global__ void told2(MAP, const int *rows) {
    if (threadIdx.x == 0)
        at<2, STORES>(&map, w, blockIdx.x, rows[blockIdx.x], 0);
}

// One map or the other, by block.
extern "C" __global__ void chosen2(MAP, const __grid_constant__ Map other) {
    by_block<2, STORES>(blockIdx.x & 1 ? &other : &map, w);
}

extern "C" __global__ void constant2(const __grid_constant__ Walk w) { by_block<2, STORES>(&constant_map, w); }
extern "C" __global__ void pointed2(const Map *map, const __grid_constant__ Walk w) { by_block<2, STORES>(map + 1, w); }

// A part of an image.
extern "C" __global__ void image4(MAP) {
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%1], "
                     "[%0, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"l"(&map), "r"(shared(tile)), "r"(w.start[0]), "r"(w.start[1]),
                     "r"(w.start[2]), "r"(w.start[3]), "r"(shared(tile + 16384)), "h"((short)1), "h"((short)2) : "memory");
}
