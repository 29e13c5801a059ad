// Two stages by cuda::pipeline of the block. A stage must be released behind its last use.
#include "twins.h"
#include <cuda/pipeline>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void stream(const int* x, int* out, int batches) {
  __shared__ int buf[2][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block(); auto pipe = cuda::make_pipeline(block, &state);
  int t = threadIdx.x, acc = 0;
  for (int fetch = 0, use = 0; use < batches; use++) {
    for (; fetch < batches && fetch < use + 2; fetch++) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, buf[fetch % 2], x + fetch * 128, sizeof(int) * 128, pipe);  // race: A
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    RACY_ONLY(pipe.consumer_release();)
    acc += buf[use % 2][127 - t] * (use + 1);  // race: A
    MENDED_ONLY(pipe.consumer_release();)
  }
  out[t] = acc;
}
int main() { int* x = numbers(128 * 8); int* out = device<int>(128); stream<<<1, 128>>>(x, out, 8); CHECK(cudaDeviceSynchronize()); }
