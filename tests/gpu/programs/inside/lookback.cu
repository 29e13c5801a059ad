// Single-pass scan with look-back: aggregates and prefixes in arrays, a volatile state word says which is ready.
#include "twins.h"
__device__ volatile int state[64];
__device__ int aggregate[64], prefix[64];
__global__ void scan(const int* x, int* out) {
  __shared__ int s[128]; __shared__ int before;
  int t = threadIdx.x, b = blockIdx.x;
  s[t] = x[b * 128 + t]; __syncthreads();
  for (int o = 1; o < 128; o *= 2) {
    int v = t >= o ? s[t - o] : 0; __syncthreads();
    s[t] += v; __syncthreads();
  }
  if (t == 0) {
    int total = s[127];
    if (b == 0) { prefix[0] = total; MENDED_ONLY(__threadfence();) state[0] = 2; before = 0; }  // race: A
    else {
      aggregate[b] = total; MENDED_ONLY(__threadfence();) state[b] = 1;
      int sum = 0, j = b - 1;
      for (;;) {
        int f; do f = state[j]; while (f == 0);
        MENDED_ONLY(__threadfence();)
        if (f == 2) { sum += prefix[j]; break; }  // race: A, B
        sum += aggregate[j]; j--;
      }
      prefix[b] = sum + total; MENDED_ONLY(__threadfence();) state[b] = 2;  // race: B
      before = sum;
    }
  }
  __syncthreads();
  out[b * 128 + t] = s[t] + before;
}
int main() { int* x = numbers(128 * 8); int* out = device<int>(128 * 8); scan<<<8, 128>>>(x, out); CHECK(cudaDeviceSynchronize()); }
