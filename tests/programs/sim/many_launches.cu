// Kernels of several sizes, each launched with many numbers and pointers, on two streams. With the
// word "racy" the last step of one stream does not wait for the other's.
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

template <int STEP> __global__ void copy(float *to, const float *from, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 4 * STEP; k++) {
        int at = i * STEP + k * 7;
        if (at < n) to[at] = from[at] * k;
    }
}

template <int STEP> __global__ void rows(float *to, const float *from, int pitch, int n) {
    for (int row = blockIdx.x; row < n; row += gridDim.x)
        for (int at = threadIdx.x; at < pitch; at += blockDim.x * STEP) to[row * pitch + at] = from[row * pitch + at] + STEP;
}

static const int SIZE = 1 << 14;

template <int STEP> static void step(cudaStream_t stream, float *to, float *from) {
    for (int n = 1; n < 40; n++) {
        copy<STEP><<<1 + n % 5, 64, 0, stream>>>(to, from, n * 37 % SIZE);
        copy<STEP><<<4, 64, 0, stream>>>(to + 64 * n, from, 100);
        rows<STEP><<<1 + n % 3, 32, 0, stream>>>(to, from, 16 + n % 4, n);
    }
}

int main(int argc, char **argv) {
    bool racy = argc > 1 && !strcmp(argv[1], "racy");
    float *a, *b, *c;
    cudaMalloc(&a, SIZE * sizeof(float));
    cudaMalloc(&b, SIZE * sizeof(float));
    cudaMalloc(&c, SIZE * sizeof(float));
    cudaMemset(a, 0, SIZE * sizeof(float));
    cudaStream_t one, other;
    cudaEvent_t done;
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    cudaDeviceSynchronize();
    step<1>(one, b, a), step<2>(one, b, a), step<3>(one, b, a), step<4>(one, b, a);
    cudaEventRecord(done, one);
    if (!racy) cudaStreamWaitEvent(other, done, 0);
    step<5>(other, c, b);
    cudaDeviceSynchronize();
    puts("done");
}
