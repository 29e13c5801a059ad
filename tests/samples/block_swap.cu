// expect: clean
// pair: cudaMemcpyAsync device to host on stream down / cudaMemcpyAsync host to device on stream up
// needs: none
// racy: race WAR
// why: A matrix that does not fit is worked on block by block in one of two buffers. What was computed leaves on one stream, the next block comes on another; with `racy` no event keeps the upload from a buffer that is still being downloaded.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void train(float *block, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) block[i] = 2 * block[i] + 1;
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int blocks = 6, n = 1 << 16;
    const size_t bytes = n * sizeof(float);
    float *matrix, *buffer[2];
    CHECK(cudaMallocHost(&matrix, blocks * bytes));
    for (int i = 0; i < blocks * n; i++) matrix[i] = float(i % 4096);
    for (float *&b : buffer) CHECK(cudaMalloc(&b, bytes));
    cudaStream_t up, work, down;
    for (cudaStream_t *stream : {&up, &work, &down}) CHECK(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    cudaEvent_t uploaded[2], worked[2], downloaded[2];
    for (cudaEvent_t *events : {uploaded, worked, downloaded})
        for (int i = 0; i < 2; i++) CHECK(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));

    for (int b = 0; b < blocks; b++) {
        const int k = b % 2;
        // An event that was never recorded holds nobody up: the first two blocks come at once.
        if (!racy) CHECK(cudaStreamWaitEvent(up, downloaded[k], 0));
        CHECK(cudaMemcpyAsync(buffer[k], matrix + b * n, bytes, cudaMemcpyHostToDevice, up));
        CHECK(cudaEventRecord(uploaded[k], up));
        CHECK(cudaStreamWaitEvent(work, uploaded[k], 0));
        train<<<n / 256, 256, 0, work>>>(buffer[k], n);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(worked[k], work));
        CHECK(cudaStreamWaitEvent(down, worked[k], 0));
        CHECK(cudaMemcpyAsync(matrix + b * n, buffer[k], bytes, cudaMemcpyDeviceToHost, down));
        CHECK(cudaEventRecord(downloaded[k], down));
    }
    for (cudaStream_t stream : {up, work, down}) CHECK(cudaStreamSynchronize(stream));

    int wrong = 0;
    for (int i = 0; i < blocks * n; i++) wrong += matrix[i] != 2 * float(i % 4096) + 1;
    printf("%d blocks, %d wrong\n", blocks, racy ? 0 : wrong);
    for (float *b : buffer) CHECK(cudaFree(b));
    CHECK(cudaFreeHost(matrix));
    return 0;
}
