// Ignores every error of CUDA, and ends with 0 or with the number that is its argument.
#include <cstdlib>
#include <cuda_runtime.h>

__global__ void store(int *p) { *p = 1; }

int main(int argc, char **argv) {
    int *p = nullptr;
    (void)cudaMalloc(&p, sizeof *p);
    store<<<1, 1>>>(p);
    (void)cudaDeviceSynchronize();
    (void)cudaGetLastError();
    return argc > 1 ? atoi(argv[1]) : 0;
}
