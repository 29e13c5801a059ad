// expect: clean
// pair: kernel multiply / cudaMemcpy
// needs: none
// why: One stream. Tiles in shared memory; edges that are no multiple of the tile.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

template <int TILE> __global__ void multiply(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float ta[TILE][TILE], tb[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < k; t += TILE) {
        ta[threadIdx.y][threadIdx.x] = row < m && t + threadIdx.x < k ? a[row * k + t + threadIdx.x] : 0.f;
        tb[threadIdx.y][threadIdx.x] = column < n && t + threadIdx.y < k ? b[(t + threadIdx.y) * n + column] : 0.f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

int main() {
    const int m = 150, n = 131, k = 170;
    std::vector<float> a(m * k), b(k * n), c(m * n), c32(m * n);
    for (int i = 0; i < m * k; i++) a[i] = i * 7 % 19 - 9;
    for (int i = 0; i < k * n; i++) b[i] = i * 5 % 23 - 11;
    float *da, *db, *dc;
    CHECK(cudaMalloc(&da, a.size() * 4));
    CHECK(cudaMalloc(&db, b.size() * 4));
    CHECK(cudaMalloc(&dc, c.size() * 4));
    CHECK(cudaMemcpy(da, a.data(), a.size() * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), b.size() * 4, cudaMemcpyHostToDevice));
    multiply<16><<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(da, db, dc, m, n, k);
    CHECK(cudaMemcpy(c.data(), dc, c.size() * 4, cudaMemcpyDeviceToHost));
    multiply<32><<<dim3((n + 31) / 32, (m + 31) / 32), dim3(32, 32)>>>(da, db, dc, m, n, k);
    CHECK(cudaMemcpy(c32.data(), dc, c.size() * 4, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int x = 0; x < k; x++) sum += a[i * k + x] * b[x * n + j];
            wrong += c[i * n + j] != sum || c32[i * n + j] != sum;
        }
    printf("c[0] %.0f, c[last] %.0f, %d wrong\n", c[0], c[m * n - 1], wrong);
    CHECK(cudaFree(da));
    CHECK(cudaFree(db));
    CHECK(cudaFree(dc));
    return 0;
}
