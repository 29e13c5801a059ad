// Two kernels on two streams that nothing orders write two fields each of 100,000 structures, in the
// order of an array of indices: fields of their own, or one in common.
//
//   fields SIZE FIRST SECOND race|clean      the offsets of the first kernel's fields
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

static const int N = 100000;

__global__ void number(int *order) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) order[i] = int((i * 7919ll) % N);
}

__global__ void set(char *all, const int *order, int size, int first, int second) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    char *one = all + size_t(order[i]) * size;
    *(float *)(one + first) = 1;
    *(float *)(one + second) = 2;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int size = atoi(argv[1]), first = atoi(argv[2]), second = atoi(argv[3]), *order;
    int own = first + 4, other = strcmp(argv[4], "race") ? second + 4 : second;
    char *all;
    cudaStream_t a, b;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&all, size_t(N) * size));
    CHECK(cudaMalloc(&order, N * sizeof(int)));
    number<<<(N + 255) / 256, 256>>>(order);
    CHECK(cudaDeviceSynchronize());
    set<<<(N + 255) / 256, 256, 0, a>>>(all, order, size, first, second);
    set<<<(N + 255) / 256, 256, 0, b>>>(all, order, size, own, other);
    CHECK(cudaDeviceSynchronize());
    puts("done");
    return 0;
}
