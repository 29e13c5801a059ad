// One thread writes far behind its buffer.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void scatter(int *v, int far) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    // Thread 3 of block 1: far behind the end.
    int at = i == 131 ? 1024 + far : i;
    v[at] = i;
}

int main() {
    int *v;
    if (cudaMalloc(&v, 1024 * sizeof(int)) != cudaSuccess) return 1;
    scatter<<<8, 128>>>(v, 1 << 24);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}
