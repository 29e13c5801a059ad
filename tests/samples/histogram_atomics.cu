// expect: clean
// pair: cudaMemsetAsync on stream a / kernel count on stream b
// needs: none
// racy: race RAW
// why: b waits until a has cleared the bins; with `racy` it does not. Two kernels add to the bins side by side, atomically.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void count(const unsigned char *in, unsigned *bins, int n) {
    __shared__ unsigned mine[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) mine[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[in[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], mine[i]);
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int n = 1 << 20;
    std::vector<unsigned char> in(n);
    unsigned state = 1, want[256] = {}, got[256];
    for (auto &x : in) state = state * 1664525 + 1013904223, x = (state >> 24) & (state >> 16), want[x]++;
    unsigned char *data;
    unsigned *bins;
    CHECK(cudaMalloc(&data, n));
    CHECK(cudaMalloc(&bins, sizeof got));
    CHECK(cudaMemcpy(data, in.data(), n, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(bins, 7, sizeof got));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t a, b;
    cudaEvent_t cleared;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&cleared, cudaEventDisableTiming));

    CHECK(cudaMemsetAsync(bins, 0, sizeof got, a));
    CHECK(cudaEventRecord(cleared, a));
    if (!racy) CHECK(cudaStreamWaitEvent(b, cleared, 0));
    count<<<32, 256, 0, b>>>(data, bins, n / 2);
    count<<<32, 256, 0, a>>>(data + n / 2, bins, n - n / 2);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(got, bins, sizeof got, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < 256; i++) wrong += got[i] != want[i];
    printf("bin 0 %u, bin 1 %u, bin 255 %u, %d wrong\n", got[0], got[1], got[255], wrong);
    CHECK(cudaFree(data));
    CHECK(cudaFree(bins));
    return 0;
}
