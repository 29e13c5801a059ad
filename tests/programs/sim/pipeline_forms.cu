// Pipelines of Hopper in 100 forms, written from CUDA's manual and the PTX ISA: each kernel as it
// should be (V = 0), and with one change (V > 0). `pipeline_forms V KERNEL` launches form V of each
// kernel from this one on that has it, until one fails.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#define D __device__ __forceinline__
typedef unsigned long long u64; typedef unsigned u32;
D u32 sa(const void* p) { return (u32)__cvta_generic_to_shared(p); }
D void bar_init(u64* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(sa(b)), "r"(n) : "memory"); }
D void bar_inval(u64* b) { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(sa(b)) : "memory"); }
D void bar_expect(u64* b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(sa(b)), "r"(n) : "memory"); }
D void bar_arrive(u64* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(sa(b)) : "memory"); }
D void bar_arrive_relaxed(u64* b) { asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" :: "r"(sa(b)) : "memory"); }
D void bar_arrive_at(u64* b, u32 rank) { asm volatile("{.reg .b32 r; mapa.shared::cluster.u32 r, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];}" :: "r"(sa(b)), "r"(rank) : "memory"); }
D void bar_wait(u64* b, u32 ph) { asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra L;}" :: "r"(sa(b)), "r"(ph) : "memory"); }
D void bar_wait_cluster(u64* b, u32 ph) { asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @!p bra L;}" :: "r"(sa(b)), "r"(ph) : "memory"); }
D void bulk_in(void* s, const void* g, int n, u64* b) { asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(sa(s)), "l"(g), "r"(n), "r"(sa(b)) : "memory"); }
D void bulk_in_all(void* s, const void* g, int n, u64* b, unsigned short m) { asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" :: "r"(sa(s)), "l"(g), "r"(n), "r"(sa(b)), "h"(m) : "memory"); }
D void bulk_out(void* g, const void* s, int n) { asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(g), "r"(sa(s)), "r"(n) : "memory"); }
D void bulk_add(void* g, const void* s, int n) { asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;" :: "l"(g), "r"(sa(s)), "r"(n) : "memory"); }
D void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> D void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(N) : "memory"); }
template <int N> D void bulk_wait() { asm volatile("cp.async.bulk.wait_group %0;" :: "n"(N) : "memory"); }
D void proxy_fence() { asm volatile("fence.proxy.async;" ::: "memory"); }
D void proxy_fence_cta() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
D void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
D u32 rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
D void cl_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
D void cl_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
D void cl_sync() { cl_arrive(); cl_wait(); }
D void nb_sync(int id, int n) { asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(n) : "memory"); }
D void nb_arrive(int id, int n) { asm volatile("bar.arrive %0, %1;" :: "r"(id), "r"(n) : "memory"); }
D void cpa(void* s, const void* g) { asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(sa(s)), "l"(g) : "memory"); }
D void cpa_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> D void cpa_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); }
D void cpa_bar(u64* b) { asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(sa(b)) : "memory"); }
#define X (int)threadIdx.x
#define K template <int V> __global__ void

// 1: one producer warp, three consumer warps, three stages.
K three(const int* in, int* out) {
    __shared__ __align__(128) int st[3][64]; __shared__ u64 full[3], empty[3];
    if (X == 0) { for (int i = 0; i < 3; i++) { bar_init(full + i, 1); bar_init(empty + i, 3); } }
    __syncthreads();
    int w = X / 32;
    if (w == 0) {
        if (X == 0) for (int k = 0; k < 9; k++) {
            int s = k % 3, r = k / 3;
            if (k >= (V == 4 ? 4 : 3)) bar_wait(empty + s, (r & 1) ^ 1);
            bar_expect(full + s, 256); bulk_in(st[s], in + k * 64, 256, full + s);
        }
    } else {
        int sum = 0;
        for (int k = 0; k < 9; k++) {
            int s = k % 3, r = k / 3;
            if (V != 3 || w != 2) bar_wait(full + s, r & 1); else if (k % 3) bar_wait(full + s, r & 1);
            if (V == 1 && X % 32 == 0) bar_arrive(empty + s);
            sum += st[s][(X * 2 + w) % 64] + st[s][X % 64];
            if (V != 2) __syncwarp();
            if (V != 1 && X % 32 == 0) bar_arrive(empty + s);
        }
        out[X] = sum;
    }
}
// 2: two buffers that go out by bulk stores.
K outs(const int* in, int* out) {
    __shared__ __align__(128) int b[2][128];
    for (int k = 0; k < 6; k++) {
        int s = k & 1;
        if (X == 0) { if (V == 1) bulk_wait_read<2>(); else bulk_wait_read<1>(); }
        if (V != 2) __syncthreads();
        if (V == 3) proxy_fence();
        b[s][X] = in[k * 128 + X] * (k + 1);
        if (V != 3 && V != 4) proxy_fence();
        if (V == 4 && X == 0) proxy_fence();
        __syncthreads();
        if (X == 0) { bulk_out(out + k * 128, b[s], 512); bulk_commit(); }
    }
    if (X == 0) bulk_wait_read<0>();
}
// 3: a cluster of two; block 0 loads for both.
K multi(const int* in, int* out) {
    __shared__ __align__(128) int st[2][128]; __shared__ u64 full[2], empty[2];
    u32 me = rank();
    if (X == 0) { for (int i = 0; i < 2; i++) { bar_init(full + i, 1); bar_init(empty + i, V == 1 ? 96 : 192); } fence_init(); }
    if (V == 3) __syncthreads(); else cl_sync();
    if (X < 32) {
        if (X == 0) for (int k = 0; k < 6; k++) {
            int s = k & 1, r = k / 2;
            if (me == 0) {
                if (k >= 2) bar_wait_cluster(empty + s, (r & 1) ^ 1);
                bar_expect(full + s, 512);
                bulk_in_all(st[s], in + k * 128, 512, full + s, 3);
            } else { if (k >= 2) bar_wait(full + s, (r & 1) ^ 1); bar_expect(full + s, 512); }
        }
    } else {
        int sum = 0;
        for (int k = 0; k < 6; k++) {
            int s = k & 1, r = k / 2;
            bar_wait(full + s, r & 1);
            if (V == 2 && me == 1) bar_arrive_at(empty + s, 0);
            sum += st[s][X] ^ st[s][127 - X];
            if (V == 1) { if (me == 0) bar_arrive(empty + s); }
            else if (!(V == 2 && me == 1)) bar_arrive_at(empty + s, 0);
        }
        out[me * 128 + X] = sum;
    }
    if (V != 4) cl_sync();
}
// 4: reductions into global memory, then the result is read.
K reduces(const int* in, int* out) {
    __shared__ __align__(128) int b[128];
    b[X] = in[X] + blockIdx.x;
    if (V != 2) proxy_fence_cta();
    __syncthreads();
    if (X == 0) { bulk_add(out + blockIdx.x * 128, b, 512); bulk_commit(); if (V == 1) bulk_wait_read<0>(); else if (V != 4) bulk_wait<0>(); }
    if (V != 3) __syncthreads();
    if (V == 4) { b[X] = 3; __syncthreads(); if (X == 0) bulk_wait<0>(); __syncthreads(); }
    out[1024 + blockIdx.x * 128 + X] = out[blockIdx.x * 128 + 127 - X];
}
// 5: a tile that is loaded, changed in place, stored, and loaded again.
K reuse(const int* in, int* out) {
    __shared__ __align__(128) int t[128]; __shared__ u64 full;
    if (X == 0) bar_init(&full, 1);
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        if (X == 0) { if (V != 1) bulk_wait_read<0>(); bar_expect(&full, 512); bulk_in(t, in + k * 128, 512, &full); }
        if (V != 4 || X < 32) bar_wait(&full, k & 1);
        t[X] = t[X] * 3 + k;
        if (V != 2) proxy_fence();
        if (V != 3) __syncthreads(); else __syncwarp();
        if (X == 0) { bulk_out(out + k * 128, t, 512); bulk_commit(); }
        if (V == 3) __syncthreads();
    }
    if (X == 0) bulk_wait_read<0>();
}
// 7: warp groups hand one buffer to and fro by named barriers.
K pingpong(const int* in, int* out) {
    __shared__ int b[128];
    int g = X / 128, t = X % 128, sum = 0;
    for (int k = 0; k < 4; k++) {
        if (g == 0) {
            if (k && V != 2) nb_sync(2, 256);
            if (k && V == 2 && k != 2) nb_sync(2, 256);
            b[t] = in[k * 128 + t];
            if (V == 3) { if (t == 0) __threadfence_block(); nb_arrive(1 + 2 * (k & 1), 256); } else nb_arrive(1, 256);
        } else {
            if (V == 3) nb_sync(1 + 2 * (k & 1), 256); else nb_sync(1, 256);
            if (V == 1 && k < 3) nb_arrive(2, 256);
            sum += b[127 - t];
            if (V == 4) { if (k < 3) nb_arrive(2, 256); sum += b[t]; }
            else if (V != 1 && k < 3 && !(V == 2 && k == 1)) nb_arrive(2, 256);
        }
    }
    if (g) out[t] = sum;
}
// 9: four warps write tiles, a fifth one stores them.
K handed(const int* in, int* out) {
    __shared__ __align__(128) int b[2][128]; __shared__ u64 ready[2], gone[2];
    if (X == 0) for (int i = 0; i < 2; i++) { bar_init(ready + i, V == 4 ? 4 : 128); bar_init(gone + i, 1); }
    __syncthreads();
    if (X >= 128) {
        if (X == 128) {
            for (int k = 0; k < 6; k++) {
                int s = k & 1;
                bar_wait(ready + s, k / 2 & 1);
                bulk_out(out + k * 128, b[s], 512); bulk_commit();
                if (V != 2) bulk_wait_read<0>();
                bar_arrive(gone + s);
            }
            bulk_wait_read<0>();
        }
    } else for (int k = 0; k < 6; k++) {
        int s = k & 1;
        if (k >= 2 && V != 5) bar_wait(gone + s, (k / 2 & 1) ^ 1);
        b[s][X] = in[k * 128 + X] + k;
        if (V != 1) proxy_fence();
        if (V == 3) bar_arrive_relaxed(ready + s);
        else if (V == 4) { if (X % 32 == 0) bar_arrive(ready + s); }
        else bar_arrive(ready + s);
    }
}
// 10: copies between the blocks of a cluster.
K dsm(const int* in, int* out) {
    __shared__ __align__(128) int src[128], dst[2][128]; __shared__ u64 full[2], empty;
    u32 me = rank(), other = me ^ 1;
    if (X == 0) { bar_init(full, 1); bar_init(full + 1, 1); bar_init(&empty, 128); fence_init(); }
    cl_sync();
    int sum = 0;
    for (int k = 0; k < 4; k++) {
        if (X == 0) bar_expect(full + (k & 1), 512);
        __syncthreads();
        src[X] = in[me * 512 + k * 128 + X];
        if (V != 2) proxy_fence();
        __syncthreads();
        if (X == 0) {
            asm volatile("{.reg .b32 a, b; mapa.shared::cluster.u32 a, %0, %3; mapa.shared::cluster.u32 b, %1, %3; cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [a], [%2], 512, [b];}"
                :: "r"(sa(dst[k & 1])), "r"(sa(full + (k & 1))), "r"(sa(src)), "r"(other) : "memory");
        }
        if (V != 1) bar_wait(full + (k & 1), k / 2 & 1);
        if (V == 3) bar_arrive_at(&empty, other);
        sum += dst[k & 1][127 - X] + dst[0][X & 63];
        if (V == 1) bar_wait(full + (k & 1), k / 2 & 1);
        if (V == 5) bar_arrive(&empty); else if (V != 3) bar_arrive_at(&empty, other);
        // The source may be written again when the other block has the bytes.
        if (V != 4) bar_wait_cluster(&empty, k & 1);
    }
    out[me * 128 + X] = sum;
    cl_sync();
}
// 11: cp.async that reports to barrier objects, then a bulk store of what it wrote.
K copies(const int* in, int* out) {
    __shared__ __align__(128) int b[2][128]; __shared__ u64 full[2];
    if (X == 0) { bar_init(full, 32); bar_init(full + 1, 32); }
    __syncthreads();
    if (X < 32) {
        for (int s = 0; s < 2; s++) {
            cpa(&b[s][X * 4], in + s * 128 + X * 4);
            if (V == 1) bar_arrive(full + s); else cpa_bar(full + s);
        }
    }
    if (X >= 32) {
        for (int s = 0; s < 2; s++) {
            if (V == 3) bar_wait(full, 0); else bar_wait(full + s, 0);
            if (V == 0 || V == 1 || V == 3) proxy_fence();
            if (X == 32) { bulk_out(out + s * 128, b[s], 512); bulk_commit(); }
        }
        if (X == 32) bulk_wait_read<0>();
    }
    cpa_wait<0>();
}
// 12: a block stores a tile by a bulk store and raises a flag; another one loads it.
K tile_flag(const int* in, int* out) {
    __shared__ __align__(128) int t[128]; __shared__ u64 full;
    int* tile = out + 1024; unsigned* flag = (unsigned*)(out + 2048);
    if (blockIdx.x == 0) {
        t[X] = in[X] * 5;
        proxy_fence(); __syncthreads();
        if (X == 0) {
            bulk_out(tile, t, 512); bulk_commit();
            if (V == 1) bulk_wait_read<0>(); else if (V != 2) bulk_wait<0>();
            if (V != 4) proxy_fence();
            if (V == 3) asm volatile("st.relaxed.gpu.u32 [%0], 1;" :: "l"(flag) : "memory");
            else asm volatile("st.release.gpu.u32 [%0], 1;" :: "l"(flag) : "memory");
            bulk_wait<0>();
        }
    } else {
        if (X == 0) {
            bar_init(&full, 1); proxy_fence();
            unsigned v; do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory"); while (!v);
            if (V != 4) proxy_fence();
            bar_expect(&full, 512); bulk_in(t, tile, 512, &full);
        }
        __syncthreads();
        bar_wait(&full, 0);
        out[X] = t[127 - X];
    }
}
// 13: phases of one barrier object that a persistent loop goes round; the number of steps is odd.
K wraps(const int* in, int* out) {
    __shared__ __align__(128) int st[3][128]; __shared__ u64 full[3];
    if (X == 0) for (int i = 0; i < 3; i++) bar_init(full + i, 1);
    __syncthreads();
    int sum = 0, step = 0, phase = 0;
    for (int tile = 0; tile < 2; tile++) {
        if (X == 0) for (int i = 0; i < 2; i++) { bar_expect(full + (step + i) % 3, 512); bulk_in(st[(step + i) % 3], in + (tile * 5 + i) * 128, 512, full + (step + i) % 3); }
        for (int k = 0; k < 5; k++, step++) {
            int s = step % 3;
            bar_wait(full + s, V == 1 ? (k / 3 & 1) : (V == 2 && tile) ? !(step / 3 & 1) : step / 3 & 1);
            sum += st[s][127 - X];
            if (V != 3) __syncthreads();
            if (X == 0 && k + 2 < 5) { int n = (step + 2) % 3; bar_expect(full + n, 512); bulk_in(st[n], in + (tile * 5 + k + 2) * 128, 512, full + n); }
        }
        __syncthreads();
    }
    out[X] = sum + phase;
}
// 14: a barrier object's memory is used for data after it was made invalid.
K inval(const int* in, int* out) {
    __shared__ __align__(128) int t[128]; __shared__ u64 full;
    if (X == 0) { bar_init(&full, 1); }
    __syncthreads();
    if (X == 0) { bar_expect(&full, 512); bulk_in(t, in, 512, &full); }
    bar_wait(&full, 0);
    int v = t[127 - X];
    if (V != 1) __syncthreads();
    if (X == 0) { bar_inval(&full); *(int*)&full = 7; }
    if (V != 2) __syncthreads();
    out[X] = v + *(int*)&full;
}
// 15: a consumer reads the next stage early by test_wait and falls back.
K peek(const int* in, int* out) {
    __shared__ __align__(128) int st[2][128]; __shared__ u64 full[2];
    if (X == 0) { bar_init(full, 1); bar_init(full + 1, 1); }
    __syncthreads();
    if (X == 0) for (int i = 0; i < 2; i++) { bar_expect(full + i, 512); bulk_in(st[i], in + i * 128, 512, full + i); }
    int sum = 0;
    for (int s = 0; s < 2; s++) {
        u32 ok;
        asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; selp.b32 %0, 1, 0, p;}" : "=r"(ok) : "r"(sa(full + s)) : "memory");
        if (V == 1) { if (ok) bar_wait(full + s, 0); } else if (!ok) bar_wait(full + s, 0);
        sum += st[s][127 - X];
    }
    out[X] = sum;
}
#undef K
#define K template <int V> __global__ void __launch_bounds__(384, 1)
D u64 desc(const void* p) { return (u64)((sa(p) & 0x3ffff) >> 4) | (u64)(128 >> 4) << 16 | (u64)(256 >> 4) << 32; }
D void mma(float (&d)[4], const void* a, const void* b, int acc = 1) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(desc(a)), "l"(desc(b)), "r"(acc) : "memory");
}
D void mma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
D void mma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> D void mma_wait(float (&d)[4]) { asm volatile("wgmma.wait_group.sync.aligned %4;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "n"(N) : "memory"); }
// A: 64x16 halves = 2048 bytes, B: 16x8 = 256 bytes.
struct __align__(128) Stage { char a[2048]; char b[256]; };

// 1: producer warp group gives registers away; two consumer warp groups share B, each has its A.
K spec(const int* in, int* out) {
    __shared__ Stage st[2]; __shared__ __align__(128) char a2[2][2048]; __shared__ u64 full[2], empty[2];
    if (X == 0) { for (int i = 0; i < 2; i++) { bar_init(full + i, 1); bar_init(empty + i, V == 5 ? 1 : 2); } fence_init(); }
    __syncthreads();
    int g = X / 128;
    if (g == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (X == 0) for (int k = 0; k < 6; k++) {
            int s = k & 1;
            if (k >= 2) bar_wait(empty + s, (k / 2 & 1) ^ 1);
            bar_expect(full + s, V == 6 ? 2048 + 256 : 2048 * 2 + 256);
            if (V == 6) { asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 2048;" :: "r"(sa(full + s)) : "memory"); }
            bulk_in(st[s].a, in + k * 64, 2048, full + s);
            bulk_in(a2[s], in + 512 + k * 64, 2048, full + s);
            bulk_in(st[s].b, in + 1024 + k * 16, 256, full + s);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 120;");
        float d[4] = {};
        for (int k = 0; k < 6; k++) {
            int s = k & 1;
            if (V != 4 || X % 128 < 32 || k != 3) bar_wait(full + s, k / 2 & 1);
            mma_fence();
            mma(d, g == 1 ? st[s].a : a2[s], st[s].b);
            mma_commit();
            if (V == 1) { if (X % 128 == 0) bar_arrive(empty + s); mma_wait<0>(d); continue; }
            if (V == 2) mma_wait<1>(d); else mma_wait<0>(d);
            if (V == 3) { if (g == 1 && X % 128 == 0) { bar_arrive(empty + s); bar_arrive(empty + s); } continue; }
            if (V == 5) { if (g == 1 && X % 128 == 0) bar_arrive(empty + s); }
            else if (X % 128 == 0) bar_arrive(empty + s);
        }
        mma_wait<0>(d);
        out[X] = (int)d[0] + (int)d[3];
    }
}
// 2: the factor is written by threads (converted), then multiplied.
K convert(const int* in, int* out) {
    __shared__ Stage st[2];
    float d[4] = {};
    for (int k = 0; k < 4; k++) {
        Stage& s = st[k & 1];
        for (int i = X; i < 512; i += 128) ((int*)s.a)[i] = in[k * 64 + i] & 0x3c003c00;
        if (X < 64) ((int*)s.b)[X] = in[512 + k * 16 + X] & 0x3c003c00;
        if (V != 1) proxy_fence_cta();
        if (V != 2) __syncthreads(); else { nb_sync(1 + X / 64, 64); }
        mma_fence();
        mma(d, s.a, s.b);
        mma_commit();
        if (V == 3) mma_wait<2>(d); else mma_wait<1>(d);
        if (V == 3) continue;
        if (V != 4) __syncthreads();
    }
    mma_wait<0>(d);
    out[X] = (int)d[1];
}
// 3: st.async to the peer.
K stasync(const int* in, int* out) {
    __shared__ __align__(16) int dst[2][128]; __shared__ u64 full[2], empty[2];
    u32 me = rank(), other = me ^ 1;
    if (X == 0) { for (int i = 0; i < 2; i++) { bar_init(full + i, 1); bar_init(empty + i, 128); } fence_init(); }
    if (V == 4) __syncthreads(); else cl_sync();
    int sum = 0;
    for (int k = 0; k < 6; k++) {
        int s = k & 1;
        if (X == 0) bar_expect(full + s, 512);
        if (k >= 2 && V != 1) bar_wait_cluster(empty + s, (k / 2 & 1) ^ 1);
        asm volatile("{.reg .b32 a, b; mapa.shared::cluster.u32 a, %0, %3; mapa.shared::cluster.u32 b, %1, %3; st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [a], %2, [b];}"
            :: "r"(sa(&dst[s][X])), "r"(sa(full + s)), "r"(in[me * 1024 + k * 128 + X]), "r"(other) : "memory");
        if (V == 2 && k == 4) { } else bar_wait_cluster(full + s, k / 2 & 1);
        sum += dst[s][127 - X];
        if (V == 3 && X % 32 == 0) { u32 r = 0; for (; r < 32; r++) bar_arrive_at(empty + s, other); } 
        else if (V != 3) bar_arrive_at(empty + s, other);
    }
    out[me * 128 + X] = sum;
    if (V != 5) cl_sync();
}
// 4: blocks of a cluster read each other's tile by loads; the halves meet by split barriers.
K split(const int* in, int* out) {
    __shared__ int t[2][128];
    u32 me = rank(), other = me ^ 1; int sum = 0;
    for (int k = 0; k < 4; k++) {
        t[k & 1][X] = in[me * 1024 + k * 128 + X];
        if (V == 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); else cl_arrive();
        int own = t[k & 1][X];
        if (V == 2) t[k & 1][X] = own + 1;
        if (V != 3 || k != 2) cl_wait();
        int v; asm volatile("{.reg .b32 a; mapa.shared::cluster.u32 a, %1, %2; ld.shared::cluster.s32 %0, [a];}" : "=r"(v) : "r"(sa(&t[k & 1][127 - X])), "r"(other) : "memory");
        sum += v + own;
        if (V == 3 && k == 2) cl_wait();
    }
    out[me * 128 + X] = sum;
    if (V != 4) cl_sync();
}
// 5: named barriers as full and empty of a ring (producer warp, two consumer warps).
K named(const int* in, int* out) {
    __shared__ int b[2][64];
    int w = X / 32;
    if (w == 0) {
        for (int k = 0; k < 6; k++) {
            int s = k & 1;
            if (k >= 2 && !(V == 1 && k == 4)) nb_sync(3 + s, 96);
            b[s][X] = in[k * 64 + X]; b[s][X + 32] = in[k * 64 + 32 + X];
            nb_arrive(1 + s, 96);
        }
    } else {
        int sum = 0;
        for (int k = 0; k < 6; k++) {
            int s = k & 1;
            nb_sync(1 + s, 96);
            if (V == 2 && k < 4) nb_arrive(3 + s, 96);
            sum += b[s][95 - X];
            if (V != 2 && k < 4 && !(V == 1 && k == 2)) nb_arrive(3 + s, 96);
            if (V == 3) sum += b[s ^ 1][X - 32];
        }
        out[X] = sum;
    }
}
// 6: bulk reductions into shared memory of the peer.
K peer_add(const int* in, int* out) {
    __shared__ __align__(16) int src[128], acc[128]; __shared__ u64 full;
    u32 me = rank(), other = me ^ 1;
    if (X == 0) { bar_init(&full, 1); fence_init(); }
    acc[X] = X; src[X] = in[me * 128 + X];
    if (V != 1) proxy_fence();
    if (V != 2) cl_sync(); else __syncthreads();
    if (X == 0) {
        bar_expect(&full, 512);
        asm volatile("{.reg .b32 a, b; mapa.shared::cluster.u32 a, %0, %3; mapa.shared::cluster.u32 b, %1, %3; cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s32 [a], [%2], 512, [b];}"
            :: "r"(sa(acc)), "r"(sa(&full)), "r"(sa(src)), "r"(other) : "memory");
    }
    if (V == 2) cl_sync();
    if (V == 4) src[X] = 0;
    if (V != 3) bar_wait_cluster(&full, 0);
    out[me * 128 + X] = acc[127 - X];
    cl_sync();
}
// 7: elected one of a warp loads; the others of the warp only meet by __syncwarp.
K warpmeet(const int* in, int* out) {
    __shared__ __align__(16) int t[4][128]; __shared__ u64 full[4];
    int w = X / 32, l = X % 32;
    if (l == 0) { bar_init(full + w, 1); if (V != 1) proxy_fence(); }
    __syncwarp();
    int sum = 0;
    for (int k = 0; k < 3; k++) {
        if (l == 0) { bar_expect(full + w, 512); bulk_in(t[w], in + (k * 4 + w) * 128, 512, full + w); if (V != 2) bar_wait(full + w, k & 1); }
        if (V == 2 && l) bar_wait(full + w, k & 1);
        if (V != 3) __syncwarp();
        sum += t[w][l] + t[w][127 - l];
        if (V != 4) __syncwarp();
    }
    out[X] = sum;
}
// 8: a split-k in a cluster: partial sums by st.shared::cluster, awaited at the leader's barrier object.
K splitk(const int* in, int* out) {
    __shared__ int part[2][128]; __shared__ u64 come;
    u32 me = rank();
    if (X == 0) { bar_init(&come, 256); fence_init(); }
    cl_sync();
    asm volatile("{.reg .b32 a; mapa.shared::cluster.u32 a, %0, 0; st.shared::cluster.s32 [a], %1;}" :: "r"(sa(&part[me][X])), "r"(in[me * 128 + X]) : "memory");
    if (V == 1) asm volatile("{.reg .b32 r; mapa.shared::cluster.u32 r, %0, 0; mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [r];}" :: "r"(sa(&come)) : "memory");
    else bar_arrive_at(&come, 0);
    if (me == 0) {
        if (V == 2) bar_wait(&come, 0); else if (V != 3) bar_wait_cluster(&come, 0);
        out[X] = part[0][127 - X] + part[1][X];
    }
    cl_sync();
}
struct Kernel { const char *name; int grid, block, cluster; std::vector<void (*)(const int *, int *)> forms; };
#define FORMS_2(k, g, b, c) { #k, g, b, c, { k<0>, k<1> } }
#define FORMS_3(k, g, b, c) { #k, g, b, c, { k<0>, k<1>, k<2> } }
#define FORMS_4(k, g, b, c) { #k, g, b, c, { k<0>, k<1>, k<2>, k<3> } }
#define FORMS_5(k, g, b, c) { #k, g, b, c, { k<0>, k<1>, k<2>, k<3>, k<4> } }
#define FORMS_6(k, g, b, c) { #k, g, b, c, { k<0>, k<1>, k<2>, k<3>, k<4>, k<5> } }
static Kernel kernels[] = {
    FORMS_5(three, 1, 128, 1),
    FORMS_5(outs, 1, 128, 1),
    FORMS_5(multi, 2, 128, 2),
    FORMS_5(reduces, 2, 128, 1),
    FORMS_5(reuse, 1, 128, 1),
    FORMS_5(pingpong, 1, 256, 1),
    FORMS_6(handed, 1, 160, 1),
    FORMS_6(dsm, 2, 128, 2),
    FORMS_4(copies, 1, 64, 1),
    FORMS_5(tile_flag, 2, 128, 1),
    FORMS_4(wraps, 1, 128, 1),
    FORMS_3(inval, 1, 128, 1),
    FORMS_2(peek, 1, 128, 1),
    FORMS_6(spec, 1, 384, 1),
    FORMS_5(convert, 1, 128, 1),
    FORMS_6(stasync, 2, 128, 2),
    FORMS_5(split, 2, 128, 2),
    FORMS_4(named, 1, 96, 1),
    FORMS_5(peer_add, 2, 128, 2),
    FORMS_5(warpmeet, 1, 128, 1),
    FORMS_4(splitk, 2, 128, 2),
};

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    size_t form = atoi(argv[1]);
    int *in, *out, host[4096];
    for (int i = 0; i < 4096; i++) host[i] = i * 13 + 5;
    cudaMalloc(&in, sizeof host);
    cudaMalloc(&out, sizeof host);
    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    bool begun = false;
    for (auto &k : kernels) {
        begun |= !strcmp(k.name, argv[2]);
        if (!begun || form >= k.forms.size()) continue;
        cudaMemset(out, 0, sizeof host);
        cudaLaunchConfig_t c = {};
        c.gridDim = k.grid, c.blockDim = k.block;
        cudaLaunchAttribute a = {};
        a.id = cudaLaunchAttributeClusterDimension;
        a.val.clusterDim = { (unsigned)k.cluster, 1, 1 };
        c.attrs = &a, c.numAttrs = 1;
        cudaLaunchKernelEx(&c, k.forms[form], (const int *)in, out);
        cudaError_t error = cudaDeviceSynchronize();
        printf("%s: %s\n", k.name, cudaGetErrorName(error));
        if (error) return 1;
    }
}
