// The longest common subsequence, a block for each strip of rows. A strip follows the one above it by columns: a counter
// says how many are done. All threads must have written before it moves.
#include "twins.h"
#include <cuda/atomic>
using Counter = cuda::atomic_ref<int, cuda::thread_scope_device>;
__global__ void strip(const int* p, const int* q, int* table, int* done, int columns) {
  int b = blockIdx.x, t = threadIdx.x, rows = blockDim.x, width = columns + 1;
  int row = b * rows + t + 1;
  for (int d = 0; d < columns + rows - 1; d++) {
    int column = d - t + 1;
    if (b && d < columns) {
      if (t == 0) while (Counter(done[b - 1]).load(cuda::memory_order_acquire) <= d) {}
    }
    if (column >= 1 && column <= columns) {
      int* cell = &table[row * width + column];
      int up = cell[-width], left = cell[-1], both = cell[-width - 1];  // race: A
      *cell = p[row] % 4 == q[column] % 4 ? both + 1 : max(up, left) + (p[row] == q[column]);  // race: A
    }
    RACY_ONLY(if (t == 0 && d >= rows - 1) Counter(done[b]).store(d - rows + 2, cuda::memory_order_release);)
    __syncthreads();
    MENDED_ONLY(if (t == 0 && d >= rows - 1) Counter(done[b]).store(d - rows + 2, cuda::memory_order_release);)
  }
}
int main() {
  const int columns = 20, rows = 64, blocks = 3;
  int* p = numbers(rows * blocks + 1); int* q = numbers(columns + 1, 11, 5);
  int* table = numbers((rows * blocks + 1) * (columns + 1)); int* done = device<int>(blocks);
  strip<<<blocks, rows>>>(p, q, table, done, columns); CHECK(cudaDeviceSynchronize());
}
