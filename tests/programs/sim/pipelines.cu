// Pipelines of bulk copies as they are written by hand for compute capability 9.0, each with a bug
// that was met in public projects, and mended: `racy` or `mended`, then the names of kernels.
// Prints a sum of each kernel's results, which bugs may change.
#include <cstdio>
#include <cstring>

#define T (int)threadIdx.x
typedef unsigned long long u64;
#define DEV __device__ __forceinline__
DEV unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
DEV void init(u64* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
DEV void expect(u64* b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
DEV void arrive(u64* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(b)) : "memory"); }
DEV void wait(u64* b, int parity) {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra D; bra W; D: }" :: "r"(at(b)), "r"(parity) : "memory");
}
DEV void load(void* s, const void* g, int n, u64* b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(at(s)), "l"(g), "r"(n), "r"(at(b)) : "memory");
}
DEV void store(void* g, const void* s, int n) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(g), "r"(at(s)), "r"(n) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
DEV void stored_from() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
DEV void fence() { asm volatile("fence.proxy.async;" ::: "memory"); }

// The epilogue's tile goes out by a bulk store without a fence between the proxies.
template <bool M> __global__ void epilogue(int* d, int* f) {
    __shared__ __align__(16) int tile[128];
    tile[T] = d[T] * 2; // epilogue: one
    if (M) fence();
    __syncthreads();
    if (T == 0) { store(f, tile, 512); stored_from(); } // epilogue: other
}
// The same in global memory: what the block has written is loaded.
template <bool M> __global__ void written(int* d, int* f) {
    __shared__ __align__(16) int tile[128];
    __shared__ u64 full;
    if (T == 0) init(&full, 1);
    d[T] += 1; // written: one
    if (M) fence();
    __syncthreads();
    if (T == 0) { expect(&full, 512); load(tile, d, 512, &full); } // written: other
    wait(&full, 0);
    f[T] = tile[127 - T];
}
// An elected lane arrives for the 32 lanes that have written.
template <bool M> __global__ void elected(int* d, int* f) {
    __shared__ int row[32];
    __shared__ u64 full;
    if (T == 0) init(&full, 1);
    __syncthreads();
    if (T < 32) {
        row[T] = d[T] + 3; // elected: one
        if (M) __syncwarp();
        if (T == 0) arrive(&full);
    } else {
        wait(&full, 0);
        f[T] = row[T & 31]; // elected: other
    }
}
// A ring of two stages, whose users hand a stage back before they have read it.
template <bool M> __global__ void ring(int* d, int* f) {
    __shared__ __align__(16) int stage[2][96];
    __shared__ u64 full[2], empty[2];
    if (T == 0) for (int i = 0; i < 2; i++) { init(&full[i], 1); init(&empty[i], 96); }
    __syncthreads();
    if (T == 0) {
        for (int k = 0; k < 8; k++) {
            if (k >= 2) wait(&empty[k & 1], (k / 2 - 1) & 1);
            expect(&full[k & 1], 384);
            load(stage[k & 1], d + k * 96, 384, &full[k & 1]); // ring: other
        }
    } else if (T >= 32) {
        int sum = 0;
        for (int k = 0; k < 8; k++) {
            wait(&full[k & 1], k / 2 & 1);
            if (!M) arrive(&empty[k & 1]);
            sum += stage[k & 1][127 - T] * (k + 1); // ring: one
            if (M) arrive(&empty[k & 1]);
        }
        f[T] = sum;
    }
}
// Only the thread that loads waits for the load.
template <bool M> __global__ void unawaited(int* d, int* f) {
    __shared__ __align__(16) int tile[128];
    __shared__ u64 full;
    if (T == 0) init(&full, 1);
    __syncthreads();
    if (T == 0) { expect(&full, 512); load(tile, d, 512, &full); } // unawaited: one
    if (M || T == 0) wait(&full, 0);
    f[T] = tile[127 - T]; // unawaited: other
}
// The tile of the result is the tile of the next step, while a store reads it.
template <bool M> __global__ void aliased(int* d, int* f) {
    __shared__ __align__(16) int tile[128];
    tile[T] = d[T] + 7;
    fence();
    __syncthreads();
    if (T == 0) { store(f, tile, 512); if (M) stored_from(); } // aliased: one
    __syncthreads();
    tile[T] = -1; // aliased: other
}
// All arrive at a barrier that expects one more.
template <bool M> __global__ void counts(int* d, int* f) {
    __shared__ u64 full;
    if (T == 0) init(&full, M ? 128 : 129);
    __syncthreads();
    arrive(&full);
    wait(&full, 0); // counts: one
    f[T] = d[T];
}

typedef void (*Kernel)(int*, int*);
struct Named { const char* name; Kernel racy, mended; };
#define ROW(k) { #k, k<false>, k<true> }
static const Named kernels[] = { ROW(epilogue), ROW(written), ROW(elected), ROW(ring), ROW(unawaited), ROW(aliased), ROW(counts) };

int main(int argc, char** argv) {
    bool mended = argc > 1 && !strcmp(argv[1], "mended");
    int *d, *f, host[1024];
    for (auto& k : kernels) {
        bool named = argc <= 2 && strcmp(k.name, "counts");
        for (int i = 2; i < argc; i++) named |= !strcmp(argv[i], k.name);
        if (!named) continue;
        for (int i = 0; i < 1024; i++) host[i] = i * 13 + 5;
        cudaMalloc(&d, sizeof host);
        cudaMalloc(&f, sizeof host);
        cudaMemcpy(d, host, sizeof host, cudaMemcpyHostToDevice);
        cudaMemset(f, 0, sizeof host);
        (mended ? k.mended : k.racy)<<<1, 128>>>(d, f);
        cudaError_t error = cudaDeviceSynchronize();
        if (error) { printf("%s: %s\n", k.name, cudaGetErrorName(error)); return 1; }
        cudaMemcpy(host, f, sizeof host, cudaMemcpyDeviceToHost);
        long long sum = 0;
        for (int i = 0; i < 128; i++) sum += (long long)host[i] * (i + 1);
        printf("%s: %lld\n", k.name, sum);
        cudaFree(d);
        cudaFree(f);
    }
}
