// A recursive function that nvcc has inlined into itself a few times: each of its bodies calls it five times.
#include <cstdio>
#include <cuda_runtime.h>

__device__ __noinline__ void add_halves(int *a, int from, int to, int depth) {
    if (depth == 0) {
        for (int i = from; i < to; i++) a[i] += i;
        return;
    }
    int middle = (from + to) / 2;
    add_halves(a, from, middle, depth - 1);
    add_halves(a, middle, to, depth - 1);
}

__global__ void segments(int *a) {
    int first = threadIdx.x * 16;
    add_halves(a, first, first + 16, 2);
}

int main() {
    int *a, last;
    cudaMalloc(&a, 1024 * sizeof *a);
    cudaMemset(a, 0, 1024 * sizeof *a);
    segments<<<1, 64>>>(a);
    cudaMemcpy(&last, a + 1023, sizeof last, cudaMemcpyDeviceToHost);
    printf("%d\n", last);
    return 0;
}
