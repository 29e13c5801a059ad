// A copy from pageable memory on the default stream, and a kernel on a non-blocking stream right behind it.
//
//   pageable_copy [fixed | pinned | asynchronous]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void twice(const int *from, int *to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = 2 * from[i];
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    const int n = 1 << 14;
    const size_t bytes = n * sizeof(int);
    int *from = (int *)calloc(n, sizeof(int)), *in, *out;
    if (!strcmp(how, "pinned") || !strcmp(how, "asynchronous")) CHECK(cudaMallocHost(&from, bytes));
    memset(from, 0, bytes);
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&in, bytes));
    CHECK(cudaMalloc(&out, bytes));
    if (!strcmp(how, "asynchronous")) CHECK(cudaMemcpyAsync(in, from, bytes, cudaMemcpyHostToDevice));
    else CHECK(cudaMemcpy(in, from, bytes, cudaMemcpyHostToDevice));
    if (!strcmp(how, "fixed")) CHECK(cudaDeviceSynchronize());
    twice<<<n / 256, 256, 0, s>>>(in, out, n);
    CHECK(cudaDeviceSynchronize());
    printf("done\n");
}
