// expect: clean
// pair: cudaMemcpyAsync H2D on stream s / host write to staging
// needs: host
// why: a kernel behind the copy raises a flag in mapped memory, and the host refills only after it has seen the flag.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void announce(volatile int *flag, int round) {
    __threadfence_system();
    *flag = round;
}

int main() {
    const int n = 1 << 15, rounds = 4;
    const size_t bytes = n * sizeof(int);
    int *staging, *dev;
    volatile int *flag;
    int *flag_on_device;
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&staging, bytes));
    CHECK(cudaHostAlloc((void **)&flag, sizeof(int), cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer((void **)&flag_on_device, (void *)flag, 0));
    CHECK(cudaMalloc(&dev, bytes));
    *flag = 0;

    for (int round = 1; round <= rounds; ++round) {
        for (int i = 0; i < n; ++i) staging[i] = round * i;
        CHECK(cudaMemcpyAsync(dev, staging, bytes, cudaMemcpyHostToDevice, s));
        announce<<<1, 1, 0, s>>>(flag_on_device, round);
        CHECK(cudaGetLastError());
        while (*flag != round) { }
    }

    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaFree(dev));
    CHECK(cudaFreeHost(staging));
    CHECK(cudaFreeHost((void *)flag));
    return 0;
}
