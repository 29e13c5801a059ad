// Jacobi in place over the grid: all must have read before any writes.
#include "twins.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void jacobi(int* a, int n, int steps) {
  auto grid = cg::this_grid(); int i = grid.thread_rank();
  for (int s = 0; s < steps; s++) {
    int v = a[i];
    if (i > 0 && i < n - 1) v = (a[i - 1] + 2 * a[i] + a[i + 1] + 3) / 4 + s;  // race: A
    MENDED_ONLY(grid.sync();)
    a[i] = v;  // race: A
    grid.sync();
  }
}
int main() { int* a = numbers(512); int n = 512, steps = 4; void* args[] = {&a, &n, &steps};
  CHECK(cudaLaunchCooperativeKernel((void*)jacobi, 4, 128, args, 0, 0)); CHECK(cudaDeviceSynchronize()); }
