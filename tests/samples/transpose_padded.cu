// expect: clean
// pair: kernel transpose / kernel transpose
// needs: none
// why: One stream: transposed twice through padded tiles of shared memory.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

const int TILE = 32, ROWS = 8;

__global__ void transpose(const int *in, int *out, int width, int height) {
    __shared__ int tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

int main() {
    const int width = 1000, height = 700, n = width * height;
    std::vector<int> in(n), out(n), back(n);
    for (int i = 0; i < n; i++) in[i] = i * 31;
    int *a, *b, *c;
    CHECK(cudaMalloc(&a, n * 4));
    CHECK(cudaMalloc(&b, n * 4));
    CHECK(cudaMalloc(&c, n * 4));
    CHECK(cudaMemcpy(a, in.data(), n * 4, cudaMemcpyHostToDevice));
    transpose<<<dim3((width + 31) / 32, (height + 31) / 32), dim3(TILE, ROWS)>>>(a, b, width, height);
    transpose<<<dim3((height + 31) / 32, (width + 31) / 32), dim3(TILE, ROWS)>>>(b, c, height, width);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), b, n * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(back.data(), c, n * 4, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += out[i % width * height + i / width] != in[i] || back[i] != in[i];
    printf("%d x %d, out[1] %d, %d wrong\n", width, height, out[1], wrong);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFree(c));
    return 0;
}
