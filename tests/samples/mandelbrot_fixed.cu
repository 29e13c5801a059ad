// expect: clean
// pair: kernel escape on streams 0 to 3 / cudaMemcpyAsync
// needs: range
// why: Bands of a picture on four streams, each copied back on its own stream. Fixed point, so that every pixel is exact.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void escape(unsigned char *out, int width, int height, int first) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = first + blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const int ONE = 1 << 24;
    int cr = (int)((long long)x * 3 * ONE / width) - 2 * ONE, ci = (int)((long long)y * 2 * ONE / height) - ONE;
    long long r = 0, i = 0;
    int n = 0;
    for (; n < 200; n++) {
        long long rr = r * r >> 24, ii = i * i >> 24;
        if (rr + ii > 4ll * ONE) break;
        i = (2 * r * i >> 24) + ci;
        r = rr - ii + cr;
    }
    out[y * width + x] = n;
}

int main() {
    const int width = 320, height = 200, bands = 4, rows = height / bands;
    unsigned char *device, *host;
    CHECK(cudaMalloc(&device, width * height));
    CHECK(cudaMallocHost(&host, width * height));
    cudaStream_t s[bands];
    for (int b = 0; b < bands; b++) {
        CHECK(cudaStreamCreateWithFlags(&s[b], cudaStreamNonBlocking));
        escape<<<dim3((width + 31) / 32, (rows + 1) / 2), dim3(32, 2), 0, s[b]>>>(device, width, (b + 1) * rows, b * rows);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(host + b * rows * width, device + b * rows * width, rows * width, cudaMemcpyDeviceToHost, s[b]));
    }
    CHECK(cudaDeviceSynchronize());
    unsigned hash = 1, inside = 0;
    for (int i = 0; i < width * height; i++) hash = hash * 31 + host[i], inside += host[i] == 200;
    printf("%u pixels inside, hash %08x\n", inside, hash);
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(host));
    return 0;
}
