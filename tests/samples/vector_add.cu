// expect: clean
// pair: cudaMemcpyAsync to a on stream up / kernel add on stream work
// needs: none
// racy: race RAW
// why: work waits for the event behind the uploads; with `racy` it does not wait.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int n = (1 << 20) - 37;
    const size_t bytes = n * sizeof(float);
    float *ha, *hb, *hc, *a, *b, *c;
    CHECK(cudaMallocHost(&ha, bytes));
    CHECK(cudaMallocHost(&hb, bytes));
    CHECK(cudaMallocHost(&hc, bytes));
    for (int i = 0; i < n; i++) ha[i] = i % 1000, hb[i] = 3 * (i % 777);
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&b, bytes));
    CHECK(cudaMalloc(&c, bytes));
    cudaStream_t up, work;
    CHECK(cudaStreamCreateWithFlags(&up, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking));
    cudaEvent_t uploaded;
    CHECK(cudaEventCreateWithFlags(&uploaded, cudaEventDisableTiming));

    CHECK(cudaMemcpyAsync(a, ha, bytes, cudaMemcpyHostToDevice, up));
    CHECK(cudaMemcpyAsync(b, hb, bytes, cudaMemcpyHostToDevice, up));
    CHECK(cudaEventRecord(uploaded, up));
    if (!racy) CHECK(cudaStreamWaitEvent(work, uploaded, 0));
    add<<<(n + 255) / 256, 256, 0, work>>>(a, b, c, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(hc, c, bytes, cudaMemcpyDeviceToHost, work));
    CHECK(cudaStreamSynchronize(work));

    int wrong = 0;
    double sum = 0;
    for (int i = 0; i < n; i++) wrong += hc[i] != ha[i] + hb[i], sum += hc[i];
    printf("%d elements, sum %.0f, %d wrong\n", n, sum, wrong);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFree(c));
    return 0;
}
