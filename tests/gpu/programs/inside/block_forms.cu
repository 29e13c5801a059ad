// Forms within a block: flags and histograms in shared memory, barriers by number, cp.async, arrays cut out of dynamic
// shared memory, unions, fields of bits, vectors, pointers to two kinds of memory, threads that leave early.
#include "twins.h"

// The last block of a reduction finishes it. That it is the last one is a word of shared memory, which one thread
// writes and all read.
namespace last_flag_shared {
__global__ void reduce(int* out, int* sums, unsigned* ticket, const int* x) {
  __shared__ int part[64];
  __shared__ bool last;
  int t = threadIdx.x;
  part[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  for (int half = 32; half; half /= 2) { if (t < half) part[t] += part[t + half]; __syncthreads(); }
  if (t == 0) {
    sums[blockIdx.x] = part[0];  // race: last_flag_shared B in PTX
    __threadfence();
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;  // race: last_flag_shared
    __threadfence();
  }
  MENDED_ONLY(__syncthreads();)
  if (last && t < 32) {  // race: last_flag_shared
    int sum = t < gridDim.x ? sums[t] : 0;  // race: last_flag_shared B in PTX
    for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    if (t == 0) *out = sum;
  }
}
void run() {
  int *x = numbers(5 * 64), *sums = device<int>(5), *out = device<int>(1);
  reduce<<<5, 64>>>(out, sums, device<unsigned>(1), x);
}
}  // namespace last_flag_shared

// A histogram of each warp in shared memory, added up at the end. The racy form zeroes all of them by all threads and
// does not meet.
namespace warp_histograms {
__global__ void count(int* out, const int* x, int n) {
  __shared__ int bins[4][16];
  int t = threadIdx.x;
  if (t < 64) bins[t / 16][t % 16] = 0;  // race: warp_histograms
  MENDED_ONLY(__syncthreads();)
  for (int i = t; i < n; i += 128) atomicAdd(&bins[t / 32][x[i] % 16], 1);  // race: warp_histograms
  __syncthreads();
  if (t < 16) { int sum = 0; for (int w = 0; w < 4; w++) sum += bins[w][t]; atomicAdd(&out[t], sum); }
}
void run() {
  int *x = numbers(512), *out = device<int>(16);
  count<<<2, 128>>>(out, x, 512);
}
}  // namespace warp_histograms

// One warp loads, two groups of two warps use: numbered barriers tell each group that its stage is full, and the
// loader that it is empty again. In the racy form one group does not say so.
namespace role_barriers {
__device__ void meet(int number, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory"); }
__device__ void come(int number, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory"); }
__global__ void roles(int* out, const int* x, int rounds) {
  __shared__ int stage[2][32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, sum = 0;
  if (warp == 0) {
    for (int r = 0; r < rounds; r++)
      for (int g = 0; g < 2; g++) {
        if (r > 0 PICK(&& g == 0, )) meet(3 + g, 96);
        stage[g][lane] = x[(r * 2 + g) * 32 + lane];  // race: role_barriers
        come(1 + g, 96);
      }
  } else {
    int g = (warp - 1) / 2;
    for (int r = 0; r < rounds; r++) {
      meet(1 + g, 96);
      sum += stage[g][(lane + warp) % 32];  // race: role_barriers
      if (r < rounds - 1 PICK(&& g == 0, )) come(3 + g, 96);
    }
    out[threadIdx.x] = sum;
  }
}
void run() {
  int *x = numbers(32 * 8), *out = device<int>(160);
  roles<<<1, 160>>>(out, x, 4);
}
}  // namespace role_barriers

// Rows are copied ahead by cp.async, two buffers. The racy form starts the copy into a buffer before all threads have
// read it.
namespace async_rows {
__device__ void copy(int* to, const int* from) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.commit_group;" ::"r"(at), "l"(from) : "memory");  // race: async_rows
}
template <int N> __device__ void await() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
__global__ void rows(int* out, const int* x, int count) {
  __shared__ int buffer[2][64];
  int t = threadIdx.x, sum = 0;
  copy(&buffer[0][t], x + t);
  for (int r = 0; r < count; r++) {
    if (r + 1 < count) { copy(&buffer[(r + 1) % 2][t], x + (r + 1) * 64 + t); await<1>(); } else await<0>();
    __syncthreads();
    sum += buffer[r % 2][63 - t] * (r + 1);  // race: async_rows
    MENDED_ONLY(__syncthreads();)
  }
  out[t] = sum;
}
void run() {
  int *x = numbers(64 * 5), *out = device<int>(64);
  rows<<<1, 64>>>(out, x, 5);
}
}  // namespace async_rows

// Three arrays are cut out of the dynamic shared memory, one of bytes between two of words. The racy form counts its
// bytes as one too few, so that the last word of the third array lies on the second.
namespace carve_out {
__global__ void arrays(int* out, const int* x) {
  extern __shared__ __align__(16) unsigned char room[];
  int t = threadIdx.x;
  int* first = (int*)room;
  unsigned char* marks = room + 64 * sizeof(int);
  long long* third = (long long*)(marks + PICK(56, 64));
  first[t] = x[t];
  marks[t] = (unsigned char)(x[t] % 251 + 1);  // race: carve_out
  third[t] = x[t] * 1000003ll;  // race: carve_out
  __syncthreads();
  out[t] = first[63 - t] + marks[(t + 9) % 64] + (int)third[(t + 5) % 64];
}
void run() {
  int *x = numbers(64), *out = device<int>(64);
  arrays<<<1, 64, 64 * 4 + 64 + 64 * 8>>>(out, x);
}
}  // namespace carve_out

// A union of four words and of a vector: threads write words of one vector, and one of another warp reads it whole.
namespace punned {
union Quad { int4 all; int word[4]; float real[4]; };
__global__ void quads(int* out, const int* x) {
  __shared__ Quad quad[32];
  int t = threadIdx.x;
  if (t % 2) quad[t / 4].real[t % 4] = __int_as_float(x[t] + 0x3f800000); else quad[t / 4].word[t % 4] = x[t];  // race: punned
  MENDED_ONLY(__syncthreads();) RACY_ONLY(__syncwarp();)
  if (t < 32) { int4 q = quad[31 - t].all; out[t] = q.x ^ q.y ^ q.z ^ q.w; }  // race: punned
}
void run() {
  int *x = numbers(128), *out = device<int>(32);
  quads<<<1, 128>>>(out, x);
}
}  // namespace punned

// Fields of bits share a word: a write of one reads and writes them all. Threads that write two fields of one word
// race; bytes do not.
namespace bit_fields {
#ifdef MENDED
struct Marks { unsigned char low, high; };
#else
struct Marks { unsigned short low : 6, high : 10; };
#endif
__global__ void mark(Marks* marks, const int* x) {
  int t = threadIdx.x;
  if (t < 64) marks[t].low = x[t] % 50 + 1;  // race: bit_fields
  else marks[t - 64].high = x[t] % 200 + 1;  // race: bit_fields
}
void run() {
  int* x = numbers(128);
  mark<<<1, 128>>>(device<Marks>(64), x);
}
}  // namespace bit_fields

// Each thread writes a word of global memory and reads four of them as a vector, which are those of four threads:
// of its warp, and at the end of the warp of the next one.
namespace straddle {
__global__ void window(int* words, int* out, const int* x) {
  int t = threadIdx.x;
  words[t] = x[t];  // race: straddle
  MENDED_ONLY(__syncthreads();) RACY_ONLY(__syncwarp();)
  int4 v = *(int4*)(words + (t * 4 + 4) % 128);  // race: straddle
  out[t] = v.x + 3 * v.y + 5 * v.z + 7 * v.w;
}
void run() {
  int *x = numbers(128), *out = device<int>(128);
  window<<<1, 128>>>(device<int>(128), out, x);
}
}  // namespace straddle

// A function gets a pointer that is into a local array for some threads, and into shared memory for others: local
// arrays are each thread's own, also at one address.
namespace by_pointer {
__device__ __noinline__ void mix(int* a, int n, int by) {
  for (int i = 0; i < n; i++) a[i] = a[i] * 3 + by;  // race: by_pointer
}
__global__ void pointers(int* out, const int* x) {
  __shared__ int common[4][64];
  int t = threadIdx.x, mine[4];
  for (int i = 0; i < 4; i++) { mine[i] = x[(t + i) % 64]; common[i][t] = x[t] + i; }
  __syncthreads();
  mix(t % 3 ? mine : &common[t % 4][t / 4 * 4 % 64], 4, t);
  MENDED_ONLY(__syncthreads();)
  int sum = mine[t % 4];
  for (int i = 0; i < 4; i++) sum += common[i][63 - t];  // race: by_pointer
  out[t] = sum;
}
void run() {
  int *x = numbers(64), *out = device<int>(64);
  pointers<<<1, 64>>>(out, x);
}
}  // namespace by_pointer

// Threads without work leave before the barriers of the rest, which those count as come. What a thread writes between
// two barriers and leaves is behind the second one only.
namespace early_exit {
__global__ void leave(int* out, const int* x, int n) {
  __shared__ int tile[96];
  int t = threadIdx.x;
  tile[t] = x[t];
  __syncthreads();
  int mine = tile[(t + 40) % 96];  // race: early_exit B
  MENDED_ONLY(__syncthreads();)
  if (t >= 64) { tile[t - 64] = mine; return; }  // race: early_exit, early_exit B
  int early = PICK(tile[63 - t], 0);  // race: early_exit
  __syncthreads();
  out[t] = mine + early + tile[t / 2];
}
void run() {
  int *x = numbers(96), *out = device<int>(64);
  leave<<<1, 96>>>(out, x, 96);
}
}  // namespace early_exit

// The halves of a warp take two ways, each with barriers of its own lanes. What crosses the halves needs a barrier of
// all.
namespace half_warps {
__global__ void halves(int* out, const int* x) {
  __shared__ int word[32];
  int t = threadIdx.x;
  unsigned mine = t < 16 ? 0xffff : 0xffff0000;
  if (t < 16) {
    word[t] = x[t];  // race: half_warps in PTX
    __syncwarp(mine);
    out[t] = word[t ^ 3];
  } else {
    word[t] = x[t] * 2;
    __syncwarp(mine);
    out[t] = word[t ^ 5];
  }
  MENDED_ONLY(__syncwarp();) RACY_ONLY(__syncwarp(mine);)
  if (t >= 16) out[t] += word[t - 16];  // race: half_warps in PTX
}
void run() {
  int *x = numbers(32), *out = device<int>(32);
  halves<<<1, 32>>>(out, x);
}
}  // namespace half_warps

int main() {
  last_flag_shared::run();
  warp_histograms::run();
  role_barriers::run();
  async_rows::run();
  carve_out::run();
  punned::run();
  bit_fields::run();
  straddle::run();
  by_pointer::run();
  early_exit::run();
  half_warps::run();
  CHECK(cudaDeviceSynchronize());
}
