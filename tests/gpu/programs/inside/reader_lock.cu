// A lock for many readers or one writer. A reader that leaves must release: the next writer overwrites what it has read.
#include "twins.h"
__global__ void locked(int* lock, int* table, int* reads, const int* x, int* out) {
  if (threadIdx.x) return;
  int b = blockIdx.x;
  for (int i = 0; i < 6; i++) {
    if (b == 0) {
      while (atomicCAS(lock, 0, -1) != 0) {}
      __threadfence();
      for (int k = 0; k < 4; k++) table[k] = x[i * 4 + k];  // race: A
      __threadfence();
      atomicExch(lock, 0);
      // Somebody reads each round. That orders nothing: it is relaxed.
      while (i && atomicAdd(reads, 0) <= i) {}
    } else {
      int readers = 0, seen;
      while (readers < 0 || (seen = atomicCAS(lock, readers, readers + 1)) != readers) readers = readers < 0 ? 0 : max(seen, 0);
      __threadfence();
      int sum = 0;
      for (int k = 0; k < 4; k++) sum += table[k] * (k + 1);  // race: A
      MENDED_ONLY(__threadfence();)
      atomicSub(lock, 1);
      atomicAdd(reads, 1);
      out[b * 6 + i] = sum;
    }
  }
}
int main() { int* x = numbers(24); int* lock = device<int>(1); int* table = device<int>(4); int* reads = device<int>(1); int* out = device<int>(24); locked<<<4, 32>>>(lock, table, reads, x, out); CHECK(cudaDeviceSynchronize()); }
