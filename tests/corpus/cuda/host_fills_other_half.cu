// expect: clean
// pair: cudaMemcpyAsync H2D of one half on stream s / host write to the other half
// needs: host range
// why: the host fills one half of the pinned buffer while the copy reads the other.
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
    const int n = 1000, rounds = 4;     // halves that share a page
    const size_t bytes = n * sizeof(int);
    int *staging, *dev;
    long long *sum;
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&staging, 2 * bytes));
    CHECK(cudaMalloc(&dev, bytes));
    CHECK(cudaMalloc(&sum, n * sizeof(long long)));
    CHECK(cudaMemsetAsync(sum, 0, n * sizeof(long long), s));

    for (int i = 0; i < n; ++i) staging[i] = i;
    for (int r = 0; r < rounds; ++r) {
        int *now = staging + (r & 1) * n, *next = staging + (1 - (r & 1)) * n;
        CHECK(cudaMemcpyAsync(dev, now, bytes, cudaMemcpyHostToDevice, s));
        add_into<<<4, 256, 0, s>>>(sum, dev, n);
        CHECK(cudaGetLastError());
        for (int i = 0; i < n; ++i) next[i] = r * i;
        CHECK(cudaStreamSynchronize(s));
    }

    CHECK(cudaFreeHost(staging));
    CHECK(cudaFree(dev));
    CHECK(cudaFree(sum));
    return 0;
}
