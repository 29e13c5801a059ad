// An MCS lock between blocks: each waits at a word of its own, which the one before it sets. That must release.
#include "twins.h"
#include <cuda/atomic>
using Word = cuda::atomic_ref<int, cuda::thread_scope_device>;
struct Place { int waits, next; };
__global__ void critical(int* tail, Place* places, int* queued, int* sum, const int* x, int rounds) {
  if (threadIdx.x) return;
  int me = blockIdx.x + 1;
  Place& mine = places[blockIdx.x];
  for (int i = 0; i < rounds; i++) {
    Word(mine.next).store(0, cuda::memory_order_relaxed);
    Word(mine.waits).store(1, cuda::memory_order_relaxed);
    int before = Word(*tail).exchange(me, cuda::memory_order_acq_rel);
    if (i == 0) Word(*queued).fetch_add(1, cuda::memory_order_relaxed);
    // The first one goes on when all others queue. That orders nothing: it is relaxed.
    if (i == 0 && !before) while (Word(*queued).load(cuda::memory_order_relaxed) < gridDim.x) {}
    if (before) {
      Word(places[before - 1].next).store(me, cuda::memory_order_release);
      while (Word(mine.waits).load(cuda::memory_order_acquire)) {}
    }
    sum[i % 2] = sum[i % 2] * 3 + x[blockIdx.x * rounds + i];  // race: A
    int expected = me;
    if (!Word(mine.next).load(cuda::memory_order_acquire)) {
      if (Word(*tail).compare_exchange_strong(expected, 0, cuda::memory_order_acq_rel)) continue;
      while (!Word(mine.next).load(cuda::memory_order_acquire)) {}
    }
    int next = Word(mine.next).load(cuda::memory_order_acquire);
    Word(places[next - 1].waits).store(0, PICK(cuda::memory_order_relaxed, cuda::memory_order_release));
  }
}
int main() { int* x = numbers(5 * 6); int* tail = device<int>(1); Place* places = device<Place>(5); int* queued = device<int>(1); int* sum = device<int>(2); critical<<<5, 32>>>(tail, places, queued, sum, x, 6); CHECK(cudaDeviceSynchronize()); }
