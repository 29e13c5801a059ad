// A sum over a cluster: the first block reads the partial sums of the others where they lie. A barrier of the block is
// not one of the cluster.
#include "twins.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(4, 1, 1) sum(const int* x, int* out) {
  __shared__ int partial[64];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x;
  partial[t] = x[blockIdx.x * blockDim.x + t] * (t + 1);  // race: A
  PICK(__syncthreads(), cluster.sync());
  if (cluster.block_rank() == 0) {
    int all = 0;
    for (int rank = 0; rank < 4; rank++) all += cluster.map_shared_rank(partial, rank)[t];  // race: A
    out[blockIdx.x * blockDim.x / 4 + t] = all;
  }
  cluster.sync();
}
int main() { int* x = numbers(64 * 8); int* out = device<int>(64 * 8); sum<<<8, 64>>>(x, out); CHECK(cudaDeviceSynchronize()); }
