// Loads and stores of every width and space, constants, local arrays, generic pointers, cache hints.
#include <cstdint>
struct alignas(16) F4 { float x, y, z, w; };
struct alignas(8) F2 { float x, y; };
struct alignas(32) F8 { float v[8]; };
struct Params { float *p[4]; int n[4]; F4 f; char tail[13]; };
struct Large { int v[1000]; };

__constant__ int table[256];
__constant__ F4 vectors[16];
__constant__ unsigned char small_table[64];
__device__ int global_word;
__device__ float global_array[1024];
__device__ volatile int flag;
__device__ const char *names[3] = {"one", "two", "three"};

template <class T> __device__ void copy(T *o, const T *a, int i) { o[i + 1] = a[i]; o[i * 3] = a[i + 64]; }
#define COPY(T) __global__ void copy_##T(T *o, const T *a, const T *__restrict__ r, int n) { int i = threadIdx.x + blockIdx.x * blockDim.x; if (i < n) { copy<T>(o, a, i); o[i] = r[i]; } }
COPY(int8_t) COPY(uint8_t) COPY(int16_t) COPY(uint16_t) COPY(int32_t) COPY(int64_t) COPY(F2) COPY(F4) COPY(F8)

__global__ void hints(int *o, const int *a, F4 *v, long long pol)
{
    int i = threadIdx.x;
    o[i] = __ldg(a + i) + __ldcg(a + i + 1) + __ldca(a + i + 2) + __ldcs(a + i + 3) + __ldlu(a + i + 4) + __ldcv(a + i + 5);
    __stcg(o + i + 32, 1); __stcs(o + i + 64, 2); __stwt(o + i + 96, 3); __stwb(o + i + 128, 4);
    flag = o[3]; while (flag != 3) ;
    volatile int *vo = o; vo[i] = vo[i + 9];
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(i) : "l"(a) : "memory");
    asm volatile("st.release.sys.global.u32 [%0], %1;" :: "l"(o), "r"(i) : "memory");
    asm volatile("ld.relaxed.cta.u64 %0, [%1];" : "=l"(pol) : "l"(v) : "memory");
    asm volatile("prefetch.global.L2 [%0]; prefetch.global.L1 [%1]; prefetchu.L1 [%0];" :: "l"(a), "l"(o));
#if __CUDA_ARCH__ >= 800
    asm volatile("discard.global.L2 [%0], 128;" :: "l"(o));
#endif
    o[7] = (int)pol + i;
}

__global__ void constants(float *o, Params p, int i, Large l)
{
    int t = threadIdx.x;
    o[t] = p.p[t & 3][p.n[i & 3]] + p.f.y + table[t] + table[i] + table[7] + vectors[t & 15].z + vectors[i].x + small_table[t] + small_table[i & 63] + p.tail[i];
    o[t + 1] = l.v[t] + l.v[i] + l.v[3] + global_array[t] + global_array[i] + global_word;
    global_word = t; global_array[t + 5] = o[t];
    const char *s = names[i % 3]; o[t + 2] = s[t & 1];
}

__global__ void shared(float *o, const float *a, int n)
{
    __shared__ float tile[32][33]; __shared__ F4 quads[64]; __shared__ char bytes[100]; __shared__ double d[16]; __shared__ short sh[64];
    extern __shared__ int dyn[];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = a[y * n + x]; quads[x] = ((const F4 *)a)[x]; bytes[x * 3] = (char)n; d[x & 15] = a[x]; sh[x] = n; dyn[x + n] = x; dyn[n] = 3;
    __syncthreads();
    o[x * n + y] = tile[x][y] + quads[y].z + bytes[y] + (float)d[y & 15] + sh[y * 2] + dyn[y] + dyn[n + 1];
    ((F4 *)o)[x] = quads[x ^ 1]; ((F2 *)o)[x + 99] = ((F2 *)quads)[x + 3];
    volatile float *v = &tile[0][0]; v[x] += v[x + 16];
}

__global__ void locals(int *o, const int *a, int n)
{
    int buf[64]; char c[40]; long long w[8]; F4 q[4];
    for (int i = 0; i < 64; i++) buf[i] = a[i * n];
    for (int i = 0; i < 40; i++) c[i] = (char)a[i];
    for (int i = 0; i < 8; i++) w[i] = a[i] * (long long)n;
    for (int i = 0; i < 4; i++) q[i] = ((const F4 *)a)[i + n];
    int t = threadIdx.x;
    buf[t & 63] += c[n % 40] + (int)w[t & 7]; c[t % 40] = 3; w[n & 7] = t; q[t & 3].y = 1;
    int *ptr = n > 5 ? buf : o;
    ptr[t & 31] = 77;
    o[t] = buf[n & 63] + c[t % 40] + (int)w[n & 7] + (int)q[n & 3].z + ptr[3];
}

__device__ __noinline__ int generic(int *p, short *h, F4 *q, char *c, int i) { p[i] = p[i + 1] + h[i]; h[i + 2] = (short)p[3]; q[i] = q[i + 1]; c[i] = c[i + 9]; ((long long *)q)[i] = *(long long *)p; return p[0]; }
__global__ void generics(int *o, int n)
{
    __shared__ int s[128]; __shared__ F4 q[16]; int l[32]; char c[32];
    for (int i = 0; i < 32; i++) { l[i] = o[i]; c[i] = (char)o[i + 32]; }
    s[threadIdx.x] = n;
    __syncthreads();
    int *p = n > 3 ? s : n > 2 ? l : o;
    o[threadIdx.x] = generic(p, (short *)(n & 1 ? s : o), n & 2 ? q : (F4 *)o, n & 4 ? c : (char *)s, n & 15);
    o[1] = __isGlobal(p) + 2 * __isShared(p) + 4 * __isLocal(p) + 8 * __isConstant(p);
}

#if __CUDA_ARCH__ >= 1000
__global__ void wide256(F8 *o, const F8 *a, int n)
{
    int i = threadIdx.x; float r[8];
    asm volatile("ld.global.v8.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8+64];" : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]), "=f"(r[7]) : "l"(a + i));
    asm volatile("st.global.v8.f32 [%8+-32], {%0,%1,%2,%3,%4,%5,%6,%7};" :: "f"(r[0]), "f"(r[1]), "f"(r[2]), "f"(r[3]), "f"(r[4]), "f"(r[5]), "f"(r[6]), "f"(r[7]), "l"(o + i * n) : "memory");
}
#endif

__global__ void __launch_bounds__(1024) spills(float *o, const float *a, int n)
{
    float v[120];
#pragma unroll
    for (int i = 0; i < 120; i++) v[i] = a[i * n];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 120; i++) o[i * n] = v[i] * v[(i * 7) % 120];
}
