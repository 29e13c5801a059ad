// A histogram over the shared memory of a cluster; a block may end while another still adds to its bins.
// In machine code the upper threads end at the line of the read.
#include "twins.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(4, 1, 1) spread(const int* x, int* out) {
  __shared__ int bins[32];
  auto cluster = cg::this_cluster(); int t = threadIdx.x, r = cluster.block_rank();
  if (t < 32) bins[t] = t;
  cluster.sync();
  int v = x[blockIdx.x * 64 + t] % 128;
  int* remote = cluster.map_shared_rank(bins, v / 32);
  atomicAdd(&remote[v % 32], 1);
  cluster.sync();
  int* next = cluster.map_shared_rank(bins, (r + 1) % 4);
  if (t < 32) out[r * 32 + t] = next[t];  // race: A in machine code, B
  MENDED_ONLY(cluster.sync();)
}  // race: B
int main() { int* x = numbers(256); int* out = device<int>(128); spread<<<4, 64>>>(x, out); CHECK(cudaDeviceSynchronize()); }
