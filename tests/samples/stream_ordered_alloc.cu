// expect: clean
// pair: kernel fill on stream a / kernel twice on stream b
// needs: none
// racy: race RAW
// why: Memory of stream-ordered allocations is handed to another stream with an event; with `racy` without one.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void fill(int *x, int n, int v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i + v;
}

__global__ void twice(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int n = 1 << 15;
    cudaStream_t a, b;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    cudaEvent_t filled, read;
    CHECK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&read, cudaEventDisableTiming));
    int supported, *out, *host;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
    CHECK(cudaMalloc(&out, n * 4));
    CHECK(cudaMallocHost(&host, n * 4));
    cudaMemPool_t pool;
    unsigned long long keep = ~0ull, kept = 0;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
    long long sum = 0, want = 0;
    for (int round = 0; round < 4; round++) {
        int *x;
        CHECK(cudaMallocAsync(&x, n * 4, a));
        fill<<<n / 256, 256, 0, a>>>(x, n, round);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(filled, a));
        if (!racy) CHECK(cudaStreamWaitEvent(b, filled, 0));
        twice<<<n / 256, 256, 0, b>>>(x, out, n);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(host, out, n * 4, cudaMemcpyDeviceToHost, b));
        CHECK(cudaEventRecord(read, b));
        CHECK(cudaStreamWaitEvent(a, read, 0));
        CHECK(cudaFreeAsync(x, a));
        CHECK(cudaStreamSynchronize(b));
        for (int i = 0; i < n; i++) sum += host[i], want += 2 * (i + round);
    }
    CHECK(cudaStreamSynchronize(a));
    CHECK(cudaMemPoolTrimTo(pool, 0));
    printf("supported %d, kept %d, sum %s\n", supported, kept == keep, racy || sum == want ? "right" : "wrong");
    CHECK(cudaFree(out));
    CHECK(cudaFreeHost(host));
    return 0;
}
