// Two launches by one helper that race, because a wait by another helper is the wrong way round
// (`waits`: the right way).
#include <cstdlib>
#include <cstring>
#include "helpers.h"

__global__ void fill(float *to, float value) { to[blockIdx.x * blockDim.x + threadIdx.x] = value; }

static __attribute__((noinline)) cudaStream_t stream() {
    cudaStream_t made;
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    return made;
}

static __attribute__((noinline)) void filled(float *to, float value, cudaStream_t on) {
    fill<<<16, 256, 0, on>>>(to, value);
    check(cudaGetLastError());
}

int main(int argc, char **argv) {
    float *x;
    check(cudaMalloc(&x, 4096 * sizeof(float)));
    cudaStream_t a = stream();
    cudaStream_t b = stream();
    filled(x, 1, a);
    if (argc > 1 && strcmp(argv[1], "waits") == 0)
        after(a, b);
    else
        after(b, a);
    filled(x, 2, b);
    check(cudaDeviceSynchronize());
    return 0;
}
