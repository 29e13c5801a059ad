// Three stages by __pipeline_memcpy_async. With two batches under way behind the current one, __pipeline_wait_prior(2)
// waits for it; (3) does not.
#include "twins.h"
#include <cuda_pipeline.h>
__global__ void stages(const int* x, int* out, int batches) {
  __shared__ int buf[4][64];
  int t = threadIdx.x, acc = 0;
  auto fetch = [&](int i) {
    if (i < batches) __pipeline_memcpy_async(&buf[i % 4][t], &x[i * 64 + t], sizeof(int));  // race: A
    __pipeline_commit();
  };
  fetch(0); fetch(1);
  for (int i = 0; i < batches; i++) {
    fetch(i + 2);
    __pipeline_wait_prior(PICK(3, 2));
    __syncthreads();
    acc += buf[i % 4][63 - t] * (i + 1);  // race: A
  }
  out[t] = acc;
}
int main() { int* x = numbers(64 * 9); int* out = device<int>(64); stages<<<1, 64>>>(x, out, 9); CHECK(cudaDeviceSynchronize()); }
