// A kernel that hands a pointer to a function that it finds in a table: what the function does is not followed by the
// analysis of kernels. Usage: passed_pointer write|read|other race|clean
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call)                                                                 \
    do {                                                                            \
        cudaError_t error = call;                                                   \
        if (error != cudaSuccess) {                                                 \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));          \
            return 1;                                                               \
        }                                                                           \
    } while (0)

const int n = 1 << 12;

__device__ __noinline__ void doubled(float *x, int i) { x[i] *= 2; }
__device__ __noinline__ void halved(float *x, int i) { x[i] /= 2; }
typedef void (*Change)(float *, int);
__device__ Change table[2] = {doubled, halved};

// `seen` is the kernel's own; `x` goes to the function.
__global__ void change(float *x, float *seen, int which) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    seen[i] = i;
    table[which & 1](x, i);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    bool waits = !strcmp(argv[2], "clean");
    float *x, *seen, *host;
    CHECK(cudaMalloc(&x, n * sizeof *x));
    CHECK(cudaMalloc(&seen, 2 * n * sizeof *seen));
    CHECK(cudaMallocHost(&host, n * sizeof *host));
    CHECK(cudaMemset(x, 0, n * sizeof *x));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t first, second;
    cudaEvent_t done;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    change<<<n / 256, 256, 0, first>>>(x, seen, argc);
    CHECK(cudaEventRecord(done, first));
    if (waits) CHECK(cudaStreamWaitEvent(second, done));
    if (!strcmp(argv[1], "write")) CHECK(cudaMemsetAsync(x, 0, n * sizeof *x, second));
    if (!strcmp(argv[1], "read")) CHECK(cudaMemcpyAsync(host, x, n * sizeof *x, cudaMemcpyDeviceToHost, second));
    // The half of `seen` that no kernel touches.
    if (!strcmp(argv[1], "other")) CHECK(cudaMemsetAsync(seen + n, 0, n * sizeof *seen, second));
    CHECK(cudaDeviceSynchronize());
    return 0;
}
