// Hazard pointers: readers announce the node that they read, look whether it is still the current one, and withdraw it
// when they have read. The writer fills a node again once nobody announces it. A withdrawal must release the reads.
#include "twins.h"
#include <cuda/atomic>
using Word = cuda::atomic_ref<int, cuda::thread_scope_device>;
__device__ void fence() { cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device); }
__global__ void readers(int* current, int (*nodes)[4], int* hazards, int* finished, const int* x, int* out, int rounds) {
  if (threadIdx.x) return;
  int others = gridDim.x - 1;
  if (blockIdx.x == 0) {
    int old = 1;
    for (int i = 1; Word(*finished).load(cuda::memory_order_relaxed) < others; i++) {
      int node = 3 - old;
      for (int k = 0; k < 4; k++) nodes[node - 1][k] = x[i % 64 + k];  // race: A
      Word(*current).store(node, cuda::memory_order_release);
      fence();
      for (int r = 0; r < others; r++) while (Word(hazards[r]).load(cuda::memory_order_acquire) == old) {}
      old = node;
    }
    return;
  }
  Word mine(hazards[blockIdx.x - 1]);
  int sum = 0;
  for (int i = 0; i < rounds;) {
    int node = Word(*current).load(cuda::memory_order_acquire);
    mine.store(node, PICK(cuda::memory_order_relaxed, cuda::memory_order_release));
    fence();
    if (Word(*current).load(cuda::memory_order_acquire) == node) {
      for (int k = 0; k < 4; k++) sum += nodes[node - 1][k] * (k + 1);  // race: A
      i++;
    }
    mine.store(0, PICK(cuda::memory_order_relaxed, cuda::memory_order_release));
  }
  out[blockIdx.x] = sum;
  Word(*finished).fetch_add(1, cuda::memory_order_relaxed);
}
int main() {
  int* x = numbers(80); int* one = device<int>(1); auto* nodes = (int (*)[4])numbers(8); int* hazards = device<int>(3); int* finished = device<int>(1); int* out = device<int>(4);
  int first = 1; CHECK(cudaMemcpy(one, &first, 4, cudaMemcpyHostToDevice));
  readers<<<4, 32>>>(one, nodes, hazards, finished, x, out, 8); CHECK(cudaDeviceSynchronize());
}
