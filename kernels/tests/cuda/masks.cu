// Conditions put by in the bits of a word that a loop carries round, as kernels that copy tiles do; and factors that may be zero.
#define K extern "C" __global__ void

__device__ unsigned inside(int row, int rows) {
    unsigned mask = 0;
#pragma unroll
    for (int r = 0; r < 4; r++) mask |= unsigned(row + 16 * r < rows) << r;
    asm volatile("" : "+r"(mask));
    return mask;
}

#define LOAD(mask, k)                                                                                                            \
    _Pragma("unroll") for (int r = 0; r < 4; r++) if (mask >> r & 1) s += in[(row + 16 * r) * pitch + 8 * (k) + threadIdx.x % 8]

// 128 threads a block, 64 rows; `then` ends a turn.
#define TURNS(then)                                                                                                              \
    int row = blockIdx.x * 64 + threadIdx.x / 8;                                                                                 \
    unsigned mask = inside(row, rows);                                                                                           \
    float s = 0;                                                                                                                 \
    _Pragma("unroll 1") for (int k = 0; k < turns; k++) {                                                                        \
        LOAD(mask, k);                                                                                                           \
        then;                                                                                                                    \
    }                                                                                                                            \
    out[blockIdx.x * 128 + threadIdx.x] = s

// Nothing is left to load in the last turn.
K m_rows(const float *in, float *out, int rows, int pitch, int turns) {
    TURNS(if (k + 2 >= turns) mask = 0);
}

// Cleared in one turn, if that comes.
K m_once(const float *in, float *out, int rows, int pitch, int turns, int stop) {
    TURNS(if (k == stop) mask = 0);
}

// Set again: rows outside are read, too.
K m_again(const float *in, float *out, int rows, int pitch, int turns) {
    TURNS(if (k + 2 >= turns) mask = 15);
}

// The bits trade places: each row is read by what another one was asked.
K m_swapped(const float *in, float *out, int rows, int pitch, int turns) {
    TURNS(mask = mask >> 1 | (mask & 1) << 3);
}

K m_factor(const float *in, float *out, float factor) {
    int i = blockIdx.x * 128 + threadIdx.x;
    out[i] = factor != 0 ? factor * in[i] : 0;
}

K m_factor64(const double *in, double *out, double factor) {
    int i = blockIdx.x * 128 + threadIdx.x;
    out[i] = factor != 0 ? factor * in[i] : 0;
}
