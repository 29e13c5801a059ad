// A wait that looks right: its event is recorded after the copy, but on another stream than the
// copy's. The report names the wait and the record.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                    \
    do {                                                               \
        cudaError_t error = call;                                      \
        if (error != cudaSuccess) {                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
            exit(1);                                                   \
        }                                                              \
    } while (0)

int main(int argc, char **) {
    const bool right = argc > 1;
    const size_t size = 16384;
    char *from, *to;
    CHECK(cudaMalloc(&from, size));
    CHECK(cudaMalloc(&to, size));
    cudaStream_t upload, compute, log;
    CHECK(cudaStreamCreateWithFlags(&upload, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&log, cudaStreamNonBlocking));
    cudaEvent_t ready;
    CHECK(cudaEventCreate(&ready));
    CHECK(cudaMemsetAsync(from, 1, size, upload));
    CHECK(cudaEventRecord(ready, right ? upload : log));
    CHECK(cudaStreamWaitEvent(compute, ready, 0));
    CHECK(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, compute));
    CHECK(cudaDeviceSynchronize());
    return 0;
}
