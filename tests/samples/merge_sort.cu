// expect: clean
// pair: kernel DeviceMergeSortMergeKernel on stream a / kernel DeviceMergeSortMergeKernel on stream a
// needs: none
// why: One stream. The kernels of CUB's merge sort are launched with an attribute that lets them overlap their predecessors; they wait for these where it counts.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

#include <algorithm>
#include <cub/device/device_merge_sort.cuh>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/sort.h>

struct ByLastDigits {
    __host__ __device__ bool operator()(int a, int b) const { return a % 1000 < b % 1000; }
};

int main() {
    const int n = 20000;
    std::vector<int> h(n);
    for (int i = 0; i < n; i++) h[i] = (int)((unsigned)i * 2654435761u >> 8);
    int *x, *y;
    cudaStream_t a;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&x, n * sizeof(int)));
    CHECK(cudaMalloc(&y, n * sizeof(int)));
    CHECK(cudaMemcpy(x, h.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(y, h.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());

    size_t bytes = 0;
    void *storage;
    CHECK(cub::DeviceMergeSort::StableSortKeys(nullptr, bytes, x, n, ByLastDigits(), a));
    CHECK(cudaMalloc(&storage, bytes));
    CHECK(cub::DeviceMergeSort::StableSortKeys(storage, bytes, x, n, ByLastDigits(), a));
    auto first = thrust::device_pointer_cast(y);
    thrust::stable_sort(thrust::cuda::par.on(a), first, first + n, ByLastDigits());
    CHECK(cudaStreamSynchronize(a));

    std::vector<int> by_cub(n), by_thrust(n);
    CHECK(cudaMemcpy(by_cub.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(by_thrust.data(), y, n * sizeof(int), cudaMemcpyDeviceToHost));
    std::stable_sort(h.begin(), h.end(), ByLastDigits());
    printf("CUB %s, Thrust %s\n", by_cub == h ? "right" : "WRONG", by_thrust == h ? "right" : "WRONG");
    return 0;
}
