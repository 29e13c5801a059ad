// A number that one thread hands to its block through a word of shared memory, as CUB's stores of a partial tile do, and forms
// in which that word may hold something else.
#define K extern "C" __global__ void

#define PART                                                                                                                     \
    __shared__ int valid;                                                                                                        \
    __shared__ float tile[128];                                                                                                  \
    int base = blockIdx.x * 128, i = threadIdx.x;                                                                                \
    tile[i] = i
#define STORE                                                                                                                    \
    __syncthreads();                                                                                                             \
    if (i < valid) out[base + i] = tile[127 - i]

K s_handed(float *out, const int *in, int n, int m) {
    PART;
    if (i == 0) valid = n - base;
    STORE;
}

// One of two numbers.
K s_either(float *out, const int *in, int n, int m) {
    PART;
    if (i == 0) valid = m < 0 ? n - base : m - base;
    STORE;
}

// Two stores to one word.
K s_again(float *out, const int *in, int n, int m) {
    PART;
    if (i == 0) valid = n - base;
    STORE;
    __syncthreads();
    if (i == 1) valid = m - base;
    STORE;
}

// Each warp stores another number.
K s_by_thread(float *out, const int *in, int n, int m) {
    PART;
    if (i % 32 == 0) valid = n - base + i;
    STORE;
}

// A number that was loaded.
K s_loaded(float *out, const int *in, int n, int m) {
    PART;
    if (i == 0) valid = in[blockIdx.x];
    STORE;
}

// A store whose place is data may hit the word.
K s_overwritten(float *out, const int *in, int n, int m) {
    __shared__ int words[128];
    int base = blockIdx.x * 128, i = threadIdx.x;
    if (i == 0) words[5] = n - base;
    __syncthreads();
    words[in[i]] = 128;
    __syncthreads();
    if (i < words[5]) out[base + i] = 1;
}

// The number grows while threads add to it.
K s_counted(float *out, const int *in, int n, int m) {
    PART;
    if (i == 0) valid = n - base;
    __syncthreads();
    if (in[i]) atomicAdd(&valid, 1);
    STORE;
}

// Another number in each turn.
K s_in_turns(float *out, const int *in, int n, int m) {
    PART;
#pragma unroll 1
    for (int turn = 0; turn < m; turn++) {
        __syncthreads();
        if (i == 0) valid = n - base + turn;
        STORE;
    }
}
