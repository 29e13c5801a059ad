// Addresses of quotients and remainders, and parameters looked up by the number of the block.

// A division by multiplication: q = (high(n * magic) + n) >> shift.
struct Divider {
    unsigned divisor, magic, shift;
};

__device__ static unsigned divide(Divider d, unsigned n) { return (__umulhi(n, d.magic) + n) >> d.shift; }

// Elements of a shape, two a thread; the input's pitches are others than the output's.
struct Shape3 {
    Divider size[3];
    unsigned pitch[3];
};

__device__ static unsigned offset(const Shape3 &s, unsigned i) {
    unsigned at = 0;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        unsigned q = divide(s.size[d], i);
        at += (i - q * s.size[d].divisor) * s.pitch[d];
        i = q;
    }
    return at;
}

extern "C" __global__ void k_permuted(float *out, const float *in, int n, Shape3 s) {
    int i = blockIdx.x * 2 * blockDim.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        if (i < n) out[i] = in[offset(s, i)];
        i += blockDim.x;
    }
}

// The divisors are known to the compiler.
extern "C" __global__ void k_rows(float *out, const float *in, int n, int pitch) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i / 100 * pitch + i % 100];
}

// By numbers that nobody knows before.
extern "C" __global__ void k_any_rows(float *out, const float *in, int n, unsigned width, int pitch) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i / width * pitch + i % width];
}

// A number that begins elsewhere, and another coordinate beside it.
extern "C" __global__ void k_shifted(float *out, int n, int pitch, int plane) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x + 30;
    if (i < n) out[i / 24 * pitch + i % 24 + blockIdx.y * plane] = 1;
}

// Only some columns, and data decides: bounds, but nothing that is surely touched.
extern "C" __global__ void k_some_columns(float *out, int n, int pitch, unsigned columns) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % 64 < columns) out[i / 64 * pitch + i % 64] = 1;
}

extern "C" __global__ void k_as_data_says(float *out, const int *flag, int n, int pitch) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && flag[i]) out[i / 64 * pitch + i % 64] = 1;
}

// Tensors in a table; which one a block works on, and on which chunk of it, is looked up.
struct Tensors {
    float *at[6];
    int size[6];
    unsigned char tensor[640];
    unsigned short chunk[640];
};

extern "C" __global__ void k_tensors(int chunk, Tensors t) {
    int which = t.tensor[blockIdx.x];
    int first = t.chunk[blockIdx.x] * chunk;
    int n = t.size[which] - first;
    float *p = t.at[which] + first;
    for (int i = threadIdx.x; i < n && i < chunk; i += blockDim.x) p[i] += 1;
}

// The tensor is the second coordinate of the block.
extern "C" __global__ void k_second(float *out, Tensors t, int row) {
    int which = blockIdx.y;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < t.size[which]; i += gridDim.x * blockDim.x)
        out[which * row + i] = t.at[which][i];
}
