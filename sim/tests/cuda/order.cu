// Prints what two streams without any order made of one word, and of another with an event between them.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void put(int *x, int v) { *x = v; }
__global__ void add(int *x, int v) { *x += v; }

int main() {
    int *x, h[2];
    cudaStream_t a, b;
    cudaEvent_t e;
    CHECK(cudaMalloc(&x, 8));
    CHECK(cudaMemset(x, 0, 8));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    put<<<1, 1, 0, a>>>(x, 1);
    add<<<1, 1, 0, b>>>(x, 10);
    put<<<1, 1, 0, a>>>(x + 1, 1);
    CHECK(cudaEventRecord(e, a));
    CHECK(cudaStreamWaitEvent(b, e, 0));
    add<<<1, 1, 0, b>>>(x + 1, 10);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(h, x, 8, cudaMemcpyDeviceToHost));
    printf("%d %d\n", h[0], h[1]);
    return 0;
}
