// expect: race host RAW
// pair: cudaMemcpyAsync D2H on stream s / host read of result
// needs: host
// why: the host sums up the result of an asynchronous download without waiting for it.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void ones(int *v, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) v[i] = 1;
}

int main() {
    const int n = 1 << 20;
    const size_t bytes = n * sizeof(int);
    int *result, *dev;
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&result, bytes));
    CHECK(cudaMalloc(&dev, bytes));
    for (int i = 0; i < n; ++i) result[i] = 0;

    ones<<<n / 256, 256, 0, s>>>(dev, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(result, dev, bytes, cudaMemcpyDeviceToHost, s));
    long long sum = 0;
    for (int i = 0; i < n; ++i) sum += result[i];       // too early

    CHECK(cudaStreamSynchronize(s));
    printf("a sum that cannot be trusted: %lld\n", sum);
    CHECK(cudaFreeHost(result));
    CHECK(cudaFree(dev));
    return 0;
}
