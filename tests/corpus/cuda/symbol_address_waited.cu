// expect: clean
// pair: kernel note on stream a / kernel gather on stream b
// needs: rw
// why: an event orders the kernel that writes the __device__ array by address before the one that reads it by name.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__device__ int seen[256];

__global__ void note(int *where, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) where[i] = i;
}

__global__ void gather(int *out) {
    out[threadIdx.x] = seen[255 - threadIdx.x];
}

int main() {
    int *where, *out;
    cudaStream_t a, b;
    CHECK(cudaGetSymbolAddress((void **)&where, seen));
    CHECK(cudaMalloc(&out, 256 * sizeof(int)));
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));

    note<<<1, 256, 0, a>>>(where, 256);
    CHECK(cudaGetLastError());
    cudaEvent_t done;
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CHECK(cudaEventRecord(done, a));
    CHECK(cudaStreamWaitEvent(b, done, 0));
    gather<<<1, 256, 0, b>>>(out);
    CHECK(cudaGetLastError());

    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(out));
    return 0;
}
