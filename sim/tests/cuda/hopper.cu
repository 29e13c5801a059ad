// Kernels of compute capability 9.0a: maps that a kernel makes, columns of images, registers that
// warp groups hand to each other, products with a sparse factor.
#define T (int)threadIdx.x
typedef unsigned long long u64;
struct alignas(64) Map { char bytes[128]; };
__device__ __forceinline__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void init(u64* bar, int n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(bar)), "r"(n) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void expect(u64* bar, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(bar)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void await(u64* bar, int parity) {
    int done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
            : "=r"(done) : "r"(at(bar)), "r"(parity) : "memory");
}

// Maps that a kernel makes.

#define REPLACE(field, type, constraint, value) \
    asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type " [%0], %1;" ::"l"((u64)at(m)), constraint(value) : "memory")
#define REPLACE_AXIS(field, type, axis, constraint, value) \
    asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type " [%0], " #axis ", %1;" ::"l"((u64)at(m)), constraint(value) : "memory")

// W: 0 is mended; 1: nothing orders the warp that makes the map and the one that uses it.
template <int W> __device__ void makes_map(const int* d, int* f, Map* maps) {
    __shared__ alignas(128) int m[32];
    __shared__ alignas(1024) int tile[256];
    __shared__ u64 bar;
    if (T == 0) init(&bar, 1);
    __syncthreads();
    if (T < 32) {
        m[T] = 0;
        __syncwarp();
        if (T == 0) {
            REPLACE("global_address", "b64", "l", d);
            REPLACE("rank", "b32", "r", 1);
            REPLACE_AXIS("box_dim", "b32", 0, "r", 32);
            REPLACE_AXIS("box_dim", "b32", 1, "r", 8);
            REPLACE_AXIS("global_dim", "b32", 0, "r", 40);
            REPLACE_AXIS("global_dim", "b32", 1, "r", 20);
            REPLACE_AXIS("global_stride", "b64", 0, "l", 160ull);
            REPLACE_AXIS("element_stride", "b32", 0, "r", 1);
            REPLACE_AXIS("element_stride", "b32", 1, "r", 1);
            REPLACE("elemtype", "b32", "n", 3);
            REPLACE("interleave_layout", "b32", "n", 0);
            REPLACE("swizzle_mode", "b32", "n", 3);
            REPLACE("fill_mode", "b32", "n", 0);
        }
        __syncwarp();
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
            ::"l"(maps), "r"(at(m)) : "memory");
    }
    if (W == 0) __syncthreads();
    if (T == 32) {
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(maps) : "memory");
        expect(&bar, 1024);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
            ::"r"(at(tile)), "l"(maps), "r"(4), "r"(16), "r"(at(&bar)) : "memory");
    }
    await(&bar, 0);
    for (int i = T; i < 256; i += 64) f[i] = tile[i];
}
extern "C" __global__ void makes_map_0(const int* d, int* f, Map* maps) { makes_map<0>(d, f, maps); }
extern "C" __global__ void makes_map_1(const int* d, int* f, Map* maps) { makes_map<1>(d, f, maps); }

// Columns of images, of four axes: channels, columns, rows, images.

extern "C" __global__ void column(const __grid_constant__ Map map, int* f, int count, int c, int w, int h, int n, int right, int down) {
    __shared__ alignas(1024) int tile[512];
    __shared__ u64 bar;
    if (T == 0) init(&bar, 1);
    __syncthreads();
    if (T == 0) {
        expect(&bar, count * 4);
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};"
            ::"r"(at(tile)), "l"(&map), "r"(c), "r"(w), "r"(h), "r"(n), "r"(at(&bar)), "h"((short)right), "h"((short)down) : "memory");
    }
    await(&bar, 0);
    for (int i = T; i < count; i += blockDim.x) f[i] = tile[i];
}
extern "C" __global__ void column_back(const __grid_constant__ Map map, int count, int c, int w, int h, int n) {
    __shared__ alignas(1024) int tile[512];
    for (int i = T; i < count; i += blockDim.x) tile[i] = 1000 + i;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (T == 0) {
        asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%1, %2, %3, %4}], [%5];"
            ::"l"(&map), "r"(c), "r"(w), "r"(h), "r"(n), "r"(at(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// All lanes of a warp issue a store with the same operands, as CUTLASS's epilogues do: it is one.
// Reductions are as many as lanes.
extern "C" __global__ void issued_by_a_warp(int* to, int* sums) {
    __shared__ alignas(128) int tile[64];
    if (T < 64) tile[T] = T + 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (T < 32) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(to), "r"(at(tile)) : "memory");
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], 256;" ::"l"(sums), "r"(at(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
// Each lane has operands of its own: each issues one.
extern "C" __global__ void issued_by_each_lane(int* to, int* sums) {
    __shared__ alignas(128) int tile[128];
    if (T < 128) tile[T] = T + 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (T < 32) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" ::"l"(to + 4 * T), "r"(at(tile + 4 * T)) : "memory");
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], 16;" ::"l"(sums), "r"(at(tile + 4 * T)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// Registers: W 0 is right; 1: nobody releases what others wait for; 2: released to more than there
// are; 3: warps of one group ask for different counts.

template <int W> __device__ void registers(int* f) {
    if (T < 128) {
        if (W == 0) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (W == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 200;");
        if (W == 3 && T < 32) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (W == 3 && T >= 32) asm volatile("setmaxnreg.dec.sync.aligned.u32 48;");
        if (W == 1) __syncthreads();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        if (W == 1) __syncthreads();
    }
    f[T] = T + 1;
}
extern "C" __global__ __launch_bounds__(384, 1) void registers_0(int* f) { registers<0>(f); }
extern "C" __global__ __launch_bounds__(384, 1) void registers_1(int* f) { registers<1>(f); }
extern "C" __global__ __launch_bounds__(384, 1) void registers_2(int* f) { registers<2>(f); }
extern "C" __global__ __launch_bounds__(384, 1) void registers_3(int* f) { registers<3>(f); }
// The assembler ignores what lacks bounds: nobody waits.
extern "C" __global__ void registers_4(int* f) { registers<1>(f); }

// Products whose first factor is sparse. Both lie in cores of 8 by 16 bytes, one behind the other
// along the inner index: 2 of the first factor, 4 of the second.

#define SPARSE(name, shape, sum, selector, tail) \
extern "C" __global__ void name(const int4* ia, const int4* ib, const unsigned* metadata, unsigned* out) { \
    __shared__ __align__(128) int4 sa[128]; \
    __shared__ __align__(128) int4 sb[32]; \
    sa[T] = ia[T]; \
    if (T < 32) sb[T] = ib[T]; \
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); \
    __syncthreads(); \
    u64 a = (u64)(at(sa) >> 4) | (u64)(128 >> 4) << 16 | (u64)(256 >> 4) << 32; \
    u64 b = (u64)(at(sb) >> 4) | (u64)(128 >> 4) << 16 | (u64)(512 >> 4) << 32; \
    sum d[4] = {0, 0, 0, 0}; \
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sp.sync.aligned." shape " {%0, %1, %2, %3}, %4, %5, %6, " #selector ", p" tail "; }" \
        : CONSTRAINT_##sum(d[0]), CONSTRAINT_##sum(d[1]), CONSTRAINT_##sum(d[2]), CONSTRAINT_##sum(d[3]) : "l"(a), "l"(b), "r"(metadata[T]) : "memory"); \
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); \
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); \
    for (int r = 0; r < 4; r++) out[T * 4 + r] = *(unsigned*)&d[r]; \
}
#define CONSTRAINT_float "+f"
#define CONSTRAINT_int "+r"
SPARSE(sparse_f16_0, "m64n8k32.f32.f16.f16", float, 0, ", 1, 1, 0, 0")
SPARSE(sparse_f16_1, "m64n8k32.f32.f16.f16", float, 1, ", 1, -1, 0, 0")
SPARSE(sparse_tf32, "m64n8k16.f32.tf32.tf32", float, 1, ", 1, 1")
SPARSE(sparse_s8, "m64n8k64.s32.s8.s8", int, 0, "")
