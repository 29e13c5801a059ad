// A sequence lock: readers repeat until they have met no writer. What it guards is read while it is written, so that it
// must be atomic, too.
#include "twins.h"
#include <cuda/atomic>
using Word = cuda::atomic_ref<int, cuda::thread_scope_device>;
__device__ int load(int& of) { return PICK(of, Word(of).load(cuda::memory_order_relaxed)); }  // race: A
__device__ void store(int& to, int value) { PICK(to = value, Word(to).store(value, cuda::memory_order_relaxed)); }  // race: A
__global__ void guarded(int* sequence, int* pair, int* readers, const int* x, int* out, int rounds) {
  if (threadIdx.x) return;
  Word turn(*sequence), come(*readers);
  if (blockIdx.x == 0) {
    for (int i = 0; i < rounds; i++) {
      turn.store(2 * i + 1, cuda::memory_order_relaxed);
      cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
      store(pair[0], x[i]);
      store(pair[1], -x[i]);
      turn.store(2 * i + 2, cuda::memory_order_release);
      // Half of the rounds come behind the first reads. That orders nothing: it is relaxed.
      while (i == rounds / 2 && come.load(cuda::memory_order_relaxed) < gridDim.x - 1) {}
    }
    return;
  }
  int a, b, before, after, met = 0, reads = 0;
  do {
    before = turn.load(cuda::memory_order_acquire);
    a = load(pair[0]);
    b = load(pair[1]);
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
    after = turn.load(cuda::memory_order_relaxed);
    if (before == after && before % 2 == 0) met += a + b;
    if (++reads == 1) come.fetch_add(1, cuda::memory_order_relaxed);
  } while (after < 2 * rounds);
  out[blockIdx.x] = met;
}
int main() { int* x = numbers(32); int* sequence = device<int>(1); int* pair = device<int>(2); int* readers = device<int>(1); int* out = device<int>(4); guarded<<<4, 32>>>(sequence, pair, readers, x, out, 32); CHECK(cudaDeviceSynchronize()); }
