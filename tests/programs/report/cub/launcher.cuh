// Stands for a header of a library between a program's line and its launch, some calls deep.
#pragma once
#include <cuda_runtime.h>

namespace cub {

template <class T> __global__ void fill_kernel(T *out, T value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = value;
}

template <class T> __attribute__((noinline)) cudaError_t launch(T *out, T value, int n, cudaStream_t stream) {
    fill_kernel<T><<<(n + 255) / 256, 256, 0, stream>>>(out, value, n);
    return cudaGetLastError();
}

template <class T> __attribute__((noinline)) cudaError_t dispatch(T *out, T value, int n, cudaStream_t stream) {
    cudaError_t error = launch(out, value, n, stream);
    return error;
}

template <class T> __attribute__((noinline)) cudaError_t fill(T *out, T value, int n, cudaStream_t stream) {
    cudaError_t error = dispatch(out, value, n, stream);
    return error;
}

} // namespace cub
