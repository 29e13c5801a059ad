// expect: race RAW
// pair: kernel fill on stream a / kernel scale on stream b
// link: separate
// why: Relocatable device code of one source: the program holds machine code that is linked, and PTX that is not. Nothing orders scale behind the fill.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

static __device__ float hidden = 3.0f;

__device__ __noinline__ float scaled(float v) {
    return hidden * v;
}

__global__ void fill(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 0.5f * i;
}

__global__ void scale(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = scaled(x[i]);
}

int main() {
    const int n = 1 << 18;
    float *x, *y, last = 0;
    cudaStream_t a, b;
    CHECK(cudaMalloc(&x, n * sizeof(float)));
    CHECK(cudaMalloc(&y, n * sizeof(float)));
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));

    fill<<<n / 256, 256, 0, a>>>(x, n);
    CHECK(cudaGetLastError());
    scale<<<n / 256, 256, 0, b>>>(x, y, n);
    CHECK(cudaGetLastError());

    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&last, y + n - 1, sizeof last, cudaMemcpyDeviceToHost));
    printf("%g\n", last);
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    return 0;
}
