// Accesses shared memory behind what it asked for: 28 bytes further there is some, because devices hand it out in steps of 128
// bytes; behind those there is none.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void overrun(int at, int *out) {
    extern __shared__ int words[];
    words[at] = 7;
    __syncthreads();
    *out = words[at];
}

__global__ void fixed_size(int at, int *out) {
    __shared__ int words[25];
    volatile int *word = words;
    word[at] = 8;
    *out = word[at];
}

int main() {
    int *out, got[3] = {};
    cudaMalloc(&out, 16);
    for (int i = 0; i < 3; i++) overrun<<<1, 1, 100>>>(24 + i, out);
    cudaMemcpy(&got[0], out, 4, cudaMemcpyDeviceToHost);
    fixed_size<<<1, 1>>>(31, out);
    cudaMemcpy(&got[1], out, 4, cudaMemcpyDeviceToHost);
    overrun<<<1, 1, 132>>>(63, out);
    cudaMemcpy(&got[2], out, 4, cudaMemcpyDeviceToHost);
    printf("%d %d %d, ", got[0], got[1], got[2]);
    overrun<<<1, 1, 100>>>(32, out);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
