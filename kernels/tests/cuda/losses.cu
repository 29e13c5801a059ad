// Kernels whose accesses are not exact, each for another reason, and one that is.

extern "C" __global__ void scatter(float *out, const int *rows, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[rows[i]] = 1.0f;
}

extern "C" __global__ void masked(float *out, const unsigned char *mask, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && mask[i]) out[i] = 1.0f;
}

extern "C" __global__ void ragged(float *out, const int *lengths) {
    int length = lengths[blockIdx.x];
#pragma unroll 1
    for (int i = 0; i < length; i++) out[1000 * blockIdx.x + i] = 1.0f;
}

extern "C" __global__ void plain(float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 1.0f;
}
