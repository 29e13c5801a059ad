// A scan and a reduction of CUB share their storage.
#include "twins.h"
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
__global__ void both(const int* x, int* out, int* total) {
  using Scan = cub::BlockScan<int, 128>; using Reduce = cub::BlockReduce<int, 128>;
  __shared__ union { typename Scan::TempStorage scan; typename Reduce::TempStorage reduce; } temp;
  int v = x[threadIdx.x], s;
  Scan(temp.scan).ExclusiveSum(v, s);  // race: A
  MENDED_ONLY(__syncthreads();)
  int m = Reduce(temp.reduce).Reduce(s ^ v, [](int a, int b) { return a > b ? a : b; });  // race: A
  out[threadIdx.x] = s; if (threadIdx.x == 0) *total = m;
}
int main() { int* x = numbers(128); int* out = device<int>(128); int* t = device<int>(1); both<<<1, 128>>>(x, out, t); CHECK(cudaDeviceSynchronize()); }
