// CUB's and Thrust's algorithms on 9.0, one behind the other on one stream, on the results of the
// one before. Those that CUB launches as dependents wait: nothing races.
#include <cstdio>
#include <cub/cub.cuh>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#define CHECK(call)                                                                          \
    do {                                                                                     \
        cudaError_t got = (call);                                                            \
        if (got != cudaSuccess) {                                                            \
            std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(got));                 \
            std::exit(1);                                                                    \
        }                                                                                    \
    } while (0)

// Asks for the size of the workspace first, as every algorithm of CUB wants it.
#define CUB(algorithm, ...)                                                                  \
    do {                                                                                     \
        size_t bytes = 0;                                                                    \
        CHECK(algorithm(nullptr, bytes, __VA_ARGS__));                                       \
        void *workspace = nullptr;                                                           \
        CHECK(cudaMallocAsync(&workspace, bytes + 1, stream));                               \
        CHECK(algorithm(workspace, bytes, __VA_ARGS__));                                     \
        CHECK(cudaFreeAsync(workspace, stream));                                             \
    } while (0)

struct Less {
    __host__ __device__ bool operator()(int a, int b) const { return a < b; }
};

__global__ void fill(int *values, int count, unsigned seed) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        values[i] = static_cast<int>((i * 2654435761u + seed) >> 8);
}

int main() {
    constexpr int COUNT = 1 << 16;
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int *a, *b, *total;
    CHECK(cudaMalloc(&a, COUNT * sizeof(int)));
    CHECK(cudaMalloc(&b, COUNT * sizeof(int)));
    CHECK(cudaMalloc(&total, sizeof(int)));
    auto policy = thrust::cuda::par_nosync.on(stream);
    thrust::device_ptr<int> from(a), to(b);
    for (int round = 0; round < 3; round++) {
        fill<<<64, 128, 0, stream>>>(a, COUNT, round);
        CHECK(cudaGetLastError());
        CUB(cub::DeviceMergeSort::SortKeys, a, COUNT, Less(), stream);
        CUB(cub::DeviceScan::InclusiveSum, a, b, COUNT, stream);
        CUB(cub::DeviceReduce::Sum, b, total, COUNT, stream);
        CUB(cub::DeviceRadixSort::SortKeys, b, a, COUNT, 0, 32, stream);
        CUB(cub::DeviceSelect::Unique, a, b, total, COUNT, stream);
        CUB(cub::DeviceMergeSort::StableSortKeys, b, COUNT, Less(), stream);
        thrust::transform(policy, to, to + COUNT, from, thrust::negate<int>());
        thrust::sort(policy, from, from + COUNT, Less());
        thrust::inclusive_scan(policy, from, from + COUNT, to);
    }
    CHECK(cudaDeviceSynchronize());
    int left = 0;
    CHECK(cudaMemcpy(&left, total, sizeof left, cudaMemcpyDeviceToHost));
    std::printf("%d\n", left);
    return 0;
}
