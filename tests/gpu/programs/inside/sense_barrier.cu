// A barrier of all blocks that changes its sense, from atomics. Who comes last must acquire what the others have released,
// and who waits must acquire what the last one releases.
#include "twins.h"
__device__ unsigned arrived;
__device__ volatile unsigned sense;
__device__ void meet(unsigned turn) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicAdd(&arrived, 1) == gridDim.x - 1) {
      arrived = 0;
      __threadfence();
      sense = turn;
    } else {
      while (sense != turn) {}
    }
    MENDED_ONLY(__threadfence();)
  }
  __syncthreads();
}
__global__ void rounds(int* a, const int* x) {
  int n = gridDim.x * blockDim.x, at = blockIdx.x * blockDim.x + threadIdx.x;
  a[at] = x[at];  // race: A
  for (unsigned i = 1; i <= 4; i++) {
    meet(2 * i - 1);
    int v = a[(at + 33) % n] + i;  // race: A, B
    meet(2 * i);
    a[at] = v;  // race: B
  }
}
int main() { int* x = numbers(128); int* a = device<int>(128); rounds<<<4, 32>>>(a, x); CHECK(cudaDeviceSynchronize()); }
