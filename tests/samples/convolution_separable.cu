// expect: clean
// pair: kernel rows on stream a / kernel columns on stream b
// needs: none
// racy: race RAW
// why: Two passes with weights in constant memory, halves of the work on two streams; the second waits for the first pass, or (`racy`) not.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

const int RADIUS = 8, TILE_X = 64, TILE_Y = 16;
__constant__ float weights[2 * RADIUS + 1];

__global__ void rows(const float *in, float *out, int width) {
    __shared__ float s[4][TILE_X + 2 * RADIUS];
    int x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    for (int i = threadIdx.x; i < TILE_X + 2 * RADIUS; i += TILE_X) {
        int from = blockIdx.x * TILE_X + i - RADIUS;
        s[threadIdx.y][i] = from >= 0 && from < width ? in[y * width + from] : 0.f;
    }
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int k = -RADIUS; k <= RADIUS; k++) sum += weights[RADIUS - k] * s[threadIdx.y][threadIdx.x + RADIUS + k];
    out[y * width + x] = sum;
}

__global__ void columns(const float *in, float *out, int width, int height) {
    __shared__ float s[TILE_Y + 2 * RADIUS][TILE_X];
    int x = blockIdx.x * TILE_X + threadIdx.x;
    for (int i = threadIdx.y; i < TILE_Y + 2 * RADIUS; i += 4) {
        int from = blockIdx.y * TILE_Y + i - RADIUS;
        s[i][threadIdx.x] = from >= 0 && from < height ? in[from * width + x] : 0.f;
    }
    __syncthreads();
    for (int j = threadIdx.y; j < TILE_Y; j += 4) {
        float sum = 0;
#pragma unroll
        for (int k = -RADIUS; k <= RADIUS; k++) sum += weights[RADIUS - k] * s[j + RADIUS + k][threadIdx.x];
        out[(blockIdx.y * TILE_Y + j) * width + x] = sum;
    }
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int width = 256, height = 192, n = width * height;
    std::vector<float> in(n), got(n), mid(n);
    float w[2 * RADIUS + 1];
    for (int i = 0; i < n; i++) in[i] = i * 13 % 17;
    for (int i = 0; i <= 2 * RADIUS; i++) w[i] = i * 5 % 7 - 2;
    float *x, *y, *z;
    for (float **p : {&x, &y, &z}) CHECK(cudaMalloc(p, n * 4));
    CHECK(cudaMemcpyToSymbol(weights, w, sizeof w));
    CHECK(cudaMemcpy(x, in.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t a, b;
    cudaEvent_t done;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    rows<<<dim3(width / TILE_X, height / 4), dim3(TILE_X, 4), 0, a>>>(x, y, width);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(done, a));
    if (!racy) CHECK(cudaStreamWaitEvent(b, done, 0));
    columns<<<dim3(width / TILE_X, height / TILE_Y), dim3(TILE_X, 4), 0, b>>>(y, z, width, height);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(got.data(), z, n * 4, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        float sum = 0;
        for (int k = -RADIUS; k <= RADIUS; k++)
            if (i % width + k >= 0 && i % width + k < width) sum += w[RADIUS - k] * in[i + k];
        mid[i] = sum;
    }
    for (int i = 0; i < n; i++) {
        float sum = 0;
        for (int k = -RADIUS; k <= RADIUS; k++)
            if (i / width + k >= 0 && i / width + k < height) sum += w[RADIUS - k] * mid[i + k * width];
        wrong += got[i] != sum;
    }
    printf("middle %.0f, %d wrong\n", got[n / 2 + width / 2], wrong);
    for (float *p : {x, y, z}) CHECK(cudaFree(p));
    return 0;
}
