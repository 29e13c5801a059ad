// Work stealing: each block has a range of items in a deque, thieves take from the other end. Items' inputs are
// prepared by the owner, and published by a flag whose scope is too small for a thief.
#include "twins.h"
#include <cuda/atomic>
constexpr auto SCOPE = PICK(cuda::thread_scope_block, cuda::thread_scope_device);
struct Work { int item[16]; int published; unsigned long long range; };
__global__ void steal(Work* w, int* out, int nb) {
  if (threadIdx.x) return;
  int b = blockIdx.x;
  for (int i = 0; i < 16; i++) w[b].item[i] = b * 100 + i;  // race: A
  cuda::atomic_ref<int, SCOPE>(w[b].published).store(1, cuda::memory_order_release);  // race: B
  for (int k = 0; k < nb; k++) {
    int v = (b + k) % nb;
    while (!cuda::atomic_ref<int, SCOPE>(w[v].published).load(cuda::memory_order_acquire)) {}  // race: B
    for (;;) {
      unsigned long long i = atomicAdd(&w[v].range, 1ull);
      if (i >= 16) break;
      atomicAdd(&out[b], w[v].item[i]);  // race: A
      if (k == 0 && i >= 8) break;
    }
  }
}
int main() { auto w = device<Work>(6); int* out = device<int>(6); steal<<<6, 32>>>(w, out, 6); CHECK(cudaDeviceSynchronize()); }
