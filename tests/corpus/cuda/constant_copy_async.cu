// expect: race RAW
// pair: cudaMemcpyToSymbolAsync on stream upload / kernel weigh on stream work
// needs: rw
// why: weigh reads __constant__ memory, which is no kernel argument, while the copy into it is unordered.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__constant__ float weights[64];

__global__ void weigh(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 64 > n) return;
    float s = 0;
    for (int k = 0; k < 64; ++k) s += weights[k] * in[i + k];
    out[i] = s;
}

int main() {
    const int n = 1 << 16;
    float *in, *out, *pinned;
    cudaStream_t upload, work;
    CHECK(cudaMalloc(&in, n * sizeof(float)));
    CHECK(cudaMalloc(&out, n * sizeof(float)));
    CHECK(cudaMallocHost(&pinned, sizeof weights));
    CHECK(cudaMemset(in, 0x3f, n * sizeof(float)));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamCreateWithFlags(&upload, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking));
    for (int k = 0; k < 64; ++k) pinned[k] = 1.0f / 64;

    CHECK(cudaMemcpyToSymbolAsync(weights, pinned, sizeof weights, 0, cudaMemcpyHostToDevice, upload));
    weigh<<<n / 256, 256, 0, work>>>(in, out, n);
    CHECK(cudaGetLastError());

    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    CHECK(cudaFreeHost(pinned));
    return 0;
}
