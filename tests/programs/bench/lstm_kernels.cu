// The kernels of lstm.c. A name ends in the sizes of the parameters: from there the fake driver knows them.

extern "C" __global__ void cell_8_8_8_8_8_4_4_4(const float *gates, const float *bias, const float *before, float *c, float *h, int hidden,
                                                int batch, int t) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= hidden * batch) return;
    int b = i / hidden, j = i % hidden;
    const float *g = gates + (size_t)(t * batch + b) * 4 * hidden + j;
    float now = (g[hidden] + bias[hidden + j]) * (t ? before[i] : 0.f) + (g[0] + bias[j]) * (g[2 * hidden] + bias[2 * hidden + j]);
    c[i] = now;
    h[(size_t)t * batch * hidden + i] = (g[3 * hidden] + bias[3 * hidden + j]) * now;
}

extern "C" __global__ void back_8_8_8_8_4_4_4(const float *dh, const float *c, float *dgates, float *dc, int hidden, int batch, int t) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= hidden * batch) return;
    int b = i / hidden, j = i % hidden;
    float d = dh[(size_t)t * batch * hidden + i] * c[i] + dc[i];
    for (int k = 0; k < 4; k++) dgates[(size_t)(t * batch + b) * 4 * hidden + k * hidden + j] = d * (k + 1);
    dc[i] = d;
}

// A product whose sums are split over the grid's z, which takes turns by a lock for each tile.
extern "C" __global__ void gemm_8_8_8_8_4_4_4_4_4_4(const float *a, const float *b, float *c, int *lock, int m, int n, int k, int lda, int ldb,
                                                    int ldc) {
    __shared__ float sa[16][17], sb[16][17];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x, part = (k + gridDim.z - 1) / gridDim.z;
    float sum = 0;
    for (int at = blockIdx.z * part; at < min(k, (int)(blockIdx.z + 1) * part); at += 16) {
        sa[threadIdx.y][threadIdx.x] = row < m && at + threadIdx.x < k ? a[row * lda + at + threadIdx.x] : 0;
        sb[threadIdx.y][threadIdx.x] = col < n && at + threadIdx.y < k ? b[(at + threadIdx.y) * ldb + col] : 0;
        __syncthreads();
        for (int x = 0; x < 16; x++) sum += sa[threadIdx.y][x] * sb[x][threadIdx.x];
        __syncthreads();
    }
    int *own = lock + blockIdx.y * gridDim.x + blockIdx.x;
    if (threadIdx.x + threadIdx.y == 0)
        while (atomicCAS(own, blockIdx.z, -1) != (int)blockIdx.z) {}
    __threadfence();
    __syncthreads();
    if (row < m && col < n) c[row * ldc + col] = (blockIdx.z ? c[row * ldc + col] : 0) + sum;
    __threadfence();
    __syncthreads();
    if (threadIdx.x + threadIdx.y == 0) atomicExch(own, blockIdx.z + 1 == gridDim.z ? 0 : blockIdx.z + 1);
}

extern "C" __global__ void sum_8_8_4(const float *x, float *y, int n) {
    __shared__ float s[256];
    float own = 0;
    for (int i = threadIdx.x; i < n; i += 256) own += x[blockIdx.x * n + i];
    s[threadIdx.x] = own;
    __syncthreads();
    for (int w = 128; w; w /= 2) {
        if (threadIdx.x < w) s[threadIdx.x] += s[threadIdx.x + w];
        __syncthreads();
    }
    if (!threadIdx.x) y[blockIdx.x] = s[0];
}

extern "C" __global__ void scale_8_8_4_4(const float *x, float *y, int n, float by) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i] * by;
}

// A step of a CTC loss: what it reads is looked up.
extern "C" __global__ void alpha_8_8_8_4_4_4(const float *probs, const int *labels, float *alpha, int classes, int length, int t) {
    int states = 2 * length + 1;
    float *row = alpha + ((size_t)t * gridDim.x + blockIdx.x) * states, *before = row - gridDim.x * states;
    for (int s = threadIdx.x; s < states; s += blockDim.x) {
        int label = s & 1 ? labels[blockIdx.x * length + s / 2] : 0;
        float all = t ? before[s] + (s ? before[s - 1] : 0) : 1;
        row[s] = all * probs[(t * gridDim.x + blockIdx.x) * classes + label];
    }
}
