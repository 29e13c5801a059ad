// Accesses that an executed instruction makes only perhaps, and addresses behind work that nobody follows.
#include <cstdint>
#define K extern "C" __global__ void

__device__ unsigned place(float *s) { return (unsigned)__cvta_generic_to_shared(s); }

// Reads i < n only: cp.async ignores its source where the predicate holds.
K k_ignored(const float *in, float *out, int n) {
    __shared__ float s[32];
    int i = blockIdx.x * 32 + threadIdx.x;
    asm volatile("{ .reg .pred p; setp.ge.s32 p, %2, %3; cp.async.ca.shared.global [%0], [%1], 4, p; }"
                 ::"r"(place(&s[threadIdx.x])), "l"(in + i), "r"(i), "r"(n));
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    out[i] = s[31 - threadIdx.x];
}

// The same by the number of bytes that are read.
K k_sized(const float *in, float *out, int n) {
    __shared__ float s[32];
    int i = blockIdx.x * 32 + threadIdx.x, bytes = i < n ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place(&s[threadIdx.x])), "l"(in + i), "r"(bytes));
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    out[i] = s[31 - threadIdx.x];
}

// Perhaps nothing at all, by data.
K k_by_data(const float *in, const int *mask, float *out) {
    __shared__ float s[32];
    int i = blockIdx.x * 32 + threadIdx.x, ignore = mask[i];
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 4, p; }"
                 ::"r"(place(&s[threadIdx.x])), "l"(in + i), "r"(ignore));
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    out[i] = s[31 - threadIdx.x];
}

// Loads of the next stage, which the last turn of the loop must not make: the condition is carried through the loop.
K k_staged(const float *in, float *out, int turns, int step) {
    __shared__ float s[2][32];
    float sum = 0;
    bool more = turns > 0;
    for (int k = 0; k < turns; k++) {
        const float *next = in + (size_t)(k + 1) * step + threadIdx.x;
        more = more && k + 1 < turns;
        asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 4, p; }"
                     ::"r"(place(&s[k & 1][threadIdx.x])), "l"(next), "r"((int)more));
        asm volatile("cp.async.wait_all;");
        __syncthreads();
        sum += s[k & 1][31 - threadIdx.x];
    }
    out[threadIdx.x] = sum;
}

// Conditions made of products of products; the address is simple.
K k_heavy(unsigned char *out, int width, int height, int first) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = first + blockIdx.y;
    if (x >= width || y >= height) return;
    const int one = 1 << 24;
    int cr = (int)((long long)x * 3 * one / width) - 2 * one, ci = (int)((long long)y * 2 * one / height) - one;
    long long r = 0, i = 0;
    int n = 0;
    for (; n < 200; n++) {
        long long rr = r * r >> 24, ii = i * i >> 24;
        if (rr + ii > 4ll * one) break;
        i = (2 * r * i >> 24) + ci;
        r = rr - ii + cr;
    }
    out[y * width + x] = n;
}

struct Steps {
    float *p;
    int64_t ahead, back;
};

// Steps in bytes, which may lead back: 64-bit words that are no pointers.
K k_steps(Steps s, float *out) {
    char *p = (char *)s.p + s.ahead;
    float a = *(float *)(p + 4 * threadIdx.x);
    p += s.back;
    p += s.back;
    out[threadIdx.x] = a + *(float *)(p + 4 * threadIdx.x);
}
