// Atomic additions to fields of one and two bytes, whose neighbours other threads write: below 9.0 those are loops
// of swaps of the word, which ptxas or libcu++ makes. Two threads must not write one neighbour.
#include "twins.h"
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
struct Halves { __nv_bfloat16 sum, mine; };
struct Shorts { unsigned short count, mine; };
struct Bytes { unsigned char count, mine, other; signed char low; };
__global__ void halves(Halves* cells, const int* x) {
  int t = threadIdx.x;
  atomicAdd(&cells[x[t] % 32].sum, __float2bfloat16(float(x[t] % 3 + 1)));
  if (t % 4 == 1) cells[t / 4].mine = __float2bfloat16(float(x[t]));  // race: C
  RACY_ONLY(if (t / 32 == 3) cells[t % 32].mine = __float2bfloat16(float(x[t] + 1));)  // race: C
}
__global__ void shorts(Shorts* cells, const int* x) {
  int t = threadIdx.x;
  unsigned short old = 0, now;
  unsigned short* count = &cells[x[t] % 32].count;
  while ((now = atomicCAS(count, old, (unsigned short)(old + x[t]))) != old) old = now;
  if (t % 4 == 1) cells[t / 4].mine = x[t];  // race: A
  RACY_ONLY(if (t / 32 == 3) cells[t % 32].mine = x[t] + 1;)  // race: A
}
__global__ void bytes(Bytes* cells, const int* x) {
  int t = threadIdx.x;
  cuda::atomic_ref<unsigned char, cuda::thread_scope_device>(cells[x[t] % 32].count).fetch_add(1, cuda::memory_order_relaxed);
  cuda::atomic_ref<signed char, cuda::thread_scope_device>(cells[x[t] % 32].low).fetch_min((signed char)-(x[t] % 100), cuda::memory_order_relaxed);
  if (t % 4 == 1) cells[t / 4].mine = x[t];  // race: B
  if (t % 4 == 3) cells[t / 4].other = x[t];
  RACY_ONLY(if (t / 32 == 3) cells[t % 32].mine = x[t] + 1;)  // race: B
}
int main() {
  int* x = numbers(128);
  halves<<<1, 128>>>(device<Halves>(32), x);
  shorts<<<1, 128>>>(device<Shorts>(32), x);
  bytes<<<1, 128>>>(device<Bytes>(32), x);
  CHECK(cudaDeviceSynchronize());
}
