// expect: clean
// pair: kernel scan / kernel add_offsets
// needs: none
// why: One stream: scan of blocks, scan of their sums, offsets added. A million elements.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

const int BLOCK = 512;

// Exclusive sums within blocks, work-efficient in shared memory; the block's total goes to `totals`.
__global__ void scan(const unsigned *in, unsigned *out, unsigned *totals, int n) {
    __shared__ unsigned s[2 * BLOCK];
    int base = blockIdx.x * 2 * BLOCK, t = threadIdx.x;
    s[t] = base + t < n ? in[base + t] : 0;
    s[t + BLOCK] = base + t + BLOCK < n ? in[base + t + BLOCK] : 0;
    int step = 1;
    for (int count = BLOCK; count; count /= 2, step *= 2) {
        __syncthreads();
        if (t < count) s[step * (2 * t + 2) - 1] += s[step * (2 * t + 1) - 1];
    }
    if (t == 0) {
        totals[blockIdx.x] = s[2 * BLOCK - 1];
        s[2 * BLOCK - 1] = 0;
    }
    for (int count = 1; count <= BLOCK; count *= 2) {
        step /= 2;
        __syncthreads();
        if (t < count) {
            int left = step * (2 * t + 1) - 1, right = step * (2 * t + 2) - 1;
            unsigned v = s[left];
            s[left] = s[right];
            s[right] += v;
        }
    }
    __syncthreads();
    if (base + t < n) out[base + t] = s[t];
    if (base + t + BLOCK < n) out[base + t + BLOCK] = s[t + BLOCK];
}

__global__ void add_offsets(unsigned *out, const unsigned *offsets, int n) {
    int i = blockIdx.x * 2 * BLOCK + threadIdx.x;
    unsigned offset = offsets[blockIdx.x];
    if (i < n) out[i] += offset;
    if (i + BLOCK < n) out[i + BLOCK] += offset;
}

int main() {
    const int n = (1 << 20) - 100, blocks = (n + 2 * BLOCK - 1) / (2 * BLOCK);
    std::vector<unsigned> in(n), out(n);
    for (int i = 0; i < n; i++) in[i] = i * 2654435761u >> 22;
    unsigned *data, *sums, *totals, *offsets, *all;
    CHECK(cudaMalloc(&data, n * 4));
    CHECK(cudaMalloc(&sums, n * 4));
    CHECK(cudaMalloc(&totals, blocks * 4));
    CHECK(cudaMalloc(&offsets, blocks * 4));
    CHECK(cudaMalloc(&all, 4));
    CHECK(cudaMemcpy(data, in.data(), n * 4, cudaMemcpyHostToDevice));
    scan<<<blocks, BLOCK>>>(data, sums, totals, n);
    scan<<<1, BLOCK>>>(totals, offsets, all, blocks);
    add_offsets<<<blocks, BLOCK>>>(sums, offsets, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), sums, n * 4, cudaMemcpyDeviceToHost));
    unsigned sum = 0, total;
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += out[i] != sum, sum += in[i];
    CHECK(cudaMemcpy(&total, all, 4, cudaMemcpyDeviceToHost));
    printf("%d elements, total %u, last %u, %d wrong\n", n, total, out[n - 1], wrong + (total != sum));
    for (unsigned *p : {data, sums, totals, offsets, all}) CHECK(cudaFree(p));
    return 0;
}
