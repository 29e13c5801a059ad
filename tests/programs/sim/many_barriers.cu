// 70,000 rounds of a block with two barriers each, more than counters of 16 bits have numbers for. With -DRACY one of the
// last barriers is left out.
#include <cstdio>
#include <cuda_runtime.h>

constexpr int ROUNDS = 70000;
#ifdef RACY
constexpr int WITHOUT = ROUNDS - 2;
#else
constexpr int WITHOUT = -1;
#endif

__global__ void turn(int *out) {
    __shared__ int row[64];
    int t = threadIdx.x, sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        row[t] = i + t; // writes
        __syncthreads();
        sum += row[63 - t]; // reads
        if (i != WITHOUT) __syncthreads();
    }
    out[t] = sum;
}

int main() {
    int *out;
    if (cudaMalloc(&out, 64 * sizeof *out)) return 1;
    turn<<<1, 64>>>(out);
    if (cudaDeviceSynchronize()) return 1;
    puts("done");
    return 0;
}
