// A copy from pageable memory returns when the bytes are in a buffer of the driver: they may still
// be on their way to the device when another stream reads them. A word makes the host wait.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

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
    const size_t size = 16384;
    std::vector<char> host(size, 1);
    char *from, *to;
    CHECK(cudaMalloc(&from, size));
    CHECK(cudaMalloc(&to, size));
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMemcpy(from, host.data(), size, cudaMemcpyHostToDevice));
    if (waits) CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaDeviceSynchronize());
    return 0;
}
