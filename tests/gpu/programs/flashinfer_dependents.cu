// FlashInfer's norms, launched as dependents of a kernel that triggers before it writes.
//
// flashinfer_dependents norm|fused
//
// The kernel before the norm writes the input again. The norm waits before it reads it, and nothing
// races. Compiled with headers whose waits a macro leaves out, while the launch attribute stays, as
// in flashinfer#2708, it races. Needs FlashInfer's headers, and -arch=sm_90.
#include <cstdio>
#include <cstring>
#include <vector>

#include "flashinfer/norm.cuh"

#define CHECK(call)                                                                          \
    do {                                                                                     \
        cudaError_t got = (call);                                                            \
        if (got != cudaSuccess) {                                                            \
            std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(got));                 \
            std::exit(1);                                                                    \
        }                                                                                    \
    } while (0)

constexpr unsigned ROWS = 16, WIDTH = 2048;

// Lets its dependents start, and writes afterwards.
__global__ void feed(half *words, half value, int count) {
    asm volatile("griddepcontrol.launch_dependents;");
    for (int i = 0; i < 100; i++) __nanosleep(1000);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        words[i] = value;
}

int main(int argc, char **argv) {
    bool fused = argc > 1 && !std::strcmp(argv[1], "fused");
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    half *input, *residual, *weight, *output;
    CHECK(cudaMalloc(&input, ROWS * WIDTH * sizeof(half)));
    CHECK(cudaMalloc(&residual, ROWS * WIDTH * sizeof(half)));
    CHECK(cudaMalloc(&weight, WIDTH * sizeof(half)));
    CHECK(cudaMalloc(&output, ROWS * WIDTH * sizeof(half)));
    CHECK(cudaMemset(input, 0, ROWS * WIDTH * sizeof(half)));
    CHECK(cudaMemset(residual, 0, ROWS * WIDTH * sizeof(half)));
    CHECK(cudaMemset(weight, 0, WIDTH * sizeof(half)));
    CHECK(cudaDeviceSynchronize());
    feed<<<16, 128, 0, stream>>>(input, half(1.f), ROWS * WIDTH);
    CHECK(cudaGetLastError());
    using namespace flashinfer::norm;
    CHECK(fused ? FusedAddRMSNorm(input, residual, weight, ROWS, WIDTH, WIDTH, WIDTH, 1e-5f, true, stream)
                : RMSNorm(input, weight, output, ROWS, WIDTH, WIDTH, WIDTH, 1e-5f, true, stream));
    CHECK(fused ? RMSNorm(input, weight, output, ROWS, WIDTH, WIDTH, WIDTH, 1e-5f, true, stream)
                : FusedAddRMSNorm(output, residual, weight, ROWS, WIDTH, WIDTH, WIDTH, 1e-5f, true, stream));
    CHECK(cudaDeviceSynchronize());
    std::printf("done\n");
    return 0;
}
