// expect: clean
// pair: kernel say / kernel say
// needs: none
// why: One stream. What kernels print, in order of the launches, and an assertion that fails and what follows from it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

#include <cassert>

__global__ void say(int launch) {
    printf("launch %d: %5d|%-5d|%05d|%x|%o|%u\n", launch, -42, 42, 42, 255, 8, 3000000000u);
    printf("%lld %llx %c%c %s 100%%\n", -1234567890123ll, 0xfedcba9876543210ull, 'o', 'k', "text");
    printf("%.3f %10.2f %e %g\n", 3.14159, -2.5, 12345.678, 0.0001);
}

__global__ void counted(int *lines) {
    if (threadIdx.x % 8 == 3) atomicAdd(lines, printf("\n") == 0);
}

__global__ void doubtful(const int *x) { assert(x[threadIdx.x] < 5); }

int main() {
    int *lines, got, values[8] = {0, 1, 2, 3, 4, 5, 6, 7}, *x;
    CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 20));
    for (int i = 0; i < 2; i++) say<<<1, 1>>>(i);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMalloc(&lines, 4));
    CHECK(cudaMemset(lines, 0, 4));
    counted<<<1, 32>>>(lines);
    CHECK(cudaMemcpy(&got, lines, 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMalloc(&x, 32));
    CHECK(cudaMemcpy(x, values, 32, cudaMemcpyHostToDevice));
    doubtful<<<1, 5>>>(x);
    CHECK(cudaDeviceSynchronize());
    doubtful<<<1, 8>>>(x);
    cudaError_t first = cudaDeviceSynchronize(), then = cudaMalloc(&x, 4);
    fflush(stdout);
    printf("%d lines; %s, then %s\n", got, cudaGetErrorName(first), cudaGetErrorName(then));
    return 0;
}
