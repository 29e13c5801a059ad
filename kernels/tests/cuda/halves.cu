// Comparisons of 64-bit numbers, of which the compiler compares the words apart and sometimes with sides exchanged.
#include <cstdint>
#define K extern "C" __global__ void

K k_rows64(const float *in, float *out, int64_t m, int64_t n) {
    int64_t c = blockIdx.x * 32 + threadIdx.x;
    float s = 0;
    for (int64_t y = blockIdx.y * 64; y < m; y += 64 * gridDim.y) s += in[y * n + c];
    out[c] = s;
}

K k_guard64(float *out, int64_t m, int64_t lo) {
    int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (lo + c < m) out[lo + c] = 1;
    if (m <= lo) out[c] = 2;
}
