// What waits in helpers.cu, in a header as programs have it.
#pragma once
#include <cuda_runtime.h>

static inline void check(cudaError_t error) {
    if (error != cudaSuccess) abort();
}

static __attribute__((noinline)) void after(cudaStream_t first, cudaStream_t then) {
    cudaEvent_t event;
    check(cudaEventCreate(&event));
    check(cudaEventRecord(event, first));
    check(cudaStreamWaitEvent(then, event, 0));
}
