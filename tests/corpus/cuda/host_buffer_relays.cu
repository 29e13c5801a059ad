// expect: clean
// pair: cudaMemcpyAsync D2H on stream s / cudaMemcpyAsync H2D on stream s
// needs: host
// why: the pinned buffer is filled by one copy and read by the next in the same stream, so it changes while both are pending, but not by the host.
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
    const int n = 1 << 16;
    const size_t bytes = n * sizeof(int);
    int *relay, *from, *to;
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&relay, bytes));
    CHECK(cudaMalloc(&from, bytes));
    CHECK(cudaMalloc(&to, bytes));
    for (int i = 0; i < n; ++i) relay[i] = -1;

    for (int round = 1; round <= 3; ++round) {
        make<<<n / 256, 256, 0, s>>>(from, n, round);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(relay, from, bytes, cudaMemcpyDeviceToHost, s));
        CHECK(cudaMemcpyAsync(to, relay, bytes, cudaMemcpyHostToDevice, s));
    }

    CHECK(cudaStreamSynchronize(s));
    int wrong = relay[n - 1] != 3 * (n - 1);
    CHECK(cudaFreeHost(relay));
    CHECK(cudaFree(from));
    CHECK(cudaFree(to));
    return wrong;
}
