// How much shared memory a kernel may have: without any, with 256 bytes, and with dynamic memory alone.
#include <cstdio>

__global__ void none(int *p) { *p = 1; }
__global__ void some(int *p) {
    __shared__ int s[64];
    s[threadIdx.x] = *p;
    __syncthreads();
    *p = s[5];
}
extern __shared__ int dynamic[];
__global__ void alone(int *p) {
    dynamic[threadIdx.x] = *p;
    __syncthreads();
    *p = dynamic[5];
}

static void tell(const char *name, void (*kernel)(int *)) {
    int *p, most;
    cudaFuncAttributes facts;
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    cudaFuncGetAttributes(&facts, kernel);
    printf("%s: %zu, dynamic %d:", name, facts.sharedSizeBytes, facts.maxDynamicSharedSizeBytes);
    cudaMalloc(&p, 4);
    for (int bytes : {most - 1024, most - 256, most - 255, most, most + 1}) {
        cudaError_t set = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        kernel<<<1, 64, bytes>>>(p);
        cudaError_t launched = cudaGetLastError(), ended = cudaDeviceSynchronize();
        printf(" %d", set || launched || ended ? -1 : bytes);
        cudaGetLastError();
    }
    puts("");
    cudaFree(p);
}

int main() { tell("none", none), tell("some", some), tell("alone", alone); }
