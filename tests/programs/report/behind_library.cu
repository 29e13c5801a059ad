// Two calls of a library's function on two streams, in no order: the report and its mending lines
// name the program's lines, not the library's.
#include "cub/launcher.cuh"
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                    \
    do {                                                               \
        cudaError_t error = call;                                      \
        if (error != cudaSuccess) {                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
            exit(1);                                                   \
        }                                                              \
    } while (0)

int main(int argc, char **) {
    const bool waits = argc > 1;
    const int n = 4096;
    float *out;
    CHECK(cudaMalloc(&out, n * sizeof(float)));
    cudaStream_t first, second;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    cudaEvent_t filled;
    CHECK(cudaEventCreate(&filled));
    CHECK(cub::fill(out, 1.0f, n, first));
    CHECK(cudaEventRecord(filled, first));
    if (waits) CHECK(cudaStreamWaitEvent(second, filled, 0));
    CHECK(cub::fill(out, 2.0f, n, second));
    CHECK(cudaDeviceSynchronize());
    return 0;
}
