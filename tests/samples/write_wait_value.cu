// expect: clean
// pair: kernel fill on stream a / kernel add on stream b
// needs: driver-api
// racy: race RAW
// why: b waits for a value that a writes to memory behind its kernel. With `racy` it does not.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

#include <cuda.h>
#define DRIVER(call) do { CUresult e_ = (call); if (e_ != CUDA_SUCCESS) { \
    fprintf(stderr, "line %d: status %d\n", __LINE__, e_); exit(1); } } while (0)

__global__ void fill(int *x, int n, int v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i * v;
}

__global__ void add(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int n = 1 << 14;
    int *x, *y, *host;
    CUdeviceptr flag;
    CHECK(cudaMalloc(&x, n * 4));
    CHECK(cudaMalloc(&y, n * 4));
    CHECK(cudaMalloc((void **)&flag, 64));
    CHECK(cudaMallocHost(&host, n * 4));
    CHECK(cudaMemset(y, 0, n * 4));
    CHECK(cudaMemset((void *)flag, 0, 64));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t a, b;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    fill<<<n / 256, 256, 0, a>>>(x, n, 3);
    CHECK(cudaGetLastError());
    DRIVER(cuStreamWriteValue32(a, flag, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
    if (!racy) DRIVER(cuStreamWaitValue32(b, flag, 1, CU_STREAM_WAIT_VALUE_GEQ));
    add<<<n / 256, 256, 0, b>>>(x, y, n);
    CHECK(cudaGetLastError());
    // Both directions in one batch: a waits until b has written.
    CUstreamBatchMemOpParams both[2] = {};
    both[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    both[0].writeValue.address = flag + 8;
    both[0].writeValue.value64 = 0x100000002ull;
    both[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    both[1].writeValue.address = flag + 16;
    both[1].writeValue.value = 77;
    DRIVER(cuStreamBatchMemOp(b, 2, both, 0));
    DRIVER(cuStreamWaitValue64(a, flag + 8, 0x100000002ull, CU_STREAM_WAIT_VALUE_EQ));
    fill<<<n / 256, 256, 0, a>>>(x, n, 5);
    CHECK(cudaMemcpyAsync(host, y, n * 4, cudaMemcpyDeviceToHost, b));
    CHECK(cudaDeviceSynchronize());
    int wrong = 0, flags[5];
    for (int i = 0; i < n; i++) wrong += host[i] != 3 * i;
    CHECK(cudaMemcpy(flags, (void *)flag, sizeof flags, cudaMemcpyDeviceToHost));
    printf("flags %d %d %d %d, %d wrong\n", flags[0], flags[2], flags[3], flags[4], wrong);
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    CHECK(cudaFree((void *)flag));
    return 0;
}
