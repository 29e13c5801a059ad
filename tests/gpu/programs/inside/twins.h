// What the twins beside it share: each program is racy, or mended with -DMENDED. Their races are
// inside kernels; nothing is overlapped.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) \
    do { \
        cudaError_t error_ = (call); \
        if (error_ != cudaSuccess) { \
            printf("%s: %s\n", #call, cudaGetErrorString(error_)); \
            exit(1); \
        } \
    } while (0)

// MENDED_ONLY is left out of the racy twin, RACY_ONLY of the mended one.
#ifdef MENDED
#define MENDED_ONLY(...) __VA_ARGS__
#define RACY_ONLY(...)
#define PICK(racy, mended) mended
#else
#define MENDED_ONLY(...)
#define RACY_ONLY(...) __VA_ARGS__
#define PICK(racy, mended) racy
#endif

// Zeros.
template <class T> T* device(size_t count) {
    T* data;
    CHECK(cudaMalloc(&data, count * sizeof(T)));
    CHECK(cudaMemset(data, 0, count * sizeof(T)));
    return data;
}

// Numbers that differ from their neighbours: among equal ones races are benign.
inline int* numbers(size_t count, int step = 7, int first = 3) {
    int* host = (int*)malloc(count * sizeof(int));
    for (size_t i = 0; i < count; i++) host[i] = (int)((i * step + first) % 1009) + 1;
    int* data;
    CHECK(cudaMalloc(&data, count * sizeof(int)));
    CHECK(cudaMemcpy(data, host, count * sizeof(int), cudaMemcpyHostToDevice));
    free(host);
    return data;
}
