// A sequence lock around 16 bytes that are read and written by one instruction. Readers throw away what they met in the
// middle of a write, but a plain access may still be torn or repeated: it must be relaxed.
#include "twins.h"
#include <cuda/atomic>
using Word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
__device__ longlong2 load(const longlong2* from) {
  longlong2 v;
#ifdef MENDED
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(from) : "memory");
#else
  v = *from;  // race: A
#endif
  return v;
}
__device__ void store(longlong2* to, longlong2 v) {
#ifdef MENDED
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" :: "l"(to), "l"(v.x), "l"(v.y) : "memory");
#else
  *to = v;  // race: A
#endif
}
__global__ void ticker(unsigned* sequence, longlong2* price, unsigned* readers, const int* x, long long* out, int rounds) {
  if (threadIdx.x) return;
  Word turn(*sequence), come(*readers);
  if (blockIdx.x == 0) {
    while (come.load(cuda::memory_order_relaxed) < gridDim.x - 1) {}
    for (int i = 0; i < rounds; i++) {
      turn.store(2 * i + 1, cuda::memory_order_relaxed);
      cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
      store(price, longlong2{x[i], -x[i]});
      turn.store(2 * i + 2, cuda::memory_order_release);
    }
    return;
  }
  long long sum = 0;
  unsigned after;
  bool first = true;
  do {
    unsigned before = turn.load(cuda::memory_order_acquire);
    longlong2 v = load(price);
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
    after = turn.load(cuda::memory_order_relaxed);
    if (before == after && before % 2 == 0) sum += v.x + v.y;
    if (first) come.fetch_add(1, cuda::memory_order_relaxed);
    first = false;
  } while (after < 2 * rounds);
  out[blockIdx.x] = sum;
}
int main() { int* x = numbers(16); auto* s = device<unsigned>(1); auto* p = device<longlong2>(1); auto* r = device<unsigned>(1); auto* out = device<long long>(4); ticker<<<4, 32>>>(s, p, r, x, out, 16); CHECK(cudaDeviceSynchronize()); }
