// A block reduction by shuffles, called twice in a row; the second call reuses the shared array.
#include "twins.h"
__device__ int block_sum(int v) {
  __shared__ int warp_sums[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int o = 16; o; o /= 2) v += __shfl_down_sync(~0u, v, o);
  MENDED_ONLY(__syncthreads();)
  if (lane == 0) warp_sums[warp] = v;  // race: A
  __syncthreads();
  if (warp == 0) {
    v = lane < blockDim.x / 32 ? warp_sums[lane] : 0;  // race: A
    for (int o = 16; o; o /= 2) v += __shfl_down_sync(~0u, v, o);
  }
  return v;
}
__global__ void stats(const int* x, long long* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? x[i] : 0;
  int s = block_sum(v);
  int q = block_sum(v * v % 1000);
  if (threadIdx.x == 0) { out[2 * blockIdx.x] = s; out[2 * blockIdx.x + 1] = q; }
}
int main() { int* x = numbers(1024); auto out = device<long long>(8); stats<<<4, 256>>>(x, out, 1024); CHECK(cudaDeviceSynchronize()); }
