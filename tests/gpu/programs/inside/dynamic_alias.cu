// Two arrays carved out of dynamic shared memory; the second begins in the first, as its offset is in the wrong unit.
#include "twins.h"
extern __shared__ char pool[];
__global__ void carve(const int* x, int* out, int n) {
  short* a = (short*)pool;
  int* b = (int*)(pool + PICK(n, n * sizeof(short)));
  int t = threadIdx.x;
  a[t] = (short)(x[t] + 1); b[t] = x[t] * 3;  // race: A
  __syncthreads();
  out[t] = a[n - 1 - t] + b[n - 1 - t];
}
int main() { int* x = numbers(128); int* out = device<int>(128); carve<<<1, 128, 128 * 6>>>(x, out, 128); CHECK(cudaDeviceSynchronize()); }
