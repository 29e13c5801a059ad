// The last block sums what all blocks have left. Each warp leaves a partial; one thread fences for the block.
#include "twins.h"
__device__ unsigned ticket;
__global__ void sum(const int* x, int* partial, int* out) {
  __shared__ bool last;
  int t = threadIdx.x, v = x[blockIdx.x * blockDim.x + t];
  for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
  if (t % 32 == 0) partial[blockIdx.x * 4 + t / 32] = v;  // race: A
  MENDED_ONLY(__syncthreads();)
  if (t == 0) {
    __threadfence();
    last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last) {
    int a = 0;
    for (int i = t; i < 4 * gridDim.x; i += blockDim.x) a += partial[i];  // race: A
    atomicAdd(out, a);
  }
}
int main() { int* x = numbers(128 * 16); int* p = device<int>(64); int* out = device<int>(1); sum<<<16, 128>>>(x, p, out); CHECK(cudaDeviceSynchronize()); }
