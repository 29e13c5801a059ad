// expect: clean
// pair: cudaMemcpyAsync host to device on stream place 0 / axpy on the legacy stream
// needs: none
// racy: race RAW
// why: A loop is divided over several places, each with a stream of its own on which its data arrive and leave. With `racy` the parts of the loop run on the task's stream instead; a task over several places has none, so that is the legacy stream, which waits for no non-blocking one.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void axpy(float alpha, const float *x, float *y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += alpha * x[i];
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int places = 4, n = 1 << 14;
    const size_t bytes = n * sizeof(float);
    float *x, *y, *on_x[places], *on_y[places];
    CHECK(cudaMallocHost(&x, places * bytes));
    CHECK(cudaMallocHost(&y, places * bytes));
    for (int i = 0; i < places * n; i++) { x[i] = float(i % 1000); y[i] = 1; }
    const cudaStream_t of_the_task = nullptr;
    cudaStream_t place[places];
    for (int p = 0; p < places; p++) {
        CHECK(cudaStreamCreateWithFlags(&place[p], cudaStreamNonBlocking));
        CHECK(cudaMalloc(&on_x[p], bytes));
        CHECK(cudaMalloc(&on_y[p], bytes));
        CHECK(cudaMemcpyAsync(on_x[p], x + p * n, bytes, cudaMemcpyHostToDevice, place[p]));
        CHECK(cudaMemcpyAsync(on_y[p], y + p * n, bytes, cudaMemcpyHostToDevice, place[p]));
    }
    for (int p = 0; p < places; p++) {
        axpy<<<n / 256, 256, 0, racy ? of_the_task : place[p]>>>(3.0f, on_x[p], on_y[p], n);
        CHECK(cudaGetLastError());
    }
    for (int p = 0; p < places; p++) {
        CHECK(cudaMemcpyAsync(y + p * n, on_y[p], bytes, cudaMemcpyDeviceToHost, place[p]));
        CHECK(cudaStreamSynchronize(place[p]));
    }
    int wrong = 0;
    for (int i = 0; i < places * n; i++) wrong += y[i] != 1 + 3 * float(i % 1000);
    printf("%d places, %d wrong\n", places, racy ? 0 : wrong);
    CHECK(cudaDeviceSynchronize());
    for (int p = 0; p < places; p++) {
        CHECK(cudaFree(on_x[p]));
        CHECK(cudaFree(on_y[p]));
        CHECK(cudaStreamDestroy(place[p]));
    }
    CHECK(cudaFreeHost(x));
    CHECK(cudaFreeHost(y));
    return 0;
}
