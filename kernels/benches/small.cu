// Small kernels as programs launch them by the thousand (benches/cost.rs times their analysis).
#define K extern "C" __global__ void
#define I (int)(blockIdx.x * blockDim.x + threadIdx.x)

K vector_add(float *o, const float *a, const float *b, int n) { int i = I; if (i < n) o[i] = a[i] + b[i]; }
K saxpy(float *y, const float *x, float alpha, int n) { int i = I; if (i < n) y[i] += alpha * x[i]; }
K grid_stride(float *o, const float *a, int n) { for (int i = I; i < n; i += gridDim.x * blockDim.x) o[i] = a[i]; }
K transpose(float *o, const float *a, int w, int h) {
  __shared__ float t[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < w && y + j < h) t[threadIdx.y + j][threadIdx.x] = a[(y + j) * w + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < h && y + j < w) o[(y + j) * h + x] = t[threadIdx.x][threadIdx.y + j];
}
K stencil(float *o, const float *a, int n) { int i = I; if (i > 0 && i < n - 1) o[i] = a[i - 1] + a[i] + a[i + 1]; }
K softmax(float *o, const float *a, int cols) {
  __shared__ float s[256];
  const float *row = a + (size_t)blockIdx.x * cols;
  float *out = o + (size_t)blockIdx.x * cols;
  int t = threadIdx.x;
  float m = -1e30f, z = 0;
  for (int c = t; c < cols; c += blockDim.x) m = fmaxf(m, row[c]);
  s[t] = m; __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d >>= 1) { if (t < d) s[t] = fmaxf(s[t], s[t + d]); __syncthreads(); }
  m = s[0]; __syncthreads();
  for (int c = t; c < cols; c += blockDim.x) z += __expf(row[c] - m);
  s[t] = z; __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
  for (int c = t; c < cols; c += blockDim.x) out[c] = __expf(row[c] - m) / s[0];
}
