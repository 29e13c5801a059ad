// Control flow: switches, indirect and recursive calls, virtual functions, divisions that call, traps, driver calls.
#include <cstdio>
#include <cassert>
__device__ __noinline__ int add(int a, int b) { return a * 3 + b; }
__device__ __noinline__ int sub(int a, int b) { return a - b * 5; }
__device__ __noinline__ int fact(int n) { return n <= 1 ? 1 : n * fact(n - 1) + add(n, 2); }
typedef int (*Fn)(int, int);
__device__ Fn fns[2] = {add, sub};
struct Base { __device__ virtual int f(int) { return 1; } __device__ virtual ~Base() {} };
struct D1 : Base { int k; __device__ int f(int x) override { return x * k; } };
struct D2 : Base { __device__ int f(int x) override { return x - 2; } };
__global__ void switches(int *o, const int *a, int n)
{
    int t = threadIdx.x;
    switch (a[t]) { case 0: o[t] = 1; break; case 1: o[t + 1] = 2; break; case 2: o[t] = a[3]; break; case 3: o[9] = t; [[fallthrough]]; case 4: o[t] *= 5; break; case 5: __syncthreads(); break; case 6: o[7] = n / t; break; case 7: return; case 8: o[t] = a[n]; break; default: o[t] = -1; }
    switch (n) { case 10: o[1] = 2; break; case 11: o[2] = 3; break; case 12: o[3] = a[4]; break; case 13: o[4] = n * n; break; case 14: o[t] = 1; break; case 15: o[8] = a[t + 9]; break; case 16: o[6] = 2; break; case 17: o[5] = 4; break; }
}
__global__ void calls(int *o, int n) { o[0] = fns[n](n, 3) + fact(n) + add(n, o[1]) + sub(o[2], n); Fn f = threadIdx.x & 1 ? add : sub; o[3] = f(n, 7); }
__global__ void virtuals(int *o, int n) { D1 d1; d1.k = n; D2 d2; Base *b = n > threadIdx.x ? (Base *)&d1 : (Base *)&d2; o[0] = b->f(n); Base *h = n > 3 ? (Base *)new D1 : (Base *)new D2; o[1] = h->f(3); delete h; }
__global__ void divisions(long long *o, unsigned long long u, long long s, double d, float f, int n) { int t = threadIdx.x; o[0] = u / (unsigned long long)o[t]; o[1] = s % o[t + 1]; o[2] = (long long)(d / o[3]); o[4] = (long long)(f / (float)o[5]); o[6] = (long long)sqrt(d) + (long long)sqrtf(f) + (long long)(1.0 / d) + (long long)rsqrt(d); o[7] = n / (int)o[8] + (unsigned)n % (unsigned)o[9] + t / n + t % n; }
__global__ void errors(int *o, int n) { assert(n > 3); if (n == 5) __trap(); if (n == 6) asm volatile("brkpt;"); if (o[n] == 7) { printf("%d %s\n", n, "text"); asm volatile("exit;"); } void *p = malloc(n); *(int *)p = 3; free(p); o[threadIdx.x] = n; __prof_trigger(1); }
__global__ void loops(float *o, const float *a, int n, int m)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) { float s = 0; for (int j = 0; j < m; j++) { if (a[j] < 0) continue; if (a[j] > 100) break; s += a[i * m + j]; } o[i] = s; }
    int k = n; while (k > 0) { k >>= 1; if (threadIdx.x < k) o[threadIdx.x] += o[threadIdx.x + k]; __syncthreads(); }
    do { if (o[k] > 3) { for (int q = 0; q < 5; q++) if (__any_sync(__activemask(), o[q] > 1)) o[q + k] = 2; } k++; } while (k < m);
}
__global__ void __launch_bounds__(128, 2) bounded(int *o) { asm volatile("bar.sync 1, 64; bar.arrive 2, 96; barrier.sync 3;"); int p; asm volatile("{ .reg .pred q, r; setp.gt.s32 q, %1, 0; bar.red.popc.u32 %0, 0, q; }" : "=r"(p) : "r"(o[1])); o[threadIdx.x] = p; }
__global__ void recursive_tree(int *o, int n) { if (n > 0) { o[n] = fact(n); if (o[n] & 1) o[0] = fact(n - 1) + fact(n - 2); } }
