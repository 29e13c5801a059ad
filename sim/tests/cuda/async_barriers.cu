// Barriers in shared memory with asynchronous copies, by libcu++ and by hand. Prints what they
// leave: PTX and machine code must print the same.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cstdio>
#include <cstdlib>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    printf("line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

const int N = 256, PARTS = 6;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void group(const int *in, int *out) {
    __shared__ int s[N];
    __shared__ Barrier b;
    auto g = cg::this_thread_block();
    if (g.thread_rank() == 0) init(&b, g.size());
    g.sync();
    int sum = 0;
    for (int i = 0; i < PARTS; i++) {
        cuda::memcpy_async(g, s, in + i * N, sizeof s, b);
        b.arrive_and_wait();
        sum = sum * 3 + s[N - 1 - threadIdx.x];
        b.arrive_and_wait();
    }
    auto token = b.arrive();
    sum += threadIdx.x;
    b.wait(std::move(token));
    // Half of the threads leave; the others meet once more.
    if (threadIdx.x & 1) b.arrive_and_drop();
    else { b.arrive_and_wait(); b.arrive_and_wait(); sum += 7; }
    out[threadIdx.x] = sum;
}

__global__ void threads(const int4 *in, int4 *out) {
    __shared__ int4 s[N];
    __shared__ Barrier b;
    if (threadIdx.x == 0) init(&b, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(&s[threadIdx.x], &in[threadIdx.x], cuda::aligned_size_t<16>(16), b);
    b.arrive_and_wait();
    out[threadIdx.x] = s[N - 1 - threadIdx.x];
}

__global__ void unified(const int *in, int *out) {
    __shared__ int s[2][N];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto g = cg::this_thread_block();
    auto p = cuda::make_pipeline(g, &state);
    int sum = 0;
    for (int i = 0; i < PARTS; i++) {
        p.producer_acquire();
        cuda::memcpy_async(g, s[i & 1], in + N * i, sizeof s[0], p);
        p.producer_commit();
        p.consumer_wait();
        sum = sum * 5 + s[i & 1][N - 1 - threadIdx.x];
        p.consumer_release();
    }
    out[threadIdx.x] = sum;
}

__global__ void partitioned(const int *in, int *out) {
    __shared__ int s[2][N];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto g = cg::this_thread_block();
    auto role = threadIdx.x < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto p = cuda::make_pipeline(g, &state, role);
    int sum = 0;
    for (int i = 0; i < PARTS; i++) {
        if (threadIdx.x < 32) {
            p.producer_acquire();
            for (int k = threadIdx.x; k < N; k += 32) cuda::memcpy_async(&s[i & 1][k], in + N * i + k, cuda::aligned_size_t<4>(4), p);
            p.producer_commit();
        } else {
            p.consumer_wait();
            sum = sum * 7 + s[i & 1][threadIdx.x];
            p.consumer_release();
        }
    }
    out[threadIdx.x] = sum;
}

// Arrivals that are counted, and that are not.
__global__ void by_hand(const int *in, int *out) {
    __shared__ unsigned long long m[2];
    __shared__ int s[N];
    unsigned a = __cvta_generic_to_shared(m), to = __cvta_generic_to_shared(s + threadIdx.x);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(a), "r"(blockDim.x));
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(a + 8), "r"(2 * blockDim.x));
    }
    __syncthreads();
    unsigned long long counted, uncounted, early;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(in + threadIdx.x));
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" :: "r"(a));
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(a + 8));
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(counted) : "r"(a));
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(uncounted) : "r"(a + 8));
    int ok;
    do asm volatile("{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p;}" : "=r"(ok) : "r"(a), "l"(counted)); while (!ok);
    do asm volatile("{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p;}" : "=r"(ok) : "r"(a + 8), "l"(uncounted)); while (!ok);
    __syncthreads();
    int left = 0;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 5;" : "=l"(early) : "r"(a));
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(early) : "r"(a));
        asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(left) : "l"(early));
    }
    out[threadIdx.x] = s[N - 1 - threadIdx.x] + 1000000 * left;
}

int main() {
    int *in, *out;
    CHECK(cudaMallocManaged(&in, N * PARTS * 4));
    CHECK(cudaMallocManaged(&out, N * 16));
    for (int i = 0; i < N * PARTS; i++) in[i] = i * 37 % 1009;
    auto print = [&](const char *name, int count) {
        CHECK(cudaDeviceSynchronize());
        long long sum = 0;
        for (int i = 0; i < count; i++) sum = sum * 31 + out[i];
        printf("%s: %d %d %llx\n", name, out[0], out[count - 1], sum);
    };
    group<<<1, N>>>(in, out); print("group", N);
    threads<<<1, N>>>((const int4 *)in, (int4 *)out); print("threads", 4 * N);
    unified<<<1, N>>>(in, out); print("unified", N);
    partitioned<<<1, N>>>(in, out); print("partitioned", N);
    by_hand<<<1, N>>>(in, out); print("by hand", N);
    return 0;
}
