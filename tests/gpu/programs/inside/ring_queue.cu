// A ring between two blocks, eight slots of four ints. The producer must acquire the tail before it reuses a slot.
#include "twins.h"
#include <cuda/atomic>
struct Ring { int slot[8][4]; cuda::atomic<int, cuda::thread_scope_device> head, tail; };
__global__ void init(Ring* r) { new (&r->head) cuda::atomic<int, cuda::thread_scope_device>(0); new (&r->tail) cuda::atomic<int, cuda::thread_scope_device>(0); }
__global__ void ring(Ring* r, const int* x, int* out, int n) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    for (int i = 0; i < n; i++) {
      while (i - r->tail.load(PICK(cuda::memory_order_relaxed, cuda::memory_order_acquire)) >= 8) {}
      for (int k = 0; k < 4; k++) r->slot[i % 8][k] = x[4 * i + k];  // race: A
      r->head.store(i + 1, cuda::memory_order_release);
    }
  } else {
    int sum = 0;
    for (int i = 0; i < n; i++) {
      while (r->head.load(cuda::memory_order_acquire) <= i) {}
      for (int k = 0; k < 4; k++) sum += r->slot[i % 8][k] * (i + 1);  // race: A
      r->tail.store(i + 1, cuda::memory_order_release);
    }
    *out = sum;
  }
}
int main() { int* x = numbers(400); int* out = device<int>(1); Ring* r = device<Ring>(1); init<<<1, 1>>>(r); ring<<<2, 32>>>(r, x, out, 100); CHECK(cudaDeviceSynchronize()); }
