// expect: clean
// pair: cudaMemcpyAsync D2H on stream s / host read of result[slot]
// needs: host
// why: two downloads are in flight at a time, and the host reads each after waiting for the event behind it.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void make(int *v, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) v[i] = i * k;
}

int main() {
    const int n = 1 << 16, rounds = 6;
    const size_t bytes = n * sizeof(int);
    int *result[2], *dev[2];
    cudaEvent_t done[2];
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (int k = 0; k < 2; ++k) {
        CHECK(cudaMallocHost(&result[k], bytes));
        CHECK(cudaMalloc(&dev[k], bytes));
        CHECK(cudaEventCreateWithFlags(&done[k], cudaEventDisableTiming));
    }
    long long wrong = 0;
    for (int r = 0; r <= rounds; ++r) {
        if (r < rounds) {
            make<<<n / 256, 256, 0, s>>>(dev[r & 1], n, r);
            CHECK(cudaGetLastError());
            CHECK(cudaMemcpyAsync(result[r & 1], dev[r & 1], bytes, cudaMemcpyDeviceToHost, s));
            CHECK(cudaEventRecord(done[r & 1], s));
        }
        if (r > 0) {
            int last = (r - 1) & 1;
            CHECK(cudaEventSynchronize(done[last]));
            for (int i = 0; i < n; ++i) wrong += result[last][i] != i * (r - 1);
        }
    }
    CHECK(cudaStreamSynchronize(s));
    for (int k = 0; k < 2; ++k) {
        CHECK(cudaEventDestroy(done[k]));
        CHECK(cudaFreeHost(result[k]));
        CHECK(cudaFree(dev[k]));
    }
    return wrong != 0;
}
