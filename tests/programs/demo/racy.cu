// A pipeline of two stages on two streams: `smooth` fills a buffer, `total` sums it up. Nothing makes the second stream wait.
// Compiled with -DFIXED it does.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(error));                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

__global__ void smooth(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = (in[i - 1] + in[i] + in[i + 1]) / 3;
}

__global__ void total(const float *values, float *sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, values[i]);
}

int main() {
    const int n = 4096;
    float *in, *out, *sum;
    CHECK(cudaMalloc(&in, n * sizeof(float)));
    CHECK(cudaMalloc(&out, n * sizeof(float)));
    CHECK(cudaMalloc(&sum, sizeof(float)));
    CHECK(cudaMemset(in, 0x3f, n * sizeof(float)));  // about 0.75 each
    CHECK(cudaMemset(out, 0, n * sizeof(float)));
    CHECK(cudaMemset(sum, 0, sizeof(float)));
    cudaStream_t filter, reduce;
    cudaEvent_t smoothed;
    CHECK(cudaStreamCreateWithFlags(&filter, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&reduce, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&smoothed, cudaEventDisableTiming));
    CHECK(cudaDeviceSynchronize());

    smooth<<<n / 256, 256, 0, filter>>>(in, out, n);
    CHECK(cudaGetLastError());
#ifdef FIXED
    CHECK(cudaEventRecord(smoothed, filter));
    CHECK(cudaStreamWaitEvent(reduce, smoothed, 0));
#endif
    total<<<n / 256, 256, 0, reduce>>>(out, sum, n);
    CHECK(cudaGetLastError());

    CHECK(cudaDeviceSynchronize());
    float result;
    CHECK(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost));
    printf("total %g\n", result);
    return 0;
}
