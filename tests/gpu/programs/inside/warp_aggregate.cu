// Stream compaction: one lane of each warp reserves room, the others read where, from shared memory.
// Of lanes of one warp machine code does not say enough.
#include "twins.h"
__global__ void compact(const int* x, int* out, int* count, int n) {
  __shared__ int base[8];
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  bool keep = i < n && x[i] % 3 == 0;
  unsigned m = __ballot_sync(~0u, keep);
  if (lane == 0) base[warp] = atomicAdd(count, __popc(m));  // race: A in PTX
  MENDED_ONLY(__syncwarp();)
  if (keep) out[base[warp] + __popc(m & ((1u << lane) - 1))] = x[i];  // race: A in PTX
}
int main() { int* x = numbers(1000); int* out = device<int>(1000); int* c = device<int>(1); compact<<<4, 256>>>(x, out, c, 1000); CHECK(cudaDeviceSynchronize()); }
