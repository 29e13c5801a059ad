// Kernels whose byte ranges the test emulates (tests/ranges_truth.rs holds the same index expressions).
typedef unsigned long long u64;
#define K extern "C" __global__ void
#define I (int)(blockIdx.x * blockDim.x + threadIdx.x)

K k_guard(float *a, const float *b, int n) { int i = I; if (i < n) a[i] = b[i]; }
K k_early(float *a, const float *b, int n) { int i = I; if (i >= n) return; a[i] = b[i] + 1; }
K k_noguard(float *a) { a[I] = 1; }
K k_slice(float *a, int off, int n) { int i = I; if (i < n) a[off + i] = 1; }
K k_byteoff(char *a, u64 off, int n) { int i = I; if (i < n) *(float *)(a + off + 4ull * i) = 1; }
K k_sizet(float *a, u64 n) { u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = 1; }
K k_halo(float *o, const float *a, int n) { int i = I; if (i > 0 && i < n - 1) o[i] = a[i - 1] + a[i] + a[i + 1]; }
K k_even(float *a, int n) { int i = I; if (2 * i < n) a[2 * i] = 1; }
K k_odd(float *a, int n) { int i = I; if (2 * i + 1 < n) a[2 * i + 1] = 1; }
K k_reverse(float *a, const float *b, int n) { int i = I; if (i < n) a[n - 1 - i] = b[i]; }
struct P3 { float x, y, z; };
K k_aos(P3 *p, int n) { int i = I; if (i < n) p[i].y = 1; }
K k_gs32(float *a, const float *b, int n) { for (int i = I; i < n; i += gridDim.x * blockDim.x) a[i] = b[i]; }
K k_gs64(float *a, const float *b, u64 n) {
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) a[i] = b[i];
}
K k_gsdown(float *a, int n) { for (int i = n - 1 - I; i >= 0; i -= gridDim.x * blockDim.x) a[i] = 1; }
K k_rowsum(float *o, const float *a, int rows, int cols) {
  int r = I; if (r >= rows) return;
  float s = 0; for (int c = 0; c < cols; c++) s += a[r * cols + c];
  o[r] = s;
}
K k_colsum(float *o, const float *a, int rows, int cols) {
  int c = I; if (c >= cols) return;
  float s = 0; for (int r = 0; r < rows; r++) s += a[r * cols + c];
  o[c] = s;
}
K k_vec4(float4 *a, const float4 *b, int n4) { int i = I; if (i < n4) a[i] = b[i]; }
K k_vec4tail(float *a, const float *b, int n) {
  int i = I, n4 = n / 4;
  if (i < n4) ((float4 *)a)[i] = ((const float4 *)b)[i];
  int t = n4 * 4 + i; if (i < 4 && t < n) a[t] = b[t];
}
K k_reduce(float *o, const float *a, int n) {
  __shared__ float s[1024];
  int i = I, t = threadIdx.x;
  s[t] = i < n ? a[i] : 0; __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
  if (t == 0) o[blockIdx.x] = s[0];
}
K k_divparam(float *a, const float *b, int n, unsigned d) { unsigned i = I; if (i < n) a[i / d] = b[i]; }
K k_modparam(float *a, int n, unsigned d) { unsigned i = I; if (i < n) a[i % d] = 1; }
K k_div12(float *a, float *b, int n) { unsigned i = I; if (i < n) { a[i / 12] = 1; b[i % 12] = 1; } }
K k_clamp(float *o, const float *a, int n) {
  int i = I; if (i >= n) return;
  int l = max(i - 1, 0), r = min(i + 1, n - 1);
  o[i] = a[l] + a[r];
}
K k_ptrloop(const float *a, float *o, int n) {
  float s = 0; for (const float *p = a + threadIdx.x; p < a + n; p += blockDim.x) s += *p;
  if (s == 12345.f) o[0] = s;
}
K k_chunk(float *a, int n, int chunk) {
  int lo = blockIdx.x * chunk, hi = min(lo + chunk, n);
  for (int i = lo + threadIdx.x; i < hi; i += blockDim.x) a[i] = 1;
}
K k_3d(float *a, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < nx && y < ny && z < nz) a[(z * ny + y) * nx + x] = 1;
}
K k_warp(float *a, int n) {
  int w = I / 32, l = threadIdx.x % 32;
  for (int i = w * 128 + l; i < min(n, w * 128 + 128); i += 32) a[i] = 1;
}
K k_matmul(float *c, const float *a, const float *b, int m, int n, int k) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (y >= m || x >= n) return;
  float s = 0; for (int i = 0; i < k; i++) s += a[y * k + i] * b[i * n + x];
  c[y * n + x] = s;
}
K k_gather(float *o, const float *a, const int *idx, int n, int m) {
  int i = I; if (i >= n) return;
  int j = idx[i]; if (j >= 0 && j < m) o[i] = a[j];
}
K k_pitch(char *a, u64 pitch, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) ((float *)(a + y * pitch))[x] = 1;
}
K k_nested(float *a, int rows, int cols, int ld) {
  for (int r = blockIdx.x; r < rows; r += gridDim.x)
    for (int c = threadIdx.x; c < cols; c += blockDim.x) a[r * ld + c] = 1;
}
struct Tab { float *p[8]; int n[8]; };
K k_table(Tab t) { int k = blockIdx.y; int i = I; if (i < t.n[k]) t.p[k][i] = 1; }
K k_select(float *a, float *b, int n) { int i = I; if (i < n) { float *p = i & 1 ? a : b; p[i] = 1; } }
K k_uniform(float *a, float *b, int n, int which) { int i = I; float *p = which ? a : b; if (i < n) p[i] = 1; }
K k_atomic(int *h, int n, int bins) { int i = I; if (i < n) atomicAdd(&h[i % bins], 1); }
K k_hist(int *h, const unsigned char *a, int n) { int i = I; if (i < n) atomicAdd(&h[a[i]], 1); }
K k_unroll(float *a, int n) {
  int i = 4 * I;
#pragma unroll
  for (int k = 0; k < 4; k++) if (i + k < n) a[i + k] = 1;
}
K k_blockrows(float *a, int n) { a += (long long)blockIdx.x * n; for (int i = threadIdx.x; i < n; i += blockDim.x) a[i] = 1; }
K k_half(unsigned short *a, const unsigned short *b, int n) {
  int i = I; if (2 * i + 1 < n) ((unsigned *)a)[i] = ((const unsigned *)b)[i];
  else if (2 * i < n) a[2 * i] = b[2 * i];
}
K k_shr(float *a, int n) { int i = I; if (i < n) a[(i >> 5) * 32] = 1; }
K k_tid0(float *a) { if (threadIdx.x == 0) a[blockIdx.x] = 1; }
K k_neq(float *a, int n) { int i = threadIdx.x; if (i != 0 && i < n) a[i] = 1; }
K k_neg(float *a, int n) { int i = I - n; if (i >= 0) a[-1 - i + n] = 1; }
K k_signed(float *a, int n, int off) { int i = I; if (i < n) a[(long long)i + off] = 1; }
K k_u8(unsigned char *a, int n) { int i = I; if (i < n) a[i] = 1; }
K k_transpose(float *o, const float *a, int w, int h) {
  __shared__ float t[16][17];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < w && y < h) t[threadIdx.y][threadIdx.x] = a[y * w + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x; y = blockIdx.x * 16 + threadIdx.y;
  if (x < h && y < w) o[y * h + x] = t[threadIdx.x][threadIdx.y];
}
K k_stencil2(float *o, const float *a, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= 1 && x < w - 1 && y >= 1 && y < h - 1)
    o[y * w + x] = a[y * w + x - 1] + a[y * w + x + 1] + a[(y - 1) * w + x] + a[(y + 1) * w + x];
}
K k_while(float *a, int n) { int i = threadIdx.x; while (i < n) { a[i] = 1; i += 64; } }
K k_dowhile(float *a, int n) { int i = threadIdx.x; do { a[i] = 1; i += 32; } while (i < n); }
K k_mix(float *a, float *b, int n, int m) { int i = I; if (i < n) a[i] = 1; else if (i < n + m) b[i - n] = 1; }
K k_or(float *a, int n, int m) { int i = I; if (i < n || i == m) a[i] = 1; }
K k_index_div(float *o, const float *a, int n, int w) {
  int i = I; if (i < n) { int y = i / w, x = i - y * w; o[i] = a[x * 64 + y]; }
}
K k_break(float *a, const int *s, int n) { for (int i = threadIdx.x; i < n; i += blockDim.x) { if (s[i] == 7) break; a[i] = 1; } }
K k_triangle(float *a, int n) { int r = I; if (r < n) for (int c = 0; c <= r; c++) a[r * n + c] = 1; }
K k_wrap(float *a, unsigned n) { unsigned i = I - 5u; if (i < n) a[i] = 1; }
K k_uwrap(float *a, u64 n) { u64 i = (u64)(I - 5); if (i < n) a[i] = 1; }
K k_step(float *a, int n, int step) { for (int i = I; i < n; i += step) a[i] = 1; }
K k_two(float *a, int n) { for (int r = 0; r < 2; r++) { int i = I + r * gridDim.x * blockDim.x; if (i < n) a[i] = 1; } }
// As PyTorch stores what is left of a vector: who fails one test meets the next one with the same number.
K k_tail(float *a, int n) {
  int i = threadIdx.x;
#pragma unroll
  for (int k = 0; k < 5; k++) if (i < n) { a[i] = k; i += blockDim.x; }
}
K k_tail_apart(float *a, float *b, int n, int m) {
  int i = threadIdx.x;
  if (i < n) { a[i] = 1; i += blockDim.x; }
  if (i < m) { b[i] = 2; i += blockDim.x; }
  if (i < n) a[i] = 3;
}
// Warps' numbers and pointers out of lane 0, as CUTLASS takes them.
K k_lane_number(float *a, int n) {
  int w = __shfl_sync(~0u, (int)(threadIdx.x >> 5), 0), i = (blockIdx.x * 8 + w) * 32 + (threadIdx.x & 31);
  if (i < n) a[i] = 1;
}
K k_lane_pointer(float *a, int n) {
  float *p = (float *)__shfl_sync(~0u, (u64)(a + (u64)blockIdx.x * n), 0);
  if (threadIdx.x < n) p[threadIdx.x] = 1;
}
K k_lane_above(float *a, const float *b, int n) {
  int j = __shfl_up_sync(~0u, (int)threadIdx.x * 2, 1);
  if (I < n) a[j] = b[j + 1];
}
K k_lane_loop(float *a, int n) {
  for (int i = threadIdx.x; i < n; i += 256) a[__shfl_sync(~0u, i, 0)] = 1;
}
// Steps back by a scaled number of 64 bits, and a sum whose low word is made of a high one.
K k_back(float *a, long long s, int n) {
  float *p = a + I + 4 * s;
  if (I < n) { p[0] = 1; p[-4 * s] = 2; p[28 * s] = 3; }
}
K k_eighths(float *a, int n) { int k = blockIdx.x * n; if ((threadIdx.x & 7) == 0) a[(long long)(threadIdx.x >> 3) + k] = 1; }
// PyTorch's copies: four elements of a thread, each taken apart with a prepared divisor.
K k_dividers(float *a, unsigned n, unsigned m, unsigned s, unsigned d) {
  unsigned j = blockIdx.x * 512 + threadIdx.x;
#pragma unroll
  for (int u = 0; u < 4; u++, j += 128)
    if (j < n) { unsigned q = (__umulhi(j, m) + j) >> s, r = j - q * d; *(float *)((char *)a + (r * 40 + q * 4)) = 1; }
}
// PyTorch's im2col: rows and columns of 64 bits that begin before the image.
K k_window64(float *a, const float *b, long long n, long long h) {
  long long x = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (x >= n) return;
  long long row = x / 16 - 1, col = x % 16 - 1;
  a[x] = row >= 0 && col >= 0 && row < h && col < h ? b[row * h + col] : 0;
}
// PyTorch's pooling: counted in 64 bits, used in 32.
K k_narrowed(float *a, int n) {
  for (long long x = blockIdx.x * (long long)blockDim.x + threadIdx.x; x < n; x += (long long)blockDim.x * gridDim.x) {
    int i = (int)x;
    a[i] = 1;
  }
}
// The word around an element of two bytes.
K k_rounded(char *a, int n) { if (I < n) *(unsigned *)((u64)(a + 2 * (long long)I) & ~3ull) = 1; }
// PyTorch's `unique`: the high word of `i - 1` is made of a carry that never happens.
K k_before(int *a, const int *b, int n) {
  for (long long x = blockIdx.x * (long long)blockDim.x + threadIdx.x; x < n; x += (long long)blockDim.x * gridDim.x) {
    int i = (int)x;
    a[i] = i > 0 ? b[i] != b[i - 1] : 0;
  }
}
