// One warp fills two stages by memcpy_async, three warps use them (cuda::pipeline with roles). Consumers wait for a stage.
#include "twins.h"
#include <cuda/pipeline>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void roles(const int* x, int* out, int batches) {
  __shared__ int buf[2][96];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  bool fills = threadIdx.x < 32;
  auto pipe = cuda::make_pipeline(block, &state, fills ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  if (fills) {
    for (int i = 0; i < batches; i++) {
      pipe.producer_acquire();
      for (int k = threadIdx.x; k < 96; k += 32) cuda::memcpy_async(&buf[i % 2][k], x + i * 96 + k, sizeof(int), pipe);  // race: A
      pipe.producer_commit();
    }
    return;
  }
  int t = threadIdx.x - 32, acc = 0;
  for (int i = 0; i < batches; i++) {
    MENDED_ONLY(pipe.consumer_wait();)
    acc += buf[i % 2][95 - t] * (i + 1);  // race: A
    RACY_ONLY(pipe.consumer_wait();)
    pipe.consumer_release();
  }
  out[t] = acc;
}
int main() { int* x = numbers(96 * 6); int* out = device<int>(96); roles<<<1, 128>>>(x, out, 6); CHECK(cudaDeviceSynchronize()); }
