// Two host threads fill one buffer, each on its own per-thread default stream: the report tells the
// two streams apart. A word makes the second thread wait on the device for the first.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <thread>

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
    const size_t size = 8192;
    char *out;
    CHECK(cudaMalloc(&out, size));
    cudaEvent_t done;
    CHECK(cudaEventCreate(&done));
    std::thread first([=] {
        CHECK(cudaMemsetAsync(out, 1, size, cudaStreamPerThread));
        CHECK(cudaEventRecord(done, cudaStreamPerThread));
    });
    first.join();
    std::thread second([=] {
        if (waits) CHECK(cudaStreamWaitEvent(cudaStreamPerThread, done, 0));
        CHECK(cudaMemsetAsync(out, 2, size, cudaStreamPerThread));
    });
    second.join();
    CHECK(cudaDeviceSynchronize());
    return 0;
}
