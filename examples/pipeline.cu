// A pipeline of two stages on two streams. With -DRACY nothing makes the second stage wait for the first.
#include <cuda_runtime.h>

__global__ void smooth(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = (in[i - 1] + in[i] + in[i + 1]) / 3;
}

__global__ void total(const float *values, float *sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, values[i]);
}

extern "C" int run_pipeline() {
    const int n = 4096;
    float *in, *out, *sum;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    cudaMalloc(&sum, sizeof(float));
    cudaMemset(in, 0, n * sizeof(float));
    cudaMemset(out, 0, n * sizeof(float));
    cudaMemset(sum, 0, sizeof(float));
    cudaStream_t filter, reduce;
    cudaEvent_t smoothed;
    cudaStreamCreateWithFlags(&filter, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&reduce, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&smoothed, cudaEventDisableTiming);
    cudaDeviceSynchronize();

    smooth<<<n / 256, 256, 0, filter>>>(in, out, n);
#ifndef RACY
    cudaEventRecord(smoothed, filter);
    cudaStreamWaitEvent(reduce, smoothed, 0);
#endif
    total<<<n / 256, 256, 0, reduce>>>(out, sum, n);
    return cudaDeviceSynchronize() != cudaSuccess;
}

int main() { return run_pipeline(); }
