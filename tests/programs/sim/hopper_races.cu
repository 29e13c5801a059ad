// Tensor maps, products of warp groups, clusters and barrier objects of compute capability 9.0a, each
// with a bug and mended: `racy` or `mended`, then the names of kernels. Prints a sum of each kernel's
// results, which bugs may change. The markers name the lines that race.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>

#define T (int)threadIdx.x
typedef unsigned long long u64;
#define DEV __device__ __forceinline__
DEV unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
DEV unsigned peer(const void* p, unsigned rank) { unsigned r; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(at(p)), "r"(rank)); return r; }
DEV void meet() { asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DEV void meet_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory"); }
DEV int far_load(unsigned a) { int v; asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(v) : "r"(a) : "memory"); return v; }
DEV void far_store(unsigned a, int v) { asm volatile("st.shared::cluster.s32 [%0], %1;" :: "r"(a), "r"(v) : "memory"); }
DEV void fence() { asm volatile("fence.proxy.async;" ::: "memory"); }
DEV void init(u64* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
DEV void init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEV void arrive(u64* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(b)) : "memory"); }
DEV void arrive_relaxed(u64* b) { asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" :: "r"(at(b)) : "memory"); }
DEV void expect(u64* b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
DEV void wait(u64* b, int parity) {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra D; bra W; D: }" :: "r"(at(b)), "r"(parity) : "memory");
}
DEV void wait_at_most(u64* b, int parity) { // a wait that must not hang
    for (int done = 0, turn = 0; !done && turn < 3; turn++)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(at(b)), "r"(parity) : "memory");
}
DEV void wait_relaxed(u64* b) {
    asm volatile("{ .reg .pred p; W: mbarrier.test_wait.parity.relaxed.cta.shared::cta.b64 p, [%0], 0; @p bra D; bra W; D: }" :: "r"(at(b)) : "memory");
}
DEV void wait_far(u64* b) {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @p bra D; bra W; D: }" :: "r"(at(b)) : "memory");
}
DEV void load(void* s, const void* g, int n, u64* b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(at(s)), "l"(g), "r"(n), "r"(at(b)) : "memory");
}
DEV void load_tile(void* s, const void* map, u64* b) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {0, 0}], [%2];" :: "r"(at(s)), "l"(map), "r"(at(b)) : "memory");
}
DEV void release_map() { asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory"); }
DEV void acquire_map(const void* p) { asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(p) : "memory"); }
DEV u64 matrix(const void* p) { return (u64)((at(p) & 0x3ffff) >> 4) | (u64)(128 >> 4) << 16 | (u64)(256 >> 4) << 32; }
DEV void product(float (&d)[4], const void* a, const void* b) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(matrix(a)), "l"(matrix(b)) : "memory");
}
DEV void product_of(float (&d)[4], unsigned (&a)[4], const void* b) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1, 0; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix(b)) : "memory");
}
DEV void sparse_product(float (&d)[4], const void* a, const void* b, unsigned metadata) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, %6, 0, p, 1, 1, 0, 0; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(matrix(a)), "l"(matrix(b)), "r"(metadata) : "memory");
}
DEV void group_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEV void commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
DEV void wait_group(float (&d)[4]) { asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :: "memory"); }
// Not as a typedef, which drops the attribute: copies do not reach a map in local memory.
#define MAPS const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap image
#define FORM(name) template <bool M> __global__ void name(MAPS, int* d, int* f)
#define CLUSTER_FORM(name) template <bool M> __global__ void __cluster_dims__(2, 1, 1) name(MAPS, int* d, int* f)
#define TILE_OF_BLOCK __shared__ __align__(128) int tile[128]; __shared__ u64 full; if (T == 0) { init(&full, 1); init_fence(); } __syncthreads()

// A map that threads have written needs both fences of its proxy.
FORM(map_released) {
    TILE_OF_BLOCK;
    if (T < 32) {
        d[512 + T] = ((const int*)&a)[T]; // map_released: one
        if (M) release_map();
    }
    __syncthreads();
    if (T == 40) { acquire_map(d + 512); expect(&full, 512); load_tile(tile, d + 512, &full); } // map_released: other
    wait(&full, 0);
    f[T] = tile[127 - T];
}
FORM(map_acquired) {
    TILE_OF_BLOCK;
    if (T < 32) {
        d[512 + T] = ((const int*)&a)[T]; // map_acquired: one
        release_map();
    }
    __syncthreads();
    if (T == 40) { if (M) acquire_map(d + 512); expect(&full, 512); load_tile(tile, d + 512, &full); } // map_acquired: other
    wait(&full, 0);
    f[T] = tile[127 - T];
}
// A field is replaced in shared memory, and the map is brought out by a warp.
FORM(map_replaced) {
    TILE_OF_BLOCK;
    if (T < 32) {
        tile[T] = ((const int*)&b)[T];
        __syncwarp();
        if (T == 0) asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" :: "r"(at(tile)), "l"(d) : "memory");
        __syncwarp();
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" :: "l"(d + 512), "r"(at(tile)) : "memory"); // map_replaced: one
        fence();
    }
    __syncthreads();
    if (T == 40) { if (M) acquire_map(d + 512); expect(&full, 512); load_tile(tile, d + 512, &full); } // map_replaced: other
    wait(&full, 0);
    f[T] = tile[127 - T];
}
// The next map is written while a copy by the last one is under way.
FORM(map_reused) {
    TILE_OF_BLOCK;
    if (T < 32) { d[512 + T] = ((const int*)&a)[T]; release_map(); }
    __syncthreads();
    if (T == 40) { acquire_map(d + 512); expect(&full, 512); load_tile(tile, d + 512, &full); } // map_reused: one
    if (M) wait(&full, 0);
    __syncthreads();
    if (T < 32) d[512 + T] = ((const int*)&b)[T]; // map_reused: other
    wait(&full, 0);
    f[T] = tile[127 - T];
}
// A column of an image is used before its phase is over.
FORM(image_column) {
    TILE_OF_BLOCK;
    if (T == 0) {
        expect(&full, 512);
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {0, 0, 0, 0}], [%2], {0, 0};" :: "r"(at(tile)), "l"(&image), "r"(at(&full)) : "memory"); // image_column: one
    }
    if (M || T == 0) wait(&full, 0);
    f[T] = tile[127 - T]; // image_column: other
}

#define FACTORS                                                                     \
    __shared__ __align__(128) unsigned short A[64 * 16], B[32 * 16];                \
    for (int i = T; i < 1024; i += 128) A[i] = 0x3c00 + (i * 7 % 5) * 64;           \
    for (int i = T; i < 512; i += 128) B[i] = 0x3c00 + (i * 5 % 7) * 64;            \
    fence();                                                                        \
    __syncthreads();                                                                \
    float d4[4]
#define RESULT f[T] = (int)(d4[0] + d4[1] * 2 + d4[2] * 3 + d4[3] * 4)

// Sums that threads have written are used without a fence of the registers.
FORM(sums_unfenced) {
    FACTORS;
    for (int i = 0; i < 4; i++) d4[i] = (float)(d[T] + i); // sums_unfenced: one
    if (M) group_fence();
    product(d4, A, B); // sums_unfenced: other
    commit_group();
    wait_group(d4);
    RESULT;
}
// They are read before the wait.
FORM(sums_early) {
    FACTORS;
    for (int i = 0; i < 4; i++) d4[i] = (float)(d[T] + i);
    group_fence();
    product(d4, A, B); // sums_early: one
    commit_group();
    if (M) wait_group(d4);
    ((float*)f)[T + 128] = d4[0]; // sums_early: other
    wait_group(d4);
    RESULT;
}
// Registers of the first factor are written while the product reads them.
FORM(factor_overwritten) {
    FACTORS;
    unsigned a4[4];
    for (int i = 0; i < 4; i++) d4[i] = (float)i, a4[i] = 0x3c003c00u + d[T] % 64;
    group_fence();
    if (M) product_of(d4, a4, B);
    else asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1, 0; add.u32 %4, %4, 5; }"
                      : "+f"(d4[0]), "+f"(d4[1]), "+f"(d4[2]), "+f"(d4[3]), "+r"(a4[0]) : "r"(a4[1]), "r"(a4[2]), "r"(a4[3]), "l"(matrix(B)) : "memory"); // factor_overwritten: one
    commit_group();
    wait_group(d4);
    d4[0] += a4[0] % 7;
    RESULT;
}
// Two products of one shape add to the same sums, and two groups are under way: right as it is.
// Racy: a factor of the second one is written again behind a wait for the first one only.
FORM(second_group) {
    FACTORS;
    for (int i = 0; i < 4; i++) d4[i] = (float)i;
    group_fence();
    product(d4, A, B);
    commit_group();
    product(d4, A, B + 128); // second_group: one
    commit_group();
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(M ? 0 : 1) : "memory");
    __syncthreads();
    B[128 + T] = 0x3c00; // second_group: other
    wait_group(d4);
    RESULT;
}
FORM(sparse_factor) {
    FACTORS;
    for (int i = 0; i < 4; i++) d4[i] = (float)i;
    group_fence();
    sparse_product(d4, A, B, 0x44444444u); // sparse_factor: one
    commit_group();
    if (M) wait_group(d4);
    __syncthreads();
    A[T] = 0x4000; // sparse_factor: other
    wait_group(d4);
    RESULT;
}

// A block ends while the other one reads its shared memory.
CLUSTER_FORM(left) {
    __shared__ int tile[128];
    tile[T] = d[blockIdx.x * 128 + T];
    meet();
    f[blockIdx.x * 128 + T] = far_load(peer(&tile[127 - T], 1 - blockIdx.x)); // left: one
    if (M) meet_relaxed();
} // left: other
// The barrier object of the other block may not be there yet.
CLUSTER_FORM(init_unmet) {
    __shared__ __align__(128) int tile[128];
    __shared__ u64 full;
    if (T == 0) { init(&full, 1); init_fence(); } // init_unmet: one
    if (M) meet_relaxed();
    __syncthreads();
    if (T == 0) expect(&full, 512);
    if (T == 0 && blockIdx.x == 1) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 512, [%2], %3;" :: "r"(at(tile)), "l"(d), "r"(at(&full)), "h"((unsigned short)3) : "memory"); // init_unmet: other
    wait(&full, 0);
    f[blockIdx.x * 128 + T] = tile[127 - T];
    meet();
}
// The wait acquires for its block, and the writer is in the other one.
CLUSTER_FORM(narrow_wait) {
    __shared__ int tile[128];
    __shared__ u64 full;
    if (T == 0) { init(&full, 128); init_fence(); }
    meet();
    if (blockIdx.x == 0) {
        far_store(peer(&tile[T], 1), d[T]); // narrow_wait: one
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(peer(&full, 1)) : "memory");
    } else {
        if (M) wait_far(&full);
        else wait(&full, 0);
        f[T] = tile[127 - T]; // narrow_wait: other
    }
    meet();
}
CLUSTER_FORM(relaxed_meeting) {
    __shared__ int tile[128];
    tile[T] = d[T]; // relaxed_meeting: one
    if (M) asm volatile("fence.acq_rel.cluster;" ::: "memory");
    meet_relaxed();
    f[blockIdx.x * 128 + T] = far_load(peer(&tile[127 - T], 1 - blockIdx.x)); // relaxed_meeting: other
    meet();
}

// Arrivals and waits that are relaxed, with and without a fence beside them.
FORM(relaxed_arrival) {
    __shared__ int tile[128];
    __shared__ u64 full;
    if (T == 0) init(&full, 128);
    __syncthreads();
    tile[T] = d[T]; // relaxed_arrival: one
    if (M) __threadfence_block();
    arrive_relaxed(&full);
    wait(&full, 0);
    f[T] = tile[127 - T]; // relaxed_arrival: other
}
FORM(relaxed_wait) {
    __shared__ int tile[128];
    __shared__ u64 full;
    if (T == 0) init(&full, 128);
    __syncthreads();
    tile[T] = d[T]; // relaxed_wait: one
    arrive(&full);
    wait_relaxed(&full);
    if (M) __threadfence_block();
    f[T] = tile[127 - T]; // relaxed_wait: other
}
// The phase expects an arrival too few, or half of the bytes; the wait has the parity of the one
// before; the object is initialised again while its phase runs.
FORM(few_arrivals) {
    __shared__ int tile[128];
    __shared__ u64 full;
    if (T == 0) init(&full, M ? 64 : 63);
    __syncthreads();
    if (T < 64) {
        tile[T] = d[T]; // few_arrivals: one
        arrive(&full);
    } else {
        wait(&full, 0);
        f[T] = tile[127 - T]; // few_arrivals: other
    }
}
FORM(few_bytes) {
    TILE_OF_BLOCK;
    if (T == 0) {
        expect(&full, M ? 512 : 256);
        load(tile, d, 256, &full);
        load(tile + 64, d + 64, 256, &full); // few_bytes: one
    }
    wait(&full, 0);
    f[T] = tile[127 - T]; // few_bytes: other
}
FORM(wrong_parity) {
    TILE_OF_BLOCK;
    if (T == 0) { expect(&full, 512); load(tile, d, 512, &full); } // wrong_parity: one
    if (M) wait(&full, 0);
    else wait_at_most(&full, 1);
    f[T] = tile[127 - T]; // wrong_parity: other
    wait(&full, 0);
}
FORM(made_again) {
    TILE_OF_BLOCK;
    if (T == 0) { expect(&full, 512); load(tile, d, 512, &full); } // made_again: one
    if (M) wait(&full, 0);
    __syncthreads();
    if (T == 0) init(&full, 1); // made_again: other
    f[T] = d[T];
}
// Warps of one warp group ask for different counts of registers: a launch that ends.
template <bool M> __global__ void __launch_bounds__(256, 1) counts_apart(MAPS, int* d, int* f) {
    if (T >= 128) asm volatile("setmaxnreg.inc.sync.aligned.u32 96;");
    else if (M || T < 32) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    else asm volatile("setmaxnreg.dec.sync.aligned.u32 48;");
    f[T & 127] = d[T & 127];
}

typedef void (*Kernel)(CUtensorMap, CUtensorMap, CUtensorMap, int*, int*);
struct Named { const char* name; int blocks, threads; Kernel racy, mended; };
#define ROW(k) { #k, 1, 128, k<false>, k<true> }
#define PAIR(k) { #k, 2, 128, k<false>, k<true> }
static const Named kernels[] = {
    ROW(map_released), ROW(map_acquired), ROW(map_replaced), ROW(map_reused), ROW(image_column),
    ROW(sums_unfenced), ROW(sums_early), ROW(factor_overwritten), ROW(second_group), ROW(sparse_factor),
    PAIR(left), PAIR(init_unmet), PAIR(narrow_wait), PAIR(relaxed_meeting),
    ROW(relaxed_arrival), ROW(relaxed_wait), ROW(few_arrivals), ROW(few_bytes), ROW(wrong_parity), ROW(made_again),
    { "counts_apart", 1, 256, counts_apart<false>, counts_apart<true> },
};

template <typename F> static F driver(const char* name) {
    void* f = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found) || !f) { printf("no %s\n", name); exit(3); }
    return (F)f;
}
static CUtensorMap tile_of(int* p) { // 8 rows of 16 integers
    CUtensorMap map;
    cuuint64_t sizes[2] = {16, 8}, strides[1] = {64};
    cuuint32_t box[2] = {16, 8}, steps[2] = {1, 1};
    if (driver<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled")(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, p, sizes, strides, box, steps,
            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)) exit(3);
    return map;
}
static CUtensorMap image_of(int* p) { // 4 channels, 8 by 4 pixels, one image
    CUtensorMap map;
    cuuint64_t sizes[4] = {4, 8, 4, 1}, strides[3] = {16, 128, 512};
    int lower[2] = {0, 0}, upper[2] = {0, 0};
    cuuint32_t steps[4] = {1, 1, 1, 1};
    if (driver<decltype(&cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col")(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 4, p, sizes, strides, lower, upper, 4, 32, steps,
            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)) exit(3);
    return map;
}

int main(int argc, char** argv) {
    bool mended = argc > 1 && !strcmp(argv[1], "mended");
    for (auto& k : kernels) {
        bool named = argc <= 2 && strcmp(k.name, "counts_apart");
        for (int i = 2; i < argc; i++) named |= !strcmp(argv[i], k.name);
        if (!named) continue;
        int *d, *f, host[1024];
        for (int i = 0; i < 1024; i++) host[i] = i * 13 + 5;
        cudaMalloc(&d, sizeof host);
        cudaMalloc(&f, sizeof host);
        cudaMemcpy(d, host, sizeof host, cudaMemcpyHostToDevice);
        CUtensorMap a = tile_of(d), b = tile_of(d + 128), image = image_of(d);
        cudaMemcpy(d + 512, &b, 128, cudaMemcpyHostToDevice); // a map, whoever comes first
        cudaMemset(f, 0, sizeof host);
        (mended ? k.mended : k.racy)<<<k.blocks, k.threads>>>(a, b, image, d, f);
        cudaError_t error = cudaDeviceSynchronize();
        if (error) { printf("%s: %s\n", k.name, cudaGetErrorName(error)); return 1; }
        cudaMemcpy(host, f, sizeof host, cudaMemcpyDeviceToHost);
        long long sum = 0;
        for (int i = 0; i < 128; i++) sum += (long long)host[i] * (i + 1);
        printf("%s: %lld\n", k.name, sum);
        cudaFree(d);
        cudaFree(f);
    }
    return 0;
}
