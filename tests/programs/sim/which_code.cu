// Prints for which architecture the code was compiled that ran.
#include <cstdio>

__global__ void tell(int *out) {
#ifdef __CUDA_ARCH__
    *out = __CUDA_ARCH__;
#endif
}

int main() {
    int *at, arch = 0;
    cudaMalloc(&at, sizeof arch);
    tell<<<1, 1>>>(at);
    cudaMemcpy(&arch, at, sizeof arch, cudaMemcpyDeviceToHost);
    printf("%d %s\n", arch, cudaGetErrorString(cudaGetLastError()));
    cudaFree(at);
    return 0;
}
