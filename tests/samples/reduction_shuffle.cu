// expect: clean
// pair: kernel partial on stream a / kernel finish on stream b
// needs: none
// racy: race RAW
// why: b waits for the event behind the first pass; with `racy` the event is recorded before that pass.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__device__ long long warp_sum(long long v) {
    for (int step = 16; step; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);
    return v;
}

__device__ long long block_sum(long long v) {
    __shared__ long long of_warp[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    v = warp_sum(v);
    if (lane == 0) of_warp[warp] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? of_warp[lane] : 0;
    return warp == 0 ? warp_sum(v) : 0;
}

__global__ void partial(const int *in, long long *out, int n) {
    long long sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__global__ void finish(const long long *in, long long *out, int n) {
    long long sum = block_sum(threadIdx.x < n ? in[threadIdx.x] : 0);
    if (threadIdx.x == 0) *out = sum;
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int n = 1 << 20, blocks = 96;
    std::vector<int> in(n);
    long long want = 0, got = 0, *parts, *total;
    for (int i = 0; i < n; i++) want += in[i] = (int)(i * 2654435761u >> 8) - (1 << 22);
    int *data;
    CHECK(cudaMalloc(&data, n * sizeof(int)));
    CHECK(cudaMalloc(&parts, blocks * sizeof(long long)));
    CHECK(cudaMalloc(&total, sizeof(long long)));
    CHECK(cudaMemcpy(data, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(parts, 0, blocks * sizeof(long long)));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t a, b;
    cudaEvent_t done;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));

    if (racy) CHECK(cudaEventRecord(done, a));
    partial<<<blocks, 256, 0, a>>>(data, parts, n);
    CHECK(cudaGetLastError());
    if (!racy) CHECK(cudaEventRecord(done, a));
    CHECK(cudaStreamWaitEvent(b, done, 0));
    finish<<<1, 128, 0, b>>>(parts, total, blocks);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(&got, total, sizeof got, cudaMemcpyDeviceToHost, b));
    CHECK(cudaStreamSynchronize(b));
    printf("sum %lld, %s\n", got, got == want ? "right" : "wrong");
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(data));
    CHECK(cudaFree(parts));
    CHECK(cudaFree(total));
    return 0;
}
