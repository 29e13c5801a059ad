// Products of warp groups (`wgmma`) of compute capability 9.0a: every type of factors, factors in
// shared memory by each swizzle, in registers, by columns, and a sparse one; and rings of stages of
// which one thread of a warp group hands each back, also in a cluster. `ring_2` and `ring_3` have a
// bug: names of kernels run these only. Prints a digest of each kernel's results. Numbers are
// small, so that every sum is exact.
#include <cstdint>
#include <cstdio>
#include <cstring>

#define T (int)threadIdx.x
typedef unsigned long long u64;
#define DEV __device__ __forceinline__
DEV unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
DEV void fence() { asm volatile("fence.proxy.async;" ::: "memory"); }
DEV void group_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEV void commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> DEV void wait_group() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }
DEV void init(u64* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
DEV void arrive(u64* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(b)) : "memory"); }
DEV void await(u64* b, int parity) {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra D; bra W; D: }" :: "r"(at(b)), "r"(parity) : "memory");
}
DEV void fill(void* s, const void* g, int n, u64* b) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(n) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(at(s)), "l"(g), "r"(n), "r"(at(b)) : "memory");
}
// A matrix descriptor: swizzle 0 is none, 1 of 128 bytes, 2 of 64, 3 of 32.
DEV u64 matrix(const void* p, unsigned leading, unsigned stride, u64 swizzle) {
    return (u64)((at(p) & 0x3ffff) >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32 | swizzle << 62;
}

// Small numbers of a type, by their place: -2 to 2, or 0 to 4 for unsigned ones.
enum Type { F16, BF16, TF32, E4M3, E5M2, S8, U8 };
__host__ __device__ constexpr int size_of(Type t) { return t == TF32 ? 4 : t == F16 || t == BF16 ? 2 : 1; }
DEV unsigned number(Type t, int at) {
    int v = (at * 7 + at / 5) % 5, n = v - 2, m = n < 0 ? -n : n;
    unsigned sign = n < 0;
    if (t == F16) return (m == 0 ? 0 : m == 1 ? 0x3c00 : 0x4000) | sign << 15;
    if (t == BF16) return __float_as_uint((float)n) >> 16;
    if (t == TF32) return __float_as_uint((float)n);
    if (t == E4M3) return m ? (m == 1 ? 0x38 : 0x40) | sign << 7 : 0;
    if (t == E5M2) return m ? (m == 1 ? 0x3c : 0x40) | sign << 7 : 0;
    return t == S8 ? n * 50 & 0xff : v * 60;
}
DEV void put(char* s, Type t, int at, int which) {
    unsigned n = number(t, at + which);
    if (size_of(t) == 4) ((unsigned*)s)[at] = n;
    else if (size_of(t) == 2) ((unsigned short*)s)[at] = n;
    else ((unsigned char*)s)[at] = n;
}
template <Type A, Type B> DEV void factors(char* a, char* b) {
    for (int i = T; i < 8192 / size_of(A); i += 128) put(a, A, i, 0);
    for (int i = T; i < 8192 / size_of(B); i += 128) put(b, B, i, 3);
    fence();
    __syncthreads();
}

#define EIGHT "{%0, %1, %2, %3, %4, %5, %6, %7}"
#define FOUR "{%0, %1, %2, %3}"
#define SUMS "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
#define ALL_SUMS SUMS, "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7])
#define SHARED_FORM(name, A, B, shape, form, columns, tail) \
    __global__ void name(const char*, unsigned* out) { \
        __shared__ __align__(1024) char a[8192], b[8192]; \
        factors<A, B>(a, b); \
        for (u64 swizzle = 0; swizzle < 4; swizzle++) { \
            unsigned units[] = {1, 8, 4, 2}, stride = swizzle ? 128 * units[swizzle] : 256, leading = !swizzle ? 128 : columns ? 256 * units[swizzle] : 16; \
            unsigned d[8] = {0, 0, 0, 0, 0, 0, 0, 0}; \
            group_fence(); \
            for (int k = 0; k < 2; k++) \
                asm volatile("{ .reg .pred p; setp.ne.b32 p, %10, 0; wgmma.mma_async.sync.aligned." shape "." form " " EIGHT ", %8, %9, p" tail "; }" \
                    : ALL_SUMS : "l"(matrix(a, leading, stride, swizzle)), "l"(matrix(b, leading, stride, swizzle)), "r"(k) : "memory"); \
            commit_group(); \
            wait_group<0>(); \
            for (int r = 0; r < 8; r++) out[(swizzle * 128 + T) * 8 + r] = d[r]; \
        } \
    }
SHARED_FORM(half, F16, F16, "m64n16k16", "f32.f16.f16", false, ", 1, 1, 0, 0")
SHARED_FORM(negated, F16, F16, "m64n16k16", "f32.f16.f16", false, ", -1, 1, 0, 0")
SHARED_FORM(by_columns, F16, F16, "m64n16k16", "f32.f16.f16", true, ", 1, 1, 1, 1")
SHARED_FORM(brain, BF16, BF16, "m64n16k16", "f32.bf16.bf16", false, ", 1, 1, 0, 0")
SHARED_FORM(tf32, TF32, TF32, "m64n16k8", "f32.tf32.tf32", false, ", 1, 1")
SHARED_FORM(e4m3, E4M3, E4M3, "m64n16k32", "f32.e4m3.e4m3", false, ", 1, 1")
SHARED_FORM(e5m2, E5M2, E4M3, "m64n16k32", "f32.e5m2.e4m3", false, ", 1, 1")
SHARED_FORM(bytes, S8, U8, "m64n16k32", "s32.s8.u8", false, "")

// Sums of 16 bits: two in a register.
__global__ void half_sums(const char*, unsigned* out) {
    __shared__ __align__(1024) char a[8192], b[8192];
    factors<F16, F16>(a, b);
    unsigned d[4] = {0, 0, 0, 0};
    group_fence();
    for (int k = 0; k < 2; k++)
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0; wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 " FOUR ", %4, %5, p, 1, 1, 0, 0; }"
            : SUMS : "l"(matrix(a, 128, 256, 0)), "l"(matrix(b, 128, 256, 0)), "r"(k) : "memory");
    commit_group();
    wait_group<0>();
    for (int r = 0; r < 4; r++) out[T * 4 + r] = d[r];
}

__global__ void registers(const char*, unsigned* out) {
    __shared__ __align__(1024) char a[8192], b[8192];
    factors<F16, F16>(a, b);
    unsigned d[8] = {0, 0, 0, 0, 0, 0, 0, 0}, f[4];
    for (int r = 0; r < 4; r++) f[r] = ((const unsigned*)a)[T * 4 + r];
    group_fence();
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 " EIGHT ", {%8, %9, %10, %11}, %12, p, 1, 1, 0; }"
        : ALL_SUMS : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "l"(matrix(b, 128, 256, 0)) : "memory");
    commit_group();
    wait_group<0>();
    for (int r = 0; r < 8; r++) out[T * 8 + r] = d[r];
}

__global__ void sparse(const char*, unsigned* out) {
    __shared__ __align__(1024) char a[8192], b[8192];
    factors<F16, F16>(a, b);
    unsigned d[8] = {0, 0, 0, 0, 0, 0, 0, 0}, metadata = T & 1 ? 0x44444444 : 0xeeeeeeee;
    group_fence();
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 0, 0; wgmma.mma_async.sp.sync.aligned.m64n16k32.f32.f16.f16 " EIGHT ", %8, %9, %10, 0, p, 1, 1, 0, 0; }"
        : ALL_SUMS : "l"(matrix(a, 128, 256, 0)), "l"(matrix(b, 128, 512, 0)), "r"(metadata) : "memory");
    commit_group();
    wait_group<0>();
    for (int r = 0; r < 8; r++) out[T * 8 + r] = d[r];
}

// Two warp groups multiply what another warp has filled stages with. W: 0 is mended, and so is 1,
// which has a product under way and hands the stage before back; 2 hands back the stage of the
// product that is under way; in 3 the second warp group hands none back.
template <int W> DEV void ring(const char* in, unsigned* out) {
    __shared__ __align__(128) char stages[2][2304];
    __shared__ u64 full[2], empty[2];
    if (T == 0) {
        for (int i = 0; i < 2; i++) init(full + i, 1), init(empty + i, W == 3 ? 1 : 2);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (T >= 256) {
        if (T == 256)
            for (int k = 0; k < 6; k++) {
                if (k >= 2) await(&empty[k % 2], k / 2 - 1 & 1);
                fill(stages[k % 2], in + k * 2304, 2304, &full[k % 2]);
            }
        return;
    }
    unsigned d[4] = {0, 0, 0, 0};
    bool hands = T % 128 == 64 && (W != 3 || T < 128);
    for (int k = 0; k < 6; k++) {
        await(&full[k % 2], k / 2 & 1);
        group_fence();
        asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " FOUR ", %4, %5, p, 1, 1, 0, 0; }"
            : SUMS : "l"(matrix(stages[k % 2], 128, 256, 0)), "l"(matrix(stages[k % 2] + 2048, 128, 256, 0)) : "memory");
        commit_group();
        if (W == 1 || W == 2) wait_group<1>();
        else wait_group<0>();
        if (W == 1) {
            if (hands && k > 0) arrive(&empty[(k - 1) % 2]);
        } else if (hands) arrive(&empty[k % 2]);
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS :: "memory");
    for (int r = 0; r < 4; r++) out[(blockIdx.x * 256 + T) * 4 + r] = d[r];
}
__global__ void ring_0(const char* in, unsigned* out) { ring<0>(in, out); }
__global__ void ring_1(const char* in, unsigned* out) { ring<1>(in, out); }
__global__ void ring_2(const char* in, unsigned* out) { ring<2>(in, out); }
__global__ void ring_3(const char* in, unsigned* out) { ring<3>(in, out); }
__global__ void __cluster_dims__(2, 1, 1) pair(const char* in, unsigned* out) { ring<1>(in, out); }

struct Kernel { const char* name; void (*run)(const char*, unsigned*); int threads, blocks; bool bug; };
#define K(name, threads) {#name, name, threads, 1, false}
static const Kernel kernels[] = {
    K(half, 128), K(negated, 128), K(by_columns, 128), K(brain, 128), K(tf32, 128), K(e4m3, 128), K(e5m2, 128), K(bytes, 128),
    K(half_sums, 128), K(registers, 128), K(sparse, 128), K(ring_0, 288), K(ring_1, 288),
    {"pair", pair, 288, 2, false}, {"ring_2", ring_2, 288, 1, true}, {"ring_3", ring_3, 288, 1, true},
};

int main(int argc, char** argv) {
    static unsigned out[4096];
    static unsigned short in[6 * 1152];
    const unsigned short numbers[] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600}; // 1 to 6
    for (int i = 0; i < 6 * 1152; i++) in[i] = i % 1152 < 1024 ? numbers[i / 1152] : 0x3c00;
    for (auto& k : kernels) {
        bool named = argc < 2 && !k.bug;
        for (int i = 1; i < argc; i++) named |= !strcmp(argv[i], k.name);
        if (!named) continue;
        char* d;
        unsigned* f;
        cudaMalloc(&d, sizeof in), cudaMalloc(&f, sizeof out);
        cudaMemcpy(d, in, sizeof in, cudaMemcpyHostToDevice), cudaMemset(f, 0, sizeof out);
        k.run<<<k.blocks, k.threads>>>(d, f);
        cudaError_t error = cudaDeviceSynchronize();
        if (error) { printf("%s: %s\n", k.name, cudaGetErrorName(error)); return 1; }
        cudaMemcpy(out, f, sizeof out, cudaMemcpyDeviceToHost);
        u64 digest = 0xcbf29ce484222325;
        for (unsigned word : out) digest = (digest ^ word) * 0x100000001b3;
        printf("%s: %016llx\n", k.name, digest);
        cudaFree(d), cudaFree(f);
    }
    return 0;
}
