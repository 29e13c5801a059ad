// Blocks stay, and draw items from a counter behind their first one; an item needs the one before it. All threads of a block have written their
// part before one of them says that the item is done.
#include "twins.h"
#include <cuda/atomic>
__global__ void work(int* next, int* done, int* rows, const int* x, int items) {
  __shared__ int item;
  int t = threadIdx.x;
  for (bool first = true;; first = false) {
    if (t == 0) item = first ? blockIdx.x : gridDim.x + atomicAdd(next, 1);
    __syncthreads();
    int mine = item;
    if (mine >= items) return;
    if (mine && t == 0) {
      cuda::atomic_ref<int, cuda::thread_scope_device> before(done[mine - 1]);
      while (!before.load(cuda::memory_order_acquire)) {}
    }
    __syncthreads();
    rows[mine * 64 + t] = (mine ? rows[(mine - 1) * 64 + (t + 1) % 64] : 0) + x[t];  // race: A
    MENDED_ONLY(__syncthreads();)
    if (t == 0) {
      cuda::atomic_ref<int, cuda::thread_scope_device> after(done[mine]);
      after.store(1, cuda::memory_order_release);
    }
    RACY_ONLY(__syncthreads();)
  }
}
int main() { int* x = numbers(64); int* next = device<int>(1); int* done = device<int>(12); int* rows = device<int>(12 * 64); work<<<4, 64>>>(next, done, rows, x, 12); CHECK(cudaDeviceSynchronize()); }
