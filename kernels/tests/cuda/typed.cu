// Copies whose types the launch says, as PyTorch converts: a switch over a parameter at each load and at
// each store, whose default is an assertion. A thread copies four elements.
#include <cassert>

__device__ float load(const char *at, int type) {
    switch (type) {
    case 0: return *(const unsigned char *)at;
    case 1: return *(const short *)at;
    case 2: return (float)*(const int *)at;
    case 3: return *(const float *)at;
    case 4: return (float)*(const double *)at;
    default: assert(false);
    }
    return 0;
}

__device__ void store(char *at, float value, int type) {
    switch (type) {
    case 0: *(unsigned char *)at = value; break;
    case 1: *(short *)at = value; break;
    case 2: *(int *)at = value; break;
    case 3: *(float *)at = value; break;
    case 4: *(double *)at = value; break;
    default: assert(false);
    }
}

struct Types {
    int in, out, in_bytes, out_bytes;
};

__device__ void copy(char *to, const char *from, int n, Types t) {
    float kept[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        int at = blockIdx.x * 512 + k * 128 + threadIdx.x;
        if (at < n)
            kept[k] = load(from + at * t.in_bytes, t.in);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        int at = blockIdx.x * 512 + k * 128 + threadIdx.x;
        if (at < n)
            store(to + at * t.out_bytes, kept[k], t.out);
    }
}

extern "C" __global__ void typed(char *to, const char *from, int n, Types t, const int *kept) { copy(to, from, n, t); }

// Whether a thread comes to the stores is data.
extern "C" __global__ void told(char *to, const char *from, int n, Types t, const int *kept) {
    t.in = *kept;
    copy(to, from, n, t);
}

// In each turn of a loop data may end the turn before the switch.
extern "C" __global__ void turns(char *to, const char *from, int n, Types t, const int *kept) {
    for (int at = blockIdx.x * 128 + threadIdx.x; at < n; at += gridDim.x * 128) {
        if (kept[at % 7])
            continue;
        store(to + at * t.out_bytes, load(from + at * t.in_bytes, t.in), t.out);
    }
}
