// expect: clean
// pair: kernel ring on stream a / kernel staged on stream b
// needs: sm_90
// racy: race RAW
// why: Clusters read each other's shared memory, bulk copies complete on mbarriers. b waits for a; with `racy` it does not.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
namespace cg = cooperative_groups;
using barrier = cuda::barrier<cuda::thread_scope_block>;

// Every block adds up what all blocks of its cluster of four keep in their shared memory.
__global__ void __cluster_dims__(4, 1, 1) ring(const int *in, int *out) {
    __shared__ int mine[128];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), t = threadIdx.x;
    mine[t] = in[blockIdx.x * 128 + t];
    cluster.sync();
    int sum = 0;
    for (unsigned r = 0; r < cluster.num_blocks(); r++) sum += (r + 1) * cluster.map_shared_rank(mine, r)[(t + rank) % 128];
    cluster.sync();
    out[blockIdx.x * 128 + t] = sum;
}

// A tile comes in by one bulk copy that completes on a barrier, and goes out by another.
__global__ void staged(const int *in, int *out) {
    __shared__ alignas(128) int tile[1024];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier bar;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    }
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(tile, in + blockIdx.x * 1024, cuda::aligned_size_t<16>(sizeof tile), bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof tile);
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) tile[i] = 2 * tile[i] + 1;
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, out + blockIdx.x * 1024, tile, sizeof tile);
        cuda::ptx::cp_async_bulk_commit_group();
        cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
    }
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int n = 8192;
    std::vector<int> in(n), got(n);
    for (int i = 0; i < n; i++) in[i] = i * 3 % 1000;
    int *x, *y, *z, clusters = 0;
    for (int **p : {&x, &y, &z}) CHECK(cudaMalloc(p, n * 4));
    CHECK(cudaMemcpy(x, in.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, 0));
    cudaStream_t a, b;
    cudaEvent_t done;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    ring<<<n / 128, 128, 0, a>>>(x, y);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(done, a));
    if (!racy) CHECK(cudaStreamWaitEvent(b, done, 0));
    staged<<<n / 1024, 256, 0, b>>>(y, z);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(got.data(), z, n * 4, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        int first = i / 512 * 512, rank = i / 128 % 4, t = i % 128, sum = 0;
        for (int r = 0; r < 4; r++) sum += (r + 1) * in[first + r * 128 + (t + rank) % 128];
        wrong += got[i] != 2 * sum + 1;
    }
    printf("clusters %d, last %d, %d wrong\n", clusters, got[n - 1], wrong);
    for (int *p : {x, y, z}) CHECK(cudaFree(p));
    return 0;
}
