// expect: race host RAW
// pair: cudaMemcpyAsync D2H on stream s / host read of count
// needs: host
// why: the host looks at a single number that is still being downloaded; other numbers beside it are its own.
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
    int early = ((volatile int *)numbers)[3];

    CHECK(cudaStreamSynchronize(s));
    printf("looked: %d\n", early);
    CHECK(cudaFreeHost(numbers));
    CHECK(cudaFree(dev));
    return 0;
}
