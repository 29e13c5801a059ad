// Forms between blocks that wait for each other: a fix-up by flags, a look-back, queues, a hash table, a deque of work,
// semaphores and latches of libcu++.
#include "twins.h"
#include <cuda/atomic>
#include <cuda/semaphore>
#include <cuda/latch>

// Stream-K: a tile is summed by several blocks, all but the first leave partial sums in a workspace and raise a flag.
// All threads of the block have written: they must meet before one of them raises it.
namespace streamk_fixup {
__global__ void tile(int* c, int* partial, int* flag, const int* x) {
  int b = blockIdx.x, t = threadIdx.x, sum = 0;
  for (int k = 0; k < 8; k++) sum += x[(b * 8 + k) * 64 + t];
  if (b != 0) {
    partial[b * 64 + t] = sum;  // race: streamk_fixup
    __threadfence();
    MENDED_ONLY(__syncthreads();)
    if (t == 0) atomicExch(&flag[b], 1);
    return;
  }
  for (unsigned other = 1; other < gridDim.x; other++) {
    if (t == 0) { while (atomicAdd(&flag[other], 0) == 0) {} __threadfence(); }
    __syncthreads();
    sum += partial[other * 64 + t];  // race: streamk_fixup
  }
  c[t] = sum;
}
void run() {
  int *x = numbers(4 * 8 * 64), *partial = device<int>(4 * 64), *flag = device<int>(4), *c = device<int>(64);
  tile<<<4, 64>>>(c, partial, flag, x);
}
}  // namespace streamk_fixup

// A scan by decoupled look-back whose status and value are one word of 64 bits: relaxed is enough for it, not for the
// block's maximum, which lies beside it.
namespace lookback_aux {
using Word = cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>;
__global__ void scan(unsigned long long* state, int* largest, int* out, int* peak, const int* x) {
  int b = blockIdx.x;
  if (threadIdx.x) return;
  int sum = 0, top = 0;
  for (int i = 0; i < 16; i++) { sum += x[b * 16 + i]; top = max(top, x[b * 16 + i]); }
  largest[b] = top;  // race: lookback_aux
  Word(state[b]).store(1ull << 32 | sum, PICK(cuda::memory_order_relaxed, cuda::memory_order_release));
  int before = 0;
  for (int p = b - 1; p >= 0; p--) {
    unsigned long long seen;
    while (!((seen = Word(state[p]).load(cuda::memory_order_acquire)) >> 32)) {}
    before += (int)seen;
    top = max(top, largest[p]);  // race: lookback_aux
  }
  out[b] = before + sum;
  peak[b] = top;
}
void run() {
  int *x = numbers(6 * 16), *largest = device<int>(6), *out = device<int>(6), *peak = device<int>(6);
  scan<<<6, 32>>>(device<unsigned long long>(6), largest, out, peak, x);
}
}  // namespace lookback_aux

// A bounded queue of many producers and consumers: each cell has a number that says whose turn it is.
namespace mpmc_queue {
using Word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
struct Cell { unsigned turn; int value; };
__global__ void work(Cell* cells, unsigned* ends, int* out, const int* x, int each) {
  if (threadIdx.x) return;
  if (blockIdx.x < 2) {
    for (int i = 0; i < each; i++) {
      unsigned at = Word(ends[0]).fetch_add(1, cuda::memory_order_relaxed);
      Cell& cell = cells[at % 4];
      while (Word(cell.turn).load(cuda::memory_order_acquire) != at) {}
      cell.value = x[blockIdx.x * each + i];  // race: mpmc_queue, mpmc_queue B
      Word(cell.turn).store(at + 1, PICK(cuda::memory_order_relaxed, cuda::memory_order_release));
    }
  } else {
    int sum = 0;
    for (int i = 0; i < each; i++) {
      unsigned at = Word(ends[1]).fetch_add(1, cuda::memory_order_relaxed);
      Cell& cell = cells[at % 4];
      while (Word(cell.turn).load(cuda::memory_order_acquire) != at + 1) {}
      sum += cell.value;  // race: mpmc_queue
      Word(cell.turn).store(at + 4, cuda::memory_order_release);
    }
    out[blockIdx.x] = sum;
  }
}
__global__ void begin(Cell* cells) { cells[threadIdx.x].turn = threadIdx.x; }
void run() {
  int *x = numbers(16), *out = device<int>(4);
  Cell* cells = device<Cell>(4);
  begin<<<1, 4>>>(cells);
  work<<<4, 32>>>(cells, device<unsigned>(2), out, x, 8);
}
}  // namespace mpmc_queue

// An open hash table: who wins the key's place by a swap writes the value behind it. Who finds the key must not read
// the value before that has been told.
namespace map_publish {
using Word = cuda::atomic_ref<int, cuda::thread_scope_device>;
struct Place { int key, ready, value; };
__global__ void fill(Place* places, int* out, const int* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, key = x[i % 48];
  for (int at = key % 128;; at = (at + 1) % 128) {
    int found = 0;
    if (Word(places[at].key).compare_exchange_strong(found, key, cuda::memory_order_relaxed)) {
      places[at].value = key * 7;  // race: map_publish
      Word(places[at].ready).store(1, cuda::memory_order_release);
      out[i] = key * 7;
      return;
    }
    if (found == key) {
      MENDED_ONLY(while (!Word(places[at].ready).load(cuda::memory_order_acquire)) {})
      out[i] = places[at].value;  // race: map_publish
      return;
    }
  }
}
void run() {
  int *x = numbers(48), *out = device<int>(128);
  fill<<<4, 32>>>(device<Place>(128), out, x);
}
}  // namespace map_publish

// A deque of work: its owner pushes at the bottom, others steal at the top by a swap. An item must be there before
// the bottom says so.
namespace deque {
using Word = cuda::atomic_ref<int, cuda::thread_scope_device>;
struct Deque { int top, bottom, done; };
__global__ void share(Deque* deque, int* items, int* out, const int* x, int count) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    for (int i = 0; i < count; i++) {
      items[i] = x[i];  // race: deque
      Word(deque->bottom).store(i + 1, PICK(cuda::memory_order_relaxed, cuda::memory_order_release));
    }
    Word(deque->done).store(1, cuda::memory_order_release);
  } else {
    int sum = 0;
    for (;;) {
      int top = Word(deque->top).load(cuda::memory_order_relaxed);
      int bottom = Word(deque->bottom).load(cuda::memory_order_acquire);
      if (top >= count) break;
      if (top >= bottom) continue;
      int item = items[top];  // race: deque
      if (Word(deque->top).compare_exchange_strong(top, top + 1, cuda::memory_order_acq_rel)) sum += item;
    }
    out[blockIdx.x] = sum;
  }
}
void run() {
  int *x = numbers(12), *out = device<int>(3);
  share<<<3, 32>>>(device<Deque>(1), device<int>(12), out, x, 12);
}
}  // namespace deque

// Blocks pass a buffer by two counting semaphores of libcu++: one counts what is filled, one what is free.
namespace semaphores {
using Word = cuda::atomic_ref<int, cuda::thread_scope_device>;
using Semaphore = cuda::counting_semaphore<cuda::thread_scope_device, 8>;
__device__ Semaphore filled{0}, space{2};
__global__ void pass(int* ring, int* out, int* taken, const int* x, int count) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    for (int i = 0; i < count; i++) {
      // What is free by the other block's relaxed count is not known to have been read.
      MENDED_ONLY(space.acquire();) RACY_ONLY(while (Word(*taken).load(cuda::memory_order_relaxed) + 2 <= i) {})
      ring[i % 2] = x[i];  // race: semaphores
      filled.release();
    }
  } else {
    int sum = 0;
    for (int i = 0; i < count; i++) {
      filled.acquire();
      sum = sum * 3 + ring[i % 2];  // race: semaphores
      Word(*taken).fetch_add(1, cuda::memory_order_relaxed);
      MENDED_ONLY(space.release();)
    }
    out[0] = sum;
  }
}
void run() {
  int *x = numbers(6), *ring = device<int>(2), *out = device<int>(1);
  pass<<<2, 32>>>(ring, out, device<int>(1), x, 6);
}
}  // namespace semaphores

// A latch of libcu++ in global memory: blocks fill a table and count it down, the last block waits for zero, and
// cuda::atomic's wait and notify tell the others of the sum. The racy form counts down before it fills.
namespace latch_wait {
struct State { cuda::latch<cuda::thread_scope_device> left{4}; cuda::atomic<int, cuda::thread_scope_device> told{0}; };
__device__ State state;
__global__ void gather(int* table, int* sum, int* out, const int* x) {
  int b = blockIdx.x;
  if (threadIdx.x) return;
  if (b < 4) {
    RACY_ONLY(state.left.count_down();)
    table[b] = x[b] * 5;  // race: latch_wait
    MENDED_ONLY(state.left.count_down();)
    state.told.wait(0, cuda::memory_order_acquire);
    out[b] = *sum;
  } else {
    state.left.wait();
    int all = 0;
    for (int i = 0; i < 4; i++) all += table[i];  // race: latch_wait
    *sum = all;
    state.told.store(1, cuda::memory_order_release);
    state.told.notify_all();
  }
}
void run() {
  int *x = numbers(4), *table = device<int>(4), *sum = device<int>(1), *out = device<int>(4);
  gather<<<5, 32>>>(table, sum, out, x);
}
}  // namespace latch_wait

int main() {
  streamk_fixup::run();
  lookback_aux::run();
  mpmc_queue::run();
  map_publish::run();
  deque::run();
  semaphores::run();
  latch_wait::run();
  CHECK(cudaDeviceSynchronize());
}
