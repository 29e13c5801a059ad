// Accesses through tables of pointers, and such that only look like it.
struct Part { float *data; int n; int pad; };

extern "C" __global__ void rows(float *const *rows, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) rows[blockIdx.y][i] = 1.0f;
}

extern "C" __global__ void rows_read(const float *const *rows, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    if (i < n) {
        for (int k = 0; k < 5; k++) s += rows[k][i];
        out[i] = s;
    }
}

extern "C" __global__ void batch(Part *parts, int n) {
    Part *p = parts + blockIdx.z;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p->data[2 * i] = 0.0f;
}

extern "C" __global__ void one(Part *part, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) part->data[i] += 1.0f;
}

// The rest must not be followed: the index is data, only some entries may be used, the table is behind a table.
extern "C" __global__ void by_index(float *const *rows, const int *which, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) rows[which[blockIdx.y]][i] = 1.0f;
}

extern "C" __global__ void some(float *const *rows, const int *wanted, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && wanted[blockIdx.y]) rows[blockIdx.y][i] = 1.0f;
}

extern "C" __global__ void nested(float *const *const *tables, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) tables[0][blockIdx.y][i] = 1.0f;
}

extern "C" __global__ void not_null(float *const *rows, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float *r = rows[blockIdx.y];
    if (r && i < n) r[i] = 1.0f;
}

// The index and the offset go together: each row gets one part of the bytes only.
extern "C" __global__ void diagonal(float *const *rows, int n) {
    int y = blockIdx.y;
    if (threadIdx.x < n) rows[y][y * n + threadIdx.x] = 1.0f;
}

extern "C" __global__ void last_used(float *const *rows, const int *stop, int n) {
    float *r = rows[0];
    for (int k = 0; k < 8; k++) {
        r = rows[k];
        if (stop[k]) break;
    }
    if (threadIdx.x < n) r[threadIdx.x] = 1.0f;
}
