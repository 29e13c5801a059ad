// expect: clean
// pair: kernel reverse / cudaMemcpy
// needs: none
// why: One stream. More shared memory than 48 KB, asked for by attribute; refused without it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

extern __shared__ int room[];

__global__ void reverse(const int *in, int *out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) room[i] = in[blockIdx.x * n + i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[blockIdx.x * n + i] = room[n - 1 - i];
}

int main() {
    const int n = 24000, blocks = 4, bytes = n * 4;
    std::vector<int> in(blocks * n), out(blocks * n);
    for (int i = 0; i < blocks * n; i++) in[i] = i * 3;
    int *a, *b, most;
    CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    CHECK(cudaMalloc(&a, blocks * bytes));
    CHECK(cudaMalloc(&b, blocks * bytes));
    CHECK(cudaMemcpy(a, in.data(), blocks * bytes, cudaMemcpyHostToDevice));
    reverse<<<blocks, 256, bytes>>>(a, b, n);
    cudaError_t without = cudaGetLastError();
    CHECK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    CHECK(cudaFuncSetAttribute(reverse, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, reverse));
    reverse<<<blocks, 256, bytes>>>(a, b, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), b, blocks * bytes, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < blocks * n; i++) wrong += out[i] != in[i / n * n + n - 1 - i % n];
    cudaError_t beyond = cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, most + 1);
    printf("enough %d, without: %s, limit %d, beyond: %s, %d wrong\n", most >= bytes, cudaGetErrorName(without),
           attributes.maxDynamicSharedSizeBytes, cudaGetErrorName(beyond), wrong);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    return 0;
}
