// A fill, a kernel and a copy of the same bytes, on three streams that do not wait for each other;
// with `ordered` on one stream.

#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call) \
    do { if ((call) != cudaSuccess) exit(1); } while (0)

__global__ void add(int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1;
}

int main(int argc, char **argv) {
    const int n = 1 << 10;
    bool ordered = argc > 1 && !strcmp(argv[1], "ordered");
    int *x, *host;
    cudaStream_t streams[3];
    CHECK(cudaMalloc(&x, n * sizeof(int)));
    CHECK(cudaMallocHost(&host, n * sizeof(int)));
    for (cudaStream_t &stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMemsetAsync(x, 0, n * sizeof(int), streams[0]));
    add<<<n / 256, 256, 0, streams[ordered ? 0 : 1]>>>(x, n);
    CHECK(cudaMemcpyAsync(host, x, n * sizeof(int), cudaMemcpyDeviceToHost, streams[ordered ? 0 : 2]));
    CHECK(cudaDeviceSynchronize());
    return 0;
}
