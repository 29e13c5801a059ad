// expect: race host WAR
// pair: cudaMemcpyAsync H2D on stream s / host write to staging
// needs: host
// why: the event that the host waits for before the refill was recorded before the copy, not behind it.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void add_into(long long *sum, const int *v, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] += v[i];
}

int main() {
    const int n = 1 << 16, rounds = 3;
    const size_t bytes = n * sizeof(int);
    int *staging, *dev;
    long long *sum;
    cudaEvent_t copied;
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaHostAlloc(&staging, bytes, cudaHostAllocDefault));
    CHECK(cudaMalloc(&dev, bytes));
    CHECK(cudaMalloc(&sum, n * sizeof(long long)));
    CHECK(cudaMemsetAsync(sum, 0, n * sizeof(long long), s));
    CHECK(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));

    for (int r = 0; r < rounds; ++r) {
        if (r > 0) CHECK(cudaEventSynchronize(copied));
        for (int i = 0; i < n; ++i) staging[i] = r + i;
        CHECK(cudaEventRecord(copied, s));      // one line too early
        CHECK(cudaMemcpyAsync(dev, staging, bytes, cudaMemcpyHostToDevice, s));
        add_into<<<n / 256, 256, 0, s>>>(sum, dev, n);
        CHECK(cudaGetLastError());
    }

    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaEventDestroy(copied));
    CHECK(cudaFreeHost(staging));
    CHECK(cudaFree(dev));
    CHECK(cudaFree(sum));
    return 0;
}
