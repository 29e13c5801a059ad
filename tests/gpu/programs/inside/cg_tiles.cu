// Each tile of 16 leaves its sum in shared memory; then the next tile adds it. The tile's barrier is too small.
#include "twins.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void neighbours(const int* x, int* out) {
  __shared__ int sums[8];
  auto block = cg::this_thread_block(); auto tile = cg::tiled_partition<16>(block);
  int v = x[block.thread_rank()];
  int s = cg::reduce(tile, v, cg::plus<int>());
  if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = s;  // race: A
  PICK(tile, block).sync();
  out[block.thread_rank()] = v + sums[(tile.meta_group_rank() + 3) % tile.meta_group_size()];  // race: A
}
int main() { int* x = numbers(128); int* out = device<int>(128); neighbours<<<1, 128>>>(x, out); CHECK(cudaDeviceSynchronize()); }
