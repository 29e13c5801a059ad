// expect: clean
// pair: kernel square on stream work / cudaMemcpyAsync of the next batch but one on stream up
// needs: none
// racy: race WAR
// why: Two buffers in turn: the upload waits until the batch before last was read. With `racy` it does not.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void square(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * in[i];
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int batches = 6, n = 1 << 14;
    int *in, *out, *d_in[2], *d_out[2];
    CHECK(cudaMallocHost(&in, batches * n * 4));
    CHECK(cudaMallocHost(&out, batches * n * 4));
    for (int i = 0; i < batches * n; i++) in[i] = i % 40000 - 20000;
    cudaStream_t up, work, down;
    cudaEvent_t filled[2], computed[2], stored[2];
    for (cudaStream_t *s : {&up, &work, &down}) CHECK(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMalloc(&d_in[i], n * 4));
        CHECK(cudaMalloc(&d_out[i], n * 4));
        for (cudaEvent_t *e : {&filled[i], &computed[i], &stored[i]})
            CHECK(cudaEventCreateWithFlags(e, cudaEventDisableTiming));
    }
    for (int b = 0; b < batches; b++) {
        int k = b % 2;
        if (b >= 2 && !racy) CHECK(cudaStreamWaitEvent(up, computed[k], 0));
        CHECK(cudaMemcpyAsync(d_in[k], in + b * n, n * 4, cudaMemcpyHostToDevice, up));
        CHECK(cudaEventRecord(filled[k], up));
        CHECK(cudaStreamWaitEvent(work, filled[k], 0));
        if (b >= 2) CHECK(cudaStreamWaitEvent(work, stored[k], 0));
        square<<<n / 256, 256, 0, work>>>(d_in[k], d_out[k], n);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(computed[k], work));
        CHECK(cudaStreamWaitEvent(down, computed[k], 0));
        CHECK(cudaMemcpyAsync(out + b * n, d_out[k], n * 4, cudaMemcpyDeviceToHost, down));
        CHECK(cudaEventRecord(stored[k], down));
    }
    CHECK(cudaDeviceSynchronize());
    int wrong = 0;
    for (int i = 0; i < batches * n; i++) wrong += out[i] != in[i] * in[i];
    printf("%d batches, last %d, %d wrong\n", batches, out[batches * n - 1], wrong);
    for (int i = 0; i < 2; i++) {
        CHECK(cudaFree(d_in[i]));
        CHECK(cudaFree(d_out[i]));
    }
    return 0;
}
