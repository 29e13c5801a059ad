// A race that shows only where a block meets an earlier release: each block adds up what the block
// before it has, and does not wait until that is whole.
//
//   inside_turns racy|mended

#include <cstdio>
#include <cstring>

#define T (int)threadIdx.x
#define B (int)blockIdx.x

const int BLOCKS = 8;

__device__ int seen(int* at) {
    int value = atomicAdd(at, 0);
    __threadfence();
    return value;
}

// A flag says 1 of a block that has begun, and 2 behind its sum.
template <bool M> __global__ void prefix(int* sums, int* flags) {
    if (T != 0) return;
    int sum = B;
    if (B > 0) {
        atomicExch(&flags[B], 1);
        while (seen(&flags[B - 1]) < (M ? 2 : 1)) {}
        sum += sums[B - 1]; // other
    }
    sums[B] = sum; // one
    __threadfence();
    atomicExch(&flags[B], 2);
}

int main(int count, char** words) {
    int *sums, *flags, last = 0;
    cudaMalloc(&sums, BLOCKS * sizeof(int));
    cudaMalloc(&flags, BLOCKS * sizeof(int));
    cudaMemset(sums, 0x7f, BLOCKS * sizeof(int));
    cudaMemset(flags, 0, BLOCKS * sizeof(int));
    if (count > 1 && !strcmp(words[1], "mended")) prefix<true><<<BLOCKS, 32>>>(sums, flags);
    else prefix<false><<<BLOCKS, 32>>>(sums, flags);
    cudaMemcpy(&last, sums + BLOCKS - 1, sizeof(int), cudaMemcpyDeviceToHost);
    printf("%d\n", last);
    return cudaGetLastError() != cudaSuccess;
}
