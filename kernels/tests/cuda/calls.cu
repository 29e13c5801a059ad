// Calls of functions that are known by name, between accesses whose addresses were computed before.
#include <cassert>
#include <cstdio>

extern "C" __global__ void printing(int *p, int *q, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    p[i] = i;
    if (i == 77) printf("%d of %d\n", i, n);
    q[i + 4] = p[i];
}

extern "C" __global__ void allocating(int *p, int *q, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int *own = (int *)malloc(16);
    if (own) own[i & 3] = i;
    q[i] = own ? own[0] : 0;
    free(own);
    if (i < n) p[i] = 1;
}

extern "C" __global__ void checking(int *p, int *q, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(n > 0);
    p[i] = i;
    assert(n < 1000);
    q[i] = i;
}

// What a call returns is no address that is known.
extern "C" __global__ void returned(int *p, int *q, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    p[i] = printf("%d\n", i);
    q[p[i]] = 1;
}
