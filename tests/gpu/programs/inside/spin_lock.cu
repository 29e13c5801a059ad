// A ticket lock of a list: all is fenced but the way out of the critical section.
#include "twins.h"
__device__ unsigned next_ticket, serving;
__device__ int list[256]; __device__ int length;
__global__ void append(const int* x) {
  if (threadIdx.x == 0) {
    unsigned mine = atomicAdd(&next_ticket, 1);
    while (atomicAdd(&serving, 0) != mine) __nanosleep(20);
    __threadfence();
    int l = length;  // race: A
    list[l] = x[blockIdx.x]; length = l + 1;  // race: A, B
    MENDED_ONLY(__threadfence();)
    atomicAdd(&serving, 1);
  }
}
int main() { int* x = numbers(32); append<<<32, 64>>>(x); CHECK(cudaDeviceSynchronize()); }
