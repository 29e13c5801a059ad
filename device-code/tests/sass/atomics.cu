// Atomics and reductions: operations, types, spaces, scopes, with and without a result.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__device__ int counter; __device__ unsigned long long counter8; __device__ float fcounter;

template <class P> __device__ void ints(P *g, unsigned *o, int t)
{
    o[0] = atomicAdd(g + t, 3); o[1] = atomicSub(g + t, 1); o[2] = atomicExch(g + 1, t); o[3] = atomicMin(g + t, 4); o[4] = atomicMax(g + 2, t);
    o[5] = atomicAnd(g + t, 6); o[6] = atomicOr(g + 3, t); o[7] = atomicXor(g + t, t); o[8] = atomicCAS(g + t, 1, t);
    atomicAdd(g + 9, t); atomicMin(g + 10, t); atomicMax(g + t, 8); atomicAnd(g + 11, t); atomicOr(g + t, 1); atomicXor(g + t, 5); atomicExch(g + 12, t);
}
__global__ void signed32(int *g, unsigned *o) { ints(g, o + threadIdx.x * 9, threadIdx.x); }
__global__ void unsigned32(unsigned *g, unsigned *o) { ints(g, o + threadIdx.x * 9, threadIdx.x); o[10] = atomicInc(g + 1, 7); o[11] = atomicDec(g + threadIdx.x, 5); atomicInc(g, 3); atomicDec(g, 2); }
__global__ void wide64(unsigned long long *g, long long *s, unsigned long long *o, long long v)
{
    int t = threadIdx.x;
    o[0] = atomicAdd(g + t, v); o[1] = atomicExch(g + 1, v); o[2] = atomicMin(g + t, v); o[3] = atomicMax(g + t, v); o[4] = atomicAnd(g, v); o[5] = atomicOr(g, v); o[6] = atomicXor(g, v); o[7] = atomicCAS(g + t, 3ull, v);
    o[8] = atomicMin(s + t, v); o[9] = atomicMax(s + t, v); atomicMin(s, v); atomicMax(s + 1, v); atomicAdd(g, v); atomicMin(g, v); atomicOr(g + 9, v);
    atomicAdd(&counter8, v); o[10] = atomicAdd(&counter8, 1);
}
__global__ void floats(float *f, double *d, __half2 *h, __nv_bfloat162 *b, float *o, float v)
{
    int t = threadIdx.x;
    o[0] = atomicAdd(f + t, v); atomicAdd(f, v); o[1] = (float)atomicAdd(d + t, v); atomicAdd(d + 1, v); o[2] = atomicExch(f + 2, v);
    atomicAdd(h + t, __float2half2_rn(v)); o[3] = __low2float(atomicAdd(h, __float2half2_rn(v))); atomicAdd(&fcounter, v); atomicAdd((__half *)h + t, __float2half(v));
#if __CUDA_ARCH__ >= 800
    atomicAdd(b + t, __float2bfloat162_rn(v)); o[4] = __low2float(atomicAdd(b, __float2bfloat162_rn(v)));
#endif
#if __CUDA_ARCH__ >= 900
    float4 q = atomicAdd((float4 *)f + t, make_float4(v, v, v, v)); float2 p = atomicAdd((float2 *)f, make_float2(v, 1)); o[5] = q.x + q.y + p.x + p.y;
    atomicAdd((float4 *)f + t + 1, make_float4(v, v, v, v));
#endif
}
__global__ void in_shared(int *o, int n)
{
    __shared__ int s[64]; __shared__ unsigned long long w[8]; __shared__ float f[8]; __shared__ unsigned u[8];
    int t = threadIdx.x;
    s[t] = 0; w[t & 7] = t; f[t & 7] = t; u[t & 7] = 1;
    __syncthreads();
    o[0] = atomicAdd(s + t, n); atomicAdd(s + n, 1); o[1] = atomicMin(s + t, n); atomicMax(s, t); o[2] = atomicExch(s + t, n); o[3] = atomicCAS(s + t, n, t); o[4] = atomicXor(s + 3, t); atomicOr(s + 4, n); atomicAnd(s + t, n);
    o[5] = (int)atomicAdd(w + (t & 7), 3ull); atomicMax(w, 9ull); o[6] = (int)atomicCAS(w + 1, 3ull, (unsigned long long)n); o[7] = (int)atomicExch(w + 2, 5ull); atomicAdd(f + (t & 7), 1.0f); o[8] = (int)atomicAdd(f, 2.0f); o[9] = atomicInc(u + 1, 3); o[10] = atomicDec(u, 9);
    atomicAdd(s + 5, 1); atomicAdd(&counter, 1); o[11] = atomicAdd(&counter, 1);
    __syncthreads();
    o[t + 12] = s[t] + (int)w[t & 7] + (int)f[0] + u[1];
}
__device__ __noinline__ unsigned anywhere(unsigned *p, unsigned long long *w, float *f, int n) { atomicAdd(f, 1.0f); return atomicAdd(p, n) + atomicCAS(p + 1, n, 3) + atomicExch(p + 2, n) + (unsigned)atomicAdd(w, 1ull) + (unsigned)atomicCAS(w + 1, 1ull, 2ull) + atomicMax(p, n) + atomicMin((int *)p, n) + (unsigned)atomicAdd(f, 2.0f); }
__global__ void generics(unsigned *o, int n)
{
    __shared__ unsigned s[16]; __shared__ unsigned long long w[4];
    s[threadIdx.x & 15] = n; w[n & 3] = 1; __syncthreads();
    o[0] = anywhere(n & 1 ? s : o, n & 2 ? w : (unsigned long long *)o, n & 4 ? (float *)s : (float *)o, n);
}
__global__ void scopes(int *g, unsigned long long *w, int n)
{
    g[5] = atomicAdd_block(g, n) + atomicAdd_system(g + 1, n) + atomicCAS_system(g + 2, n, 1) + atomicExch_block(g + 3, n);
    atomicAdd_system(w, 3ull); atomicOr_block(g + 4, 1);
    int r;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1+16], %2;" : "=r"(r) : "l"(g), "r"(n) : "memory");
    asm volatile("red.release.sys.global.add.u32 [%0], %1;" :: "l"(g), "r"(r) : "memory");
    __threadfence(); __threadfence_block(); __threadfence_system();
#if __CUDA_ARCH__ >= 900
    asm volatile("{ .reg .b128 a, b, c; mov.b128 a, {%1, %1}; mov.b128 b, {%1, %1}; atom.global.cas.b128 c, [%0], a, b; atom.global.exch.b128 c, [%0], a; }" :: "l"(w), "l"((unsigned long long)n) : "memory");
#endif
}
