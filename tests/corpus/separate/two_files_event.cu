// expect: clean
// pair: kernel fill on stream a / kernel scale on stream b
// link: separate parts/scaled.cu
// why: A device function and a variable of another source, and a private variable of the same name in both. An event orders scale behind the fill.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__device__ float scaled(float v);
extern __device__ float factor;
static __device__ float hidden = 1.0f;

__global__ void fill(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 0.5f * i;
}

__global__ void scale(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = scaled(x[i]) + hidden;
}

int main() {
    const int n = 1 << 18;
    float *x, *y, last = 0;
    cudaStream_t a, b;
    cudaEvent_t filled;
    CHECK(cudaEventCreate(&filled));
    CHECK(cudaMalloc(&x, n * sizeof(float)));
    CHECK(cudaMalloc(&y, n * sizeof(float)));
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    const float four = 4;
    // On the reader's stream: one on the legacy stream may still be under way when it has returned.
    CHECK(cudaMemcpyToSymbolAsync(factor, &four, sizeof four, 0, cudaMemcpyHostToDevice, b));

    fill<<<n / 256, 256, 0, a>>>(x, n);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(filled, a));
    CHECK(cudaStreamWaitEvent(b, filled, 0));
    scale<<<n / 256, 256, 0, b>>>(x, y, n);
    CHECK(cudaGetLastError());

    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&last, y + n - 1, sizeof last, cudaMemcpyDeviceToHost));
    printf("%g\n", last);
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    return 0;
}
