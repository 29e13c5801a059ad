// Forms of groups: tokens of barrier objects, partitions by colour, two blocks of a cluster in turns.
#include "twins.h"
#include <cuda/barrier>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

// Two halves of a block hand a tile to and fro by two barrier objects of libcu++, by tokens: each arrives, works on
// something else, and waits. The wait must come before the other half's tile is used.
namespace barrier_tokens {
using Barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void swap_tiles(int* out, const int* x, int rounds) {
  __shared__ Barrier full, empty;
  __shared__ int tile[64];
  int t = threadIdx.x % 64, sum = 0;
  if (threadIdx.x == 0) { init(&full, 128); init(&empty, 128); }
  __syncthreads();
  for (int r = 0; r < rounds; r++) {
    if (threadIdx.x < 64) {
      tile[t] = x[r * 64 + t];  // race: barrier_tokens
      (void)full.arrive();
      empty.arrive_and_wait();
    } else {
      auto token = full.arrive();
      int other = x[r * 64 + t] * 3;
      MENDED_ONLY(full.wait(std::move(token));)
      sum += other + tile[63 - t];  // race: barrier_tokens
      RACY_ONLY(full.wait(std::move(token));)
      empty.arrive_and_wait();
    }
  }
  if (threadIdx.x >= 64) out[t] = sum;
}
void run() {
  int *x = numbers(64 * 4), *out = device<int>(64);
  swap_tiles<<<1, 128>>>(out, x, 4);
}
}  // namespace barrier_tokens

// Cooperative groups of lanes with one colour add up their numbers; the leader of each leaves the sum in shared
// memory, and all threads of the block read them behind a barrier.
namespace partitions {
namespace cg = cooperative_groups;
__global__ void colours(int* out, const int* x) {
  __shared__ int sums[4][4];
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  int colour = x[block.thread_rank()] % 4;
  if (warp.thread_rank() < 4) sums[warp.meta_group_rank()][warp.thread_rank()] = 0;
  warp.sync();
  auto group = cg::labeled_partition(warp, colour);
  int sum = cg::reduce(group, x[block.thread_rank()], cg::plus<int>());
  if (group.thread_rank() == 0) sums[warp.meta_group_rank()][colour] = sum;  // race: partitions
  MENDED_ONLY(block.sync();) RACY_ONLY(warp.sync();)
  int all = 0;
  for (int w = 0; w < 4; w++) all += sums[w][colour];  // race: partitions
  out[block.thread_rank()] = all;
}
void run() {
  int *x = numbers(128), *out = device<int>(128);
  colours<<<1, 128>>>(out, x);
}
}  // namespace partitions

// Two blocks of a cluster write into each other's shared memory in turns. One barrier a round is enough with two
// buffers; with one it is not.
namespace cluster_pingpong {
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(2, 1, 1) pingpong(int* out, const int* x, int rounds) {
  __shared__ int box[2][64];
  auto cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank(), t = threadIdx.x;
  int value = x[blockIdx.x * 64 + t];
  cluster.sync();
  for (int r = 0; r < rounds; r++) {
    int at = PICK(0, r % 2);
    cluster.map_shared_rank(&box[at][0], rank ^ 1)[t] = value;  // race: cluster_pingpong
    cluster.sync();
    value = box[at][63 - t] + r;  // race: cluster_pingpong
  }
  cluster.sync();
  out[blockIdx.x * 64 + t] = value;
}
void run() {
  int *x = numbers(128), *out = device<int>(128);
  pingpong<<<2, 64>>>(out, x, 5);
}
}  // namespace cluster_pingpong

int main() {
  barrier_tokens::run();
  partitions::run();
  cluster_pingpong::run();
  CHECK(cudaDeviceSynchronize());
}
