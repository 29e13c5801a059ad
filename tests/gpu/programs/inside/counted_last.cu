// The last block adds the partial sums of all. One thread counts its block by cuda::atomic for all of its block, and
// tells them whether they are the last ones: the count must acquire and release.
#include "twins.h"
#include <cuda/atomic>
__global__ void reduce(const int* x, int* partial, int* counter, int* out, int n) {
  __shared__ int part[64];
  __shared__ bool last;
  int t = threadIdx.x;
  int v = 0;
  for (int i = blockIdx.x * 64 + t; i < n; i += gridDim.x * 64) v += x[i] * (i % 5 + 1);
  part[t] = v;
  __syncthreads();
  if (t < 4) { int s = 0; for (int k = 0; k < 16; k++) s += part[t * 16 + k]; partial[blockIdx.x * 4 + t] = s; }  // race: A
  __syncthreads();
  if (t == 0) {
    cuda::atomic_ref<int, cuda::thread_scope_device> count(*counter);
    last = count.fetch_add(1, PICK(cuda::memory_order_acquire, cuda::memory_order_acq_rel)) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t < 4 * gridDim.x) atomicAdd(out, partial[t]);  // race: A
}
int main() { int* x = numbers(2000); int* p = device<int>(64); int* c = device<int>(1); int* out = device<int>(1); reduce<<<8, 64>>>(x, p, c, out, 2000); CHECK(cudaDeviceSynchronize()); }
