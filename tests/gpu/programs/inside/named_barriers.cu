// Two warps fill, two warps use, with named barriers: 1 = full, 2 = empty.
#include "twins.h"
__device__ void sync(int id) { asm volatile("bar.sync %0, 128;" ::"r"(id) : "memory"); }
__device__ void arrive(int id) { asm volatile("bar.arrive %0, 128;" ::"r"(id) : "memory"); }
__global__ void named(const int* x, int* out, int rounds) {
  __shared__ int buf[64];
  int t = threadIdx.x % 64;
  if (threadIdx.x < 64) {
    for (int i = 0; i < rounds; i++) {
      if (i) sync(2);
      buf[t] = x[i * 64 + t];  // race: A
      arrive(1);
    }
  } else {
    int acc = 0;
    for (int i = 0; i < rounds; i++) {
      sync(1);
      RACY_ONLY(if (i + 1 < rounds) arrive(2);)
      acc += buf[63 - t] * (i + 1);  // race: A
      MENDED_ONLY(if (i + 1 < rounds) arrive(2);)
    }
    out[t] = acc;
  }
}
int main() { int* x = numbers(64 * 6); int* out = device<int>(64); named<<<1, 128>>>(x, out, 6); CHECK(cudaDeviceSynchronize()); }
