// Warps take turns through rows with a barrier in the loop; with a number of rows that the warps do not divide, some
// warps meet one barrier more, and from there on each barrier joins different places.
#include "twins.h"
__global__ void rows(const int* x, int* out, int n) {
  __shared__ int acc[4][32]; __shared__ int total[32];
  int lane = threadIdx.x % 32, w = threadIdx.x / 32;
  acc[w][lane] = 0;
  __syncthreads();
#ifdef MENDED
  for (int r0 = 0; r0 < n; r0 += 4) {
    int r = r0 + w;
    if (r < n) acc[(w + 1) % 4][lane] += x[r * 32 + lane];
    __syncthreads();
  }
#else
  for (int r = w; r < n; r += 4) {
    acc[(w + 1) % 4][lane] += x[r * 32 + lane];  // race: A
    __syncthreads();
  }
#endif
  if (w == 3) total[lane] = acc[0][lane] + acc[1][lane] + acc[2][lane] + acc[3][lane];  // race: A
  __syncthreads();
  out[threadIdx.x] = total[31 - lane] + w;
}
int main() { int* x = numbers(320); int* out = device<int>(128); rows<<<1, 128>>>(x, out, 10); CHECK(cudaDeviceSynchronize()); }
