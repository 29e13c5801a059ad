// expect: clean
// pair: cudaMemcpyAsync D2H on stream s / host accesses to the same page
// needs: host range
// why: the host uses other bytes of the page while one number is downloaded, and that number only after waiting.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void count(int *total, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, 1);
}

int main() {
    int *numbers, *dev;
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&numbers, 8 * sizeof(int)));
    CHECK(cudaMalloc(&dev, sizeof(int)));
    CHECK(cudaMemset(dev, 0, sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 8; ++i) numbers[i] = i;

    count<<<64, 256, 0, s>>>(dev, 16000);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(&numbers[3], dev, sizeof(int), cudaMemcpyDeviceToHost, s));
    volatile int *mine = numbers;
    for (int i = 0; i < 100; ++i) mine[2] = mine[2] + mine[4];

    CHECK(cudaStreamSynchronize(s));
    int wrong = numbers[3] != 16000 || numbers[2] != 402;
    CHECK(cudaFreeHost(numbers));
    CHECK(cudaFree(dev));
    return wrong;
}
