// A reduction over a cluster by PTX (mapa, st.shared::cluster): each block stores its sum in block 0, arrives at the
// cluster's barrier and works on. What the others stored may be read behind the wait only.
#include "twins.h"
__global__ void __cluster_dims__(4, 1, 1) total(const int* x, int* out) {
  __shared__ int sums[4], part[64];
  int t = threadIdx.x, rank = blockIdx.x % 4;
  part[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  for (int d = 32; d; d /= 2) { if (t < d) part[t] += part[t + d]; __syncthreads(); }
  // All blocks have started.
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  if (t == 0) {
    unsigned here = (unsigned)__cvta_generic_to_shared(&sums[rank]), there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(here));
    asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(there), "r"(part[0]) : "memory");  // race: A
  }
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  int own = part[0] * 3;
  MENDED_ONLY(asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");)
  if (rank == 0 && t < 4) out[blockIdx.x / 4 * 4 + t] = sums[t] + own;  // race: A
  RACY_ONLY(asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");)
}
int main() { int* x = numbers(64 * 8); int* out = device<int>(8); total<<<8, 64>>>(x, out); CHECK(cudaDeviceSynchronize()); }
