// Each warp counts into a histogram of its own: lanes with one value elect one of them, which adds for all. The
// histograms are added behind a barrier of the block.
#include "twins.h"
__global__ void count(const int* x, int* out, int n) {
  __shared__ int bins[4][32];
  int t = threadIdx.x, w = t / 32, lane = t % 32;
  bins[w][lane] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128) {
    int v = x[i] % 32;
    unsigned same = __match_any_sync(__activemask(), v);
    if (lane == __ffs(same) - 1) bins[w][v] += __popc(same);  // race: A
    __syncwarp(__activemask());
  }
  MENDED_ONLY(__syncthreads();)
  if (t < 32) {
    int all = 0;
    for (int k = 0; k < 4; k++) all += bins[k][t];  // race: A
    atomicAdd(&out[t], all);
  }
}
int main() { int* x = numbers(128 * 8); int* out = device<int>(32); count<<<2, 128>>>(x, out, 128 * 8); CHECK(cudaDeviceSynchronize()); }
