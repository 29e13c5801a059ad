// A histogram in shared memory; its bins are cleared by threads other than those that add to them.
#include "twins.h"
__global__ void histogram(const unsigned char* x, int* out, int n) {
  __shared__ int bins[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;  // race: A
  MENDED_ONLY(__syncthreads();)
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[x[i]], 1);  // race: A
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) if (bins[i]) atomicAdd(&out[i], bins[i]);
}
int main() { int* x = numbers(1024); int* out = device<int>(256); histogram<<<2, 128>>>((unsigned char*)x, out, 4096); CHECK(cudaDeviceSynchronize()); }
