// A scan in one pass: blocks draw tiles, and a tile's state is one word of 64 bits with its sum, so that no fence is
// needed. The number that thread 0 draws is in shared memory; it must not be drawn again while others still read it.
#include "twins.h"
__global__ void scan(const int* x, int* out, int* drawn, unsigned long long* state, int tiles) {
  __shared__ int tile, before, part[64];
  int t = threadIdx.x;
  while (true) {
    if (t == 0) tile = atomicAdd(drawn, 1);  // race: A
    __syncthreads();
    int mine = tile;
    if (mine >= tiles) return;
    part[t] = x[mine * 64 + t];
    for (int d = 1; d < 64; d *= 2) { __syncthreads(); int v = t >= d ? part[t - d] : 0; __syncthreads(); part[t] += v; }
    __syncthreads();
    if (t == 63) {
      int sum = 0;
      atomicExch(&state[mine], (mine ? 1ull : 2ull) << 32 | (unsigned)part[63]);
      for (int j = mine - 1; j >= 0;) {
        unsigned long long s = atomicAdd(&state[j], 0ull);
        if (s >> 32 == 0) continue;
        sum += (int)s;
        if (s >> 32 == 2) break;
        j--;
      }
      if (mine) atomicExch(&state[mine], 2ull << 32 | (unsigned)(sum + part[63]));
      before = sum;
    }
    __syncthreads();
    out[tile * 64 + t] = before + part[t];  // race: A
    MENDED_ONLY(__syncthreads();)
  }
}
int main() { int* x = numbers(64 * 12); int* out = device<int>(64 * 12); int* drawn = device<int>(1); auto* state = device<unsigned long long>(12); scan<<<3, 64>>>(x, out, drawn, state, 12); CHECK(cudaDeviceSynchronize()); }
