// What the programs for --confirm share: turns of a loop in which two streams that nothing orders use one buffer, and between the turns
// time for the analysis to ask for the kernels.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                 \
    do {                                                                            \
        cudaError_t error = call;                                                   \
        if (error != cudaSuccess) {                                                 \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));          \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

struct Pair {
    cudaStream_t a, b;
    Pair() {
        CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
        CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    }
};

// 12 turns; what `turn` starts runs concurrently, the turns do not.
template <class F> void turns(F turn) {
    for (int i = 0; i < 12; i++) {
        turn(i);
        CHECK(cudaDeviceSynchronize());
        usleep(60000);
    }
}
