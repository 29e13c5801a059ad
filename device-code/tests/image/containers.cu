// One of everything that a container describes: parameters of all kinds, globals, constants, a jump table, shared memory.
#include <cstdio>
__constant__ int tab[16];
__device__ int counter;
__device__ float garr[100];
struct P { float *a; int n; };
struct Big { int x[2000]; };
struct Three { char c[3]; };

extern "C" __global__ void plain(float *a, int n, P p, char c)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = p.a[i] + tab[i & 15] + garr[i % 100];
    atomicAdd(&counter, 1);
    if (c) printf("%d\n", i);
}

extern "C" __global__ void jumps(int *o, int n)
{
    switch (n) {
    case 0: o[0] = 1; break;
    case 1: o[1] = 2; break;
    case 2: o[4] = n; break;
    case 3: o[2] = o[3]; break;
    case 4: o[5] = 7; break;
    case 5: o[1]++; break;
    case 6: o[9] = o[8] * 3; break;
    case 7: o[5] = o[2] - 8; break;
    }
}

extern "C" __global__ void big(Three s, Big b, int *o) { o[threadIdx.x] = b.x[threadIdx.x] + s.c[1]; }

extern "C" __global__ void __launch_bounds__(256) none()
{
    __shared__ int s[300];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (s[(threadIdx.x * 7) & 255] == -1) s[0] = 1;
}

__device__ __noinline__ int helper(int x) { return x * x + counter; }
extern "C" __global__ void callers(int *o) { o[threadIdx.x] = helper(o[threadIdx.x]) + helper(threadIdx.x); }

int main()
{
    plain<<<1, 1>>>(nullptr, 0, P(), 0);
    return 0;
}
