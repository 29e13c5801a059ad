// expect: clean
// pair: kernel sort_tiles / kernel merge_step
// needs: none
// why: One stream: a sorting network in shared memory within tiles and in global memory across them.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

#include <algorithm>
const int TILE = 1024;

__device__ void order(unsigned &a, unsigned &b, bool up) {
    if ((a > b) == up) {
        unsigned t = a;
        a = b;
        b = t;
    }
}

__global__ void sort_tiles(unsigned *x) {
    __shared__ unsigned s[TILE];
    int base = blockIdx.x * TILE, t = threadIdx.x;
    s[t] = x[base + t];
    s[t + TILE / 2] = x[base + t + TILE / 2];
    for (int size = 2; size <= TILE; size *= 2)
        for (int step = size / 2; step; step /= 2) {
            __syncthreads();
            int at = 2 * t - (t & (step - 1));
            order(s[at], s[at + step], ((base + at) & size) == 0);
        }
    __syncthreads();
    x[base + t] = s[t];
    x[base + t + TILE / 2] = s[t + TILE / 2];
}

__global__ void merge_step(unsigned *x, int size, int step) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, at = 2 * t - (t & (step - 1));
    order(x[at], x[at + step], (at & size) == 0);
}

__global__ void merge_tiles(unsigned *x, int size) {
    __shared__ unsigned s[TILE];
    int base = blockIdx.x * TILE, t = threadIdx.x;
    s[t] = x[base + t];
    s[t + TILE / 2] = x[base + t + TILE / 2];
    for (int step = TILE / 2; step; step /= 2) {
        __syncthreads();
        int at = 2 * t - (t & (step - 1));
        order(s[at], s[at + step], ((base + at) & size) == 0);
    }
    __syncthreads();
    x[base + t] = s[t];
    x[base + t + TILE / 2] = s[t + TILE / 2];
}

int main() {
    const int n = 1 << 15;
    std::vector<unsigned> in(n), out(n);
    for (int i = 0; i < n; i++) in[i] = i * 2654435761u ^ (i << 3);
    unsigned *x;
    CHECK(cudaMalloc(&x, n * 4));
    CHECK(cudaMemcpy(x, in.data(), n * 4, cudaMemcpyHostToDevice));
    sort_tiles<<<n / TILE, TILE / 2>>>(x);
    for (int size = 2 * TILE; size <= n; size *= 2) {
        for (int step = size / 2; step >= TILE; step /= 2) merge_step<<<n / 512, 256>>>(x, size, step);
        merge_tiles<<<n / TILE, TILE / 2>>>(x, size);
    }
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), x, n * 4, cudaMemcpyDeviceToHost));
    std::sort(in.begin(), in.end());
    printf("least %u, median %u, %s\n", out[0], out[n / 2], in == out ? "sorted" : "wrong");
    CHECK(cudaFree(x));
    return 0;
}
