// Bulk copies and the waits for them, each kernel with and without its wait: see `interp_bulk.rs`.

#define T (int)threadIdx.x
#define N (int)blockDim.x
#define B (int)blockIdx.x
#define G (B * N + T)
typedef unsigned long long u64;
#define DEV __device__ __forceinline__
DEV unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
DEV void init(u64* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
DEV void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEV void expect(u64* b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
DEV void arrive(u64* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(b)) : "memory"); }
DEV void wait(u64* b, int parity) {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra D; bra W; D: }" :: "r"(at(b)), "r"(parity) : "memory");
}
DEV void poll(u64* b, int parity) {
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%0], %1; }" :: "r"(at(b)), "r"(parity) : "memory");
}
DEV void load(void* s, const void* g, int n, u64* b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(at(s)), "l"(g), "r"(n), "r"(at(b)) : "memory");
}
DEV void store(void* g, const void* s, int n) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(g), "r"(at(s)), "r"(n) : "memory");
}
DEV void add(void* g, const void* s, int n) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;" :: "l"(g), "r"(at(s)), "r"(n) : "memory");
}
DEV void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int K> DEV void wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(K) : "memory"); }
template <int K> DEV void wait_all() { asm volatile("cp.async.bulk.wait_group %0;" :: "n"(K) : "memory"); }
DEV void fence_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEV void fence_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// Only the thread that loads waits.
template <bool M> DEV void loads(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    __shared__ u64 bar;
    if (T == 0) { init(&bar, 1); fence_init(); }
    __syncthreads();
    if (T == 0) { expect(&bar, 256); load(s, d + B * 64, 256, &bar); }
    if (M || T == 0) wait(&bar, 0);
    f[G] = s[63 - T]; // behind
}
// A wait for the phase before.
template <bool M> DEV void parity(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    __shared__ u64 bar;
    if (T == 0) { init(&bar, 1); expect(&bar, 256); load(s, d + B * 64, 256, &bar); }
    __syncthreads();
    if (M) wait(&bar, 0); else poll(&bar, 1);
    f[G] = s[63 - T];
}
// Two stages: a lane of warp 0 fills them, two warps use them.
template <bool M> DEV void ring(int* d, int* f) {
    __shared__ __align__(16) int s[2][64];
    __shared__ u64 full[2], empty[2];
    if (T == 0) { for (int i = 0; i < 2; i++) { init(&full[i], 1); init(&empty[i], 64); } fence_init(); }
    __syncthreads();
    if (T == 0) {
        for (int k = 0; k < 6; k++) {
            if (k >= 2) wait(&empty[k & 1], (k / 2 - 1) & 1);
            expect(&full[k & 1], 256);
            load(s[k & 1], d + k * 64, 256, &full[k & 1]);
        }
    } else if (T >= 32) {
        int sum = 0, t = T - 32;
        for (int k = 0; k < 6; k++) {
            wait(&full[k & 1], k / 2 & 1);
            if (!M) arrive(&empty[k & 1]);
            sum += s[k & 1][63 - t] * (k + 1);
            if (M) arrive(&empty[k & 1]);
        }
        f[t] = sum;
    }
}
template <bool M> DEV void stores(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    s[T] = d[G] + 1;
    if (M) fence_shared();
    __syncthreads();
    if (T == 0) { store(f + B * 64, s, 256); commit(); wait_read<0>(); }
}
// The fence by the thread that stores, behind the barrier, is enough.
template <bool M> DEV void stores_elsewhere(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    s[T] = d[G] + 1;
    __syncthreads();
    if (T == 0) { if (M) fence_shared(); store(f + B * 64, s, 256); commit(); wait_read<0>(); }
}
// A fence of global memory is none of shared memory.
template <bool M> DEV void fence_of_other_memory(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    s[T] = d[G] + 1;
    if (M) fence_shared(); else fence_global();
    __syncthreads();
    if (T == 0) { store(f + B * 64, s, 256); commit(); wait_read<0>(); }
}
template <bool M> DEV void reuses(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    s[T] = d[G] + 1;
    fence_shared();
    __syncthreads();
    if (T == 0) { store(f + B * 64, s, 256); commit(); if (M) wait_read<0>(); }
    __syncthreads();
    s[T] = -1;
}
// Two groups, of which the first is waited for.
template <bool M> DEV void groups(int* d, int* f) {
    __shared__ __align__(16) int s[2][32];
    s[T / 32][T % 32] = d[G] + 1;
    fence_shared();
    __syncthreads();
    if (T == 0) {
        store(f + B * 64, s[0], 128); commit();
        store(f + B * 64 + 32, s[1], 128); commit();
        wait_read<1>();
        for (int i = 0; i < 32; i++) s[M ? 0 : 1][i] = -1;
    }
}
// What was stored is read back by another thread.
template <bool M> DEV void stored_then_read(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    s[T] = d[G] + 1;
    fence_shared();
    __syncthreads();
    if (T == 0) { store(f + B * 64, s, 256); commit(); if (M) wait_all<0>(); else wait_read<0>(); }
    __syncthreads();
    f[1024 + G] = f[B * 64 + 63 - T];
}
template <bool M> DEV void adds(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    s[T] = d[G] + 1;
    if (M) fence_shared();
    __syncthreads();
    if (T == 0) { add(f, s, 256); commit(); wait_all<0>(); }
}
// An elected lane arrives for 32 writers.
template <bool M> DEV void elected(int* d, int* f) {
    __shared__ int s[32];
    __shared__ u64 bar;
    if (T == 0) init(&bar, 1);
    __syncthreads();
    if (T < 32) {
        s[T] = d[T] + 1;
        if (M) __syncwarp();
        if (T == 0) arrive(&bar);
    } else {
        wait(&bar, 0);
        f[T - 32] = s[63 - T];
    }
}
// The same of each warp, whose lanes are together: of __syncwarp() machine code has a NOP.
template <bool M> DEV void elected_each(int* d, int* f) {
    __shared__ int s[64];
    __shared__ u64 bar;
    if (T == 0) init(&bar, 2);
    __syncthreads();
    s[T] = d[T] + 1;
    if (M) __syncwarp();
    if (T % 32 == 0) arrive(&bar);
    wait(&bar, 0);
    f[T] = s[63 - T];
}
// The first lane of each warp that has read hands the stage back. In machine code a branch behind
// the wait asks whether the lanes are together, and __syncwarp() is on the other way only.
template <bool M> DEV void handed_back(int* d, int* f) {
    __shared__ __align__(16) int s[2][64];
    __shared__ u64 full[2], empty[2];
    if (T == 0) for (int i = 0; i < 2; i++) { init(&full[i], 1); init(&empty[i], 2); }
    __syncthreads();
    if (T == 0) {
        for (int k = 0; k < 6; k++) {
            if (k >= 2) wait(&empty[k & 1], (k / 2 - 1) & 1);
            expect(&full[k & 1], 256);
            load(s[k & 1], d + k * 64, 256, &full[k & 1]);
        }
    } else if (T >= 32) {
        int sum = 0, t = T - 32;
        for (int k = 0; k < 6; k++) {
            wait(&full[k & 1], k / 2 & 1);
            sum += s[k & 1][63 - t] * (k + 1);
            if (M) __syncwarp();
            if (T % 32 == 0) arrive(&empty[k & 1]);
        }
        f[t] = sum;
    }
}
template <bool M> DEV void global_proxy(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    __shared__ u64 bar;
    if (T == 0) init(&bar, 1);
    d[G] = T * 5;
    if (M) fence_global();
    __syncthreads();
    if (T == 0) { expect(&bar, 256); load(s, d + B * 64, 256, &bar); }
    wait(&bar, 0);
    f[G] = s[63 - T];
}
// The barrier is made anew while a load reports to it.
template <bool M> DEV void made_anew(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    __shared__ u64 bar;
    if (T == 0) {
        init(&bar, 1); expect(&bar, 256); load(s, d, 256, &bar);
        if (M) wait(&bar, 0);
        init(&bar, 1);
    }
}
// A load into memory that threads still read.
template <bool M> DEV void overwrites(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    __shared__ u64 bar, again;
    if (T == 0) { init(&bar, 1); init(&again, 1); expect(&bar, 256); load(s, d, 256, &bar); }
    __syncthreads();
    wait(&bar, 0);
    int sum = s[63 - T];
    if (M) __syncthreads();
    if (T == 0) { expect(&again, 256); load(s, d + 64, 256, &again); }
    wait(&again, 0);
    f[T] = sum + 3 * s[T];
}
// Nothing but the fence is missing between two writes.
template <bool M> DEV void two_writes(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    __shared__ u64 bar;
    if (T == 0) init(&bar, 1);
    s[T] = 7;
    if (M) fence_shared();
    __syncthreads();
    if (T == 0) { expect(&bar, 256); load(s, d, 256, &bar); }
    wait(&bar, 0);
    f[T] = s[63 - T];
}

#define TWINS(k) \
    extern "C" __global__ void k##_racy(int* d, int* f) { k<false>(d, f); } \
    extern "C" __global__ void k##_mended(int* d, int* f) { k<true>(d, f); }
TWINS(loads) TWINS(parity) TWINS(ring) TWINS(stores) TWINS(stores_elsewhere) TWINS(fence_of_other_memory)
TWINS(reuses) TWINS(groups) TWINS(stored_then_read) TWINS(adds) TWINS(elected) TWINS(elected_each)
TWINS(handed_back) TWINS(global_proxy) TWINS(made_anew) TWINS(overwrites) TWINS(two_writes)

// Forms of arrivals, and what their states say.
extern "C" __global__ void forms(int* d, int* f) {
    __shared__ u64 bar;
    u64 state; int count, done;
    auto pending = [&] { asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(state)); return count; };
    auto tested = [&] { asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at(&bar)), "l"(state) : "memory"); return done; };
    init(&bar, 4);
    asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], 2;" : "=l"(state) : "r"(at(&bar)) : "memory");
    f[0] = pending();
    asm volatile("mbarrier.arrive_drop.noComplete.shared::cta.b64 %0, [%1], 1;" : "=l"(state) : "r"(at(&bar)) : "memory");
    f[1] = pending(); f[2] = tested();
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 32;" :: "r"(at(&bar)) : "memory");
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at(&bar)) : "memory");
    f[3] = pending(); f[4] = tested();
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 32;" :: "r"(at(&bar)) : "memory");
    f[5] = tested();
    // Three are left in the next phase.
    asm volatile("mbarrier.arrive_drop.expect_tx.shared::cta.b64 %0, [%1], 16;" : "=l"(state) : "r"(at(&bar)) : "memory");
    f[6] = pending();
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], 2;" : "=l"(state) : "r"(at(&bar)) : "memory");
    f[7] = tested();
    asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 16;" :: "r"(at(&bar)) : "memory") ;
    f[8] = tested();
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at(&bar)) : "memory");
}

// Phases that never end.
template <int W> DEV void stuck(int* d) {
    __shared__ __align__(16) int s[64];
    __shared__ u64 bar;
    if (T == 0) {
        init(&bar, W == 0 ? 2 : 1);
        expect(&bar, W == 1 ? 512 : W == 2 ? 128 : 256);
        load(s, d, 256, &bar);
    }
    __syncthreads();
    wait(&bar, 0);
}
extern "C" __global__ void stuck_arrivals(int* d, int* f) { stuck<0>(d); }
extern "C" __global__ void stuck_bytes(int* d, int* f) { stuck<1>(d); }
extern "C" __global__ void stuck_more(int* d, int* f) { stuck<2>(d); }

// A tile of a tensor, swizzled, and back to another tensor unless it begins at a negative coordinate.
struct __align__(64) Map { char bytes[128]; };
extern "C" __global__ void tiles(const __grid_constant__ Map from, const __grid_constant__ Map to, int* f, int x, int y) {
    __shared__ __align__(1024) int s[8 * 32];
    __shared__ u64 bar;
    if (T == 0) {
        init(&bar, 1);
        expect(&bar, 1024);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
            :: "r"(at(s)), "l"(&from), "r"(x), "r"(y), "r"(at(&bar)) : "memory");
    }
    __syncthreads();
    wait(&bar, 0);
    for (int i = T; i < 256; i += N) { f[i] = s[i]; s[i] += 1; }
    fence_shared();
    __syncthreads();
    if (T == 0 && x >= 0 && y >= 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" :: "l"(&to), "r"(x), "r"(y), "r"(at(s)) : "memory");
        commit(); wait_all<0>();
    }
}
// A tile for both blocks of a cluster, each of which tells its own barrier.
extern "C" __global__ void __cluster_dims__(2, 1, 1) tile_for_both(const __grid_constant__ Map from, int* f) {
    __shared__ __align__(1024) int s[8 * 32];
    __shared__ u64 bar;
    if (T == 0) { init(&bar, 1); fence_init(); expect(&bar, 1024); }
    asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (T == 0 && B % 2 == 0)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
            :: "r"(at(s)), "l"(&from), "r"(0), "r"(0), "r"(at(&bar)), "h"((short)3) : "memory");
    wait(&bar, 0);
    for (int i = T; i < 256; i += N) f[B * 256 + i] = s[i];
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
