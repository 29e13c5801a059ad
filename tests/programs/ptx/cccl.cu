// What CUDA's own headers make of algorithms and of the newer instructions: CUB, Thrust, barriers, pipelines, cooperative groups.
// Compiled to PTX only, for the census (cargo xtask ptx-census).
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cub/cub.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>
#include <cuda/std/complex>
#include <cuda/std/span>
#include <mma.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/scan.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

namespace cg = cooperative_groups;

extern "C" __global__ void grid_barrier(int* a, int n) {
    auto grid = cg::this_grid();
    for (int i = grid.thread_rank(); i < n; i += grid.size()) a[i] += 1;
    grid.sync();
    if (grid.thread_rank() == 0) a[n] = a[0];
}

extern "C" __global__ void tile_sums(const float* a, float* o, int n) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? a[i] : 0;
    float s = cg::reduce(tile, v, cg::plus<float>());
    float p = cg::inclusive_scan(tile, v);
    if (tile.thread_rank() == 0) o[i / 32] = s;
    auto active = cg::coalesced_threads();
    if (active.thread_rank() == 0) atomicAdd(o + n, p);
    auto labels = cg::labeled_partition(active, threadIdx.x % 3);
    if (labels.thread_rank() == 0) o[n + 1 + i] = labels.size();
}

extern "C" __global__ void staged(const int4* a, int4* o, int n) {
    __shared__ int4 part[256];
    auto block = cg::this_thread_block();
    for (int start = blockIdx.x * 256; start < n; start += gridDim.x * 256) {
        cg::memcpy_async(block, part, a + start, sizeof(int4) * min(256, n - start));
        cg::wait(block);
        if (start + threadIdx.x < n) o[start + threadIdx.x] = part[255 - threadIdx.x];
        block.sync();
    }
}

extern "C" __global__ void with_barrier(const float* a, float* o, int n) {
    __shared__ alignas(16) float part[1024];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&bar, block.size());
    block.sync();
    cuda::memcpy_async(block, part, a + blockIdx.x * 1024, cuda::aligned_size_t<16>(sizeof(float) * 1024), bar);
    bar.arrive_and_wait();
    for (int i = block.thread_rank(); i < 1024; i += block.size()) if (blockIdx.x * 1024 + i < n) o[blockIdx.x * 1024 + i] = part[1023 - i];
}

extern "C" __global__ void with_pipeline(const float* a, float* o, int n) {
    __shared__ float part[2][256];
    auto pipe = cuda::make_pipeline();
    int stage = 0;
    pipe.producer_acquire();
    cuda::memcpy_async(&part[0][threadIdx.x], a + blockIdx.x * 256 + threadIdx.x, sizeof(float), pipe);
    pipe.producer_commit();
    for (int b = blockIdx.x; b < n; b += gridDim.x) {
        if (b + gridDim.x < n) {
            pipe.producer_acquire();
            cuda::memcpy_async(&part[stage ^ 1][threadIdx.x], a + (b + gridDim.x) * 256 + threadIdx.x, sizeof(float), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        __syncthreads();
        o[b * 256 + threadIdx.x] = part[stage][255 - threadIdx.x];
        pipe.consumer_release();
        stage ^= 1;
    }
}

extern "C" __global__ void scoped(cuda::atomic<int, cuda::thread_scope_device>* a, int* flag, cuda::std::complex<float>* c, int n) {
    a->fetch_add(threadIdx.x, cuda::memory_order_relaxed);
    cuda::atomic_ref<int, cuda::thread_scope_system> ref(*flag);
    while (ref.load(cuda::memory_order_acquire) == 0) __nanosleep(10);
    ref.store(2, cuda::memory_order_release);
    ref.fetch_max(n);
    a[1].compare_exchange_strong(n, 3);
    if (threadIdx.x < n) c[threadIdx.x] = c[threadIdx.x] * c[threadIdx.x] / cuda::std::complex<float>(1, 2);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2) clusters(float* o, int n) {
    __shared__ float part[128];
    auto cluster = cg::this_cluster();
    part[threadIdx.x] = o[blockIdx.x * 128 + threadIdx.x];
    cluster.sync();
    float* other = cluster.map_shared_rank(part, cluster.block_rank() ^ 1);
    if (threadIdx.x < n) o[blockIdx.x * 128 + threadIdx.x] = other[threadIdx.x];
    cluster.sync();
}

extern "C" __global__ void bulk(const int* a, int* o, int n) {
    __shared__ alignas(16) int part[1024];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    namespace ptx = cuda::ptx;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    uint64_t token;
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(part, a + blockIdx.x * 1024, cuda::aligned_size_t<16>(sizeof(part)), bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(part));
    } else {
        auto t = bar.arrive();
        (void)t;
    }
    bar.wait_parity(false);
    part[threadIdx.x] += 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, o + blockIdx.x * 1024, part, sizeof(part));
        ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, o + n + blockIdx.x * 1024, part, sizeof(part));
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
    (void)token;
}
#endif

struct Even { __host__ __device__ bool operator()(int x) const { return x % 2 == 0; } };
struct Twice { __host__ __device__ float operator()(float x) const { return 2 * x; } };

int main() {
    int *k = 0, *v = 0, *n = 0;
    float* f = 0;
    long long* l = 0;
    void* t = 0;
    size_t s = 0;
    cub::DeviceRadixSort::SortPairs(t, s, k, v, k, v, 1000);
    cub::DeviceRadixSort::SortKeysDescending(t, s, l, l, 1000);
    cub::DeviceMergeSort::SortKeys(t, s, l, 1000, cuda::std::less<>{});
    cub::DeviceScan::ExclusiveSum(t, s, k, v, 1000);
    cub::DeviceScan::InclusiveSumByKey(t, s, k, f, f, 1000);
    cub::DeviceReduce::Sum(t, s, f, f, 1000);
    cub::DeviceReduce::ReduceByKey(t, s, k, k, f, f, n, cuda::std::plus<>{}, 1000);
    cub::DeviceSegmentedReduce::Sum(t, s, f, f, 10, k, k + 1);
    cub::DeviceSelect::Flagged(t, s, k, v, k, n, 1000);
    cub::DeviceSelect::If(t, s, k, k, n, 1000, Even{});
    cub::DeviceHistogram::HistogramEven(t, s, f, k, 65, 0.f, 1.f, 1000);
    cub::DeviceRunLengthEncode::Encode(t, s, k, k, v, n, 1000);
    thrust::sort(thrust::device, f, f + 1000);
    thrust::transform(thrust::device, f, f + 1000, f, Twice{});
    thrust::reduce(thrust::device, l, l + 1000);
    thrust::unique(thrust::device, k, k + 1000);
    thrust::inclusive_scan(thrust::device, f, f + 1000, f);
}
