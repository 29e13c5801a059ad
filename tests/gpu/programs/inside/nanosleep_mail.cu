// Blocks in a chain hand mail on. The receiver sleeps between looks at a volatile flag; the sender must fence what it
// wrote before it raises the flag.
#include "twins.h"
__global__ void chain(int* mail, volatile int* flag, const int* x) {
  int b = blockIdx.x, t = threadIdx.x;
  int v = x[t];
  if (b) {
    if (t == 0) { unsigned ns = 8; while (!flag[b - 1]) { __nanosleep(ns); if (ns < 256) ns *= 2; } __threadfence(); }
    __syncthreads();
    v += mail[(b - 1) * 32 + 31 - t];  // race: A
  }
  mail[b * 32 + t] = v * 3;  // race: A
  MENDED_ONLY(__threadfence();)
  __syncthreads();
  if (t == 0) flag[b] = 1;
}
int main() { int* x = numbers(32); int* mail = device<int>(32 * 6); int* flag = device<int>(6); chain<<<6, 32>>>(mail, flag, x); CHECK(cudaDeviceSynchronize()); }
