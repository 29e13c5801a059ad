// A message between blocks by a relaxed flag and fences. The reader's fence must reach the other block.
#include "twins.h"
#include <cuda/atomic>
__global__ void message(int* data, int* flag, const int* x, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    for (int i = 0; i < 8; i++) data[i] = x[i];  // race: A
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
    ready.store(1, cuda::memory_order_relaxed);
    return;
  }
  while (!ready.load(cuda::memory_order_relaxed)) {}
  cuda::atomic_thread_fence(cuda::memory_order_acquire, PICK(cuda::thread_scope_block, cuda::thread_scope_device));
  int sum = 0;
  for (int i = 0; i < 8; i++) sum += data[i] * i;  // race: A
  out[blockIdx.x] = sum;
}
int main() { int* x = numbers(8); int* data = device<int>(8); int* flag = device<int>(1); int* out = device<int>(4); message<<<4, 32>>>(data, flag, x, out); CHECK(cudaDeviceSynchronize()); }
