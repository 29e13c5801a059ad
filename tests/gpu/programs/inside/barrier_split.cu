// Specialised warps with two pairs of cuda::barrier, as in the programming guide.
#include "twins.h"
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void special(const int* x, int* out, int rounds) {
  __shared__ int buf[2][32];
  #pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ barrier bar[4];  // ready 0, 1; filled 2, 3
  if (threadIdx.x < 4) init(&bar[threadIdx.x], 64);
  __syncthreads();
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < rounds; i++) {
      bar[i % 2].arrive_and_wait();
      buf[i % 2][lane] = x[i * 32 + lane];  // race: A
      (void)bar[2 + i % 2].arrive();
    }
  } else {
    (void)bar[0].arrive(); (void)bar[1].arrive();
    int acc = 0;
    for (int i = 0; i < rounds; i++) {
      bar[2 + i % 2].arrive_and_wait();
      RACY_ONLY((void)bar[i % 2].arrive();)
      acc += buf[i % 2][31 - lane] * (i + 1);  // race: A
      MENDED_ONLY((void)bar[i % 2].arrive();)
    }
    out[lane] = acc;
  }
}
int main() { int* x = numbers(32 * 10); int* out = device<int>(32); special<<<1, 64>>>(x, out, 10); CHECK(cudaDeviceSynchronize()); }
