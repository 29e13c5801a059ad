// expect: race host WAR
// pair: cudaMemcpy2DAsync H2D on stream s / host write to rows
// needs: host
// why: the host reuses the registered rows of a 2D copy although only another stream was waited for.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void scale(float *v, size_t pitch, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < w && y < h) ((float *)((char *)v + y * pitch))[x] *= 2.0f;
}

int main() {
    const int w = 300, h = 64;
    const size_t row = 512 * sizeof(float);
    float *rows = (float *)aligned_alloc(4096, h * row), *dev;
    size_t pitch;
    cudaStream_t s, other;
    CHECK(cudaHostRegister(rows, h * row, cudaHostRegisterDefault));
    CHECK(cudaMallocPitch(&dev, &pitch, w * sizeof(float), h));
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));

    for (int y = 0; y < h; ++y) for (int x = 0; x < w; ++x) rows[y * 512 + x] = x + y;
    CHECK(cudaMemcpy2DAsync(dev, pitch, rows, row, w * sizeof(float), h, cudaMemcpyHostToDevice, s));
    scale<<<dim3((w + 255) / 256, h), 256, 0, s>>>(dev, pitch, w, h);
    CHECK(cudaGetLastError());

    CHECK(cudaStreamSynchronize(other));        // not the stream of the copy
    rows[40 * 512 + 7] = -1.0f;

    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaHostUnregister(rows));
    CHECK(cudaFree(dev));
    free(rows);
    return 0;
}
