// Lanes trade rows through global scratch memory; a shuffle is taken for the warp's barrier.
// Of lanes of one warp machine code does not say enough.
#include "twins.h"
__global__ void trade(const int* x, int* scratch, int* out) {
  int lane = threadIdx.x % 32, w = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int v = x[w * 32 + lane], first = __shfl_sync(~0u, v, 0);
  if (lane < 16) scratch[w * 16 + lane] = v * 2 + first;  // race: A in PTX
  int any = __shfl_sync(~0u, v, 31);
  MENDED_ONLY(__syncwarp();)
  if (lane >= 16) v = scratch[w * 16 + 31 - lane] + any;  // race: A in PTX
  out[w * 32 + lane] = v;
}
int main() { int* x = numbers(256); int* s = device<int>(128); int* out = device<int>(256); trade<<<2, 128>>>(x, s, out); CHECK(cudaDeviceSynchronize()); }
