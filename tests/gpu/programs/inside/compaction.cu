// A block keeps the odd numbers in their order: each warp counts its own, and every warp adds up those before it.
#include "twins.h"
__global__ void keep(const int* x, int* out, int* count) {
  __shared__ int of_warp[4];
  int t = threadIdx.x, warp = t / 32, v = x[blockIdx.x * 128 + t];
  unsigned kept = __ballot_sync(~0u, v & 1);
  if (t % 32 == 0) of_warp[warp] = __popc(kept);  // race: A
  MENDED_ONLY(__syncthreads();)
  int before = __popc(kept & ((1u << t % 32) - 1));
  for (int i = 0; i < warp; i++) before += of_warp[i];  // race: A
  if (v & 1) out[blockIdx.x * 128 + before] = v;
  if (t == 127) count[blockIdx.x] = before + (v & 1);
}
int main() { int* x = numbers(128 * 8); int* out = device<int>(128 * 8); int* count = device<int>(8); keep<<<8, 128>>>(x, out, count); CHECK(cudaDeviceSynchronize()); }
