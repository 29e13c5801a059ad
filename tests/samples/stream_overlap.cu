// expect: clean
// pair: kernel work on streams 0 to 3 / kernel total on the joining stream
// needs: range
// racy: race RAW
// why: Four streams work on slices; the joining stream waits for an event of each. With `racy` the last one is forgotten.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void work(int *x, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = x[i];
    for (int r = 0; r < rounds; r++) v = v * 1103515245u + 12345u;
    x[i] = v >> 20;
}

__global__ void total(const int *x, int *sum, int n) {
    int mine = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) mine += x[i];
    atomicAdd(sum, mine);
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int streams = 4, n = 1 << 16, slice = n / streams;
    int *host, *x, *sum, got;
    CHECK(cudaMallocHost(&host, n * 4));
    CHECK(cudaMalloc(&x, n * 4));
    CHECK(cudaMalloc(&sum, 4));
    CHECK(cudaMemset(sum, 0, 4));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) host[i] = i;
    cudaStream_t s[streams], join;
    cudaEvent_t done[streams];
    CHECK(cudaStreamCreateWithFlags(&join, cudaStreamNonBlocking));
    for (int i = 0; i < streams; i++) {
        CHECK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
        CHECK(cudaMemcpyAsync(x + i * slice, host + i * slice, slice * 4, cudaMemcpyHostToDevice, s[i]));
        work<<<slice / 128, 128, 0, s[i]>>>(x + i * slice, slice, 20);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(done[i], s[i]));
        if (!racy || i + 1 < streams) CHECK(cudaStreamWaitEvent(join, done[i], 0));
    }
    total<<<1, 256, 0, join>>>(x, sum, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(&got, sum, 4, cudaMemcpyDeviceToHost, join));
    CHECK(cudaStreamSynchronize(join));
    int want = 0;
    for (int i = 0; i < n; i++) {
        unsigned v = i;
        for (int r = 0; r < 20; r++) v = v * 1103515245u + 12345u;
        want += v >> 20;
    }
    printf("sum %d, %s\n", got, got == want ? "right" : "wrong");
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(x));
    CHECK(cudaFree(sum));
    CHECK(cudaFreeHost(host));
    return 0;
}
