// Bitonic sort in shared memory; the barrier is left out "within a warp", one step too early.
#include "twins.h"
__global__ void sort(int* x) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = x[t]; __syncthreads();
  for (int k = 2; k <= 256; k *= 2)
    for (int j = k / 2; j; j /= 2) {
      int p = t ^ j;
      if (p > t && ((t & k) == 0) == (s[t] > s[p])) { int h = s[t]; s[t] = s[p]; s[p] = h; }  // race: A
      PICK(if (j >= 64) __syncthreads(); else __syncwarp();, __syncthreads();)
    }
  x[t] = s[t];
}
int main() { int* x = numbers(256, 577, 13); sort<<<1, 256>>>(x); CHECK(cudaDeviceSynchronize()); }
