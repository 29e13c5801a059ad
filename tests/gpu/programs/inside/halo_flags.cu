// Blocks that stay exchange the borders of their parts through global memory, step by step, each with flags of its own.
// A border of this step must not take the place of one that the neighbour has still to read: there are two, in turn.
#include "twins.h"
#include <cuda/atomic>
using Flag = cuda::atomic_ref<int, cuda::thread_scope_device>;
__global__ void steps(int* borders, int* flags, const int* x, int* out, int rounds) {
  __shared__ int part[2][34];
  int t = threadIdx.x, b = blockIdx.x, left = (b + gridDim.x - 1) % gridDim.x, right = (b + 1) % gridDim.x;
  part[0][t + 1] = x[b * 32 + t];
  for (int i = 0; i < rounds; i++) {
    int turn = PICK(0, i % 2), *mine = borders + (turn * gridDim.x + b) * 2;
    __syncthreads();
    if (t == 0) {
      mine[0] = part[i % 2][1];  // race: A
      mine[1] = part[i % 2][32];  // race: B
      Flag(flags[b]).store(i + 1, cuda::memory_order_release);
      while (Flag(flags[left]).load(cuda::memory_order_acquire) <= i) {}
      while (Flag(flags[right]).load(cuda::memory_order_acquire) <= i) {}
      part[i % 2][0] = borders[(turn * gridDim.x + left) * 2 + 1];  // race: B
      part[i % 2][33] = borders[(turn * gridDim.x + right) * 2];  // race: A
    }
    __syncthreads();
    part[(i + 1) % 2][t + 1] = part[i % 2][t] + part[i % 2][t + 1] + part[i % 2][t + 2] * 2;
  }
  __syncthreads();
  out[b * 32 + t] = part[rounds % 2][t + 1];
}
int main() { int* x = numbers(32 * 4); int* borders = device<int>(16); int* flags = device<int>(4); int* out = device<int>(32 * 4); steps<<<4, 32>>>(borders, flags, x, out, 6); CHECK(cudaDeviceSynchronize()); }
