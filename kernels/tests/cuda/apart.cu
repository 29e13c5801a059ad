// Functions in sections of their own, as separate compilation leaves them: compiled with -rdc=true, and linked.
__device__ __noinline__ float deepest(const float *x, int i) { return x[i]; }

__device__ __noinline__ void middle(float *to, const float *from, int i) { to[2 * i] = deepest(from, i + 4); }

// Writes even elements of `to`, and `own`; reads `from` from its fifth element on.
extern "C" __global__ void apart(float *to, const float *from, float *own, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    middle(to, from, i);
    own[i] = 1;
}

typedef void (*Change)(float *, const float *, int);
__device__ Change table[2];

// The same with a function that is not known.
extern "C" __global__ void unknown(float *to, const float *from, float *own, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    own[i] = 1;
    table[n & 1](to, from, i);
}
