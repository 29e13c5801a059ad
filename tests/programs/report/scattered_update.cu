// An update at loaded indices on one stream and a fill of the whole table on another, in no order:
// the bytes of the update are data, so the finding can not be certain, and the report says why.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                    \
    do {                                                               \
        cudaError_t error = call;                                      \
        if (error != cudaSuccess) {                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
            exit(1);                                                   \
        }                                                              \
    } while (0)

__global__ void update(float *table, const int *rows, const float *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int row = rows[i];
        table[row] = values[i];
    }
}

int main(int argc, char **) {
    const bool waits = argc > 1;
    const int n = 1024;
    float *table, *values;
    int *rows;
    CHECK(cudaMalloc(&table, 4 * n * sizeof(float)));
    CHECK(cudaMalloc(&values, n * sizeof(float)));
    CHECK(cudaMalloc(&rows, n * sizeof(int)));
    CHECK(cudaMemset(values, 0, n * sizeof(float)));
    CHECK(cudaMemset(rows, 0, n * sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t train, reset;
    CHECK(cudaStreamCreateWithFlags(&train, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&reset, cudaStreamNonBlocking));
    cudaEvent_t cleared;
    CHECK(cudaEventCreate(&cleared));
    CHECK(cudaMemsetAsync(table, 0, 4 * n * sizeof(float), reset));
    CHECK(cudaEventRecord(cleared, reset));
    if (waits) CHECK(cudaStreamWaitEvent(train, cleared, 0));
    update<<<n / 256, 256, 0, train>>>(table, rows, values, n);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
