// expect: clean
// pair: kernel work / cudaMemcpy
// needs: none
// why: One stream. The occupancy calculator's answers must be usable; which they are depends on the device.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void work(int *x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = i + 1;
}

__global__ void shared_work(int *x) {
    extern __shared__ int s[];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

struct WordEach {
    __host__ __device__ size_t operator()(int threads) const { return threads * 4; }
};

int main() {
    int grid, block, fit, shared_grid, shared_block, processors, threads;
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, work, 0, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, work, block, 0));
    CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, 0));
    CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&shared_grid, &shared_block, shared_work, WordEach()));
    int small, large;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&small, shared_work, 64, 1024));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&large, shared_work, 64, 40 << 10));
    size_t available;
    CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&available, shared_work, 1, 64));
    const int n = 1 << 17;
    int *x, last;
    CHECK(cudaMalloc(&x, n * 4));
    work<<<grid, block>>>(x, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&last, x + n - 1, 4, cudaMemcpyDeviceToHost));
    shared_work<<<1, shared_block, shared_block * 4>>>(x);
    int first;
    CHECK(cudaMemcpy(&first, x, 4, cudaMemcpyDeviceToHost));
    printf("whole warps %d, fills %d, within %d, last %d, first %d, less with more shared %d, available %d\n", block % 32 == 0,
           fit >= 1 && grid == fit * processors, fit * block <= threads, last, first == shared_block - 1, large < small && large > 0,
           available >= (32 << 10));
    CHECK(cudaFree(x));
    return 0;
}
