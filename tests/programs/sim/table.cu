// Two streams that only read one table: right, whatever device it is built for. With `racy` one of
// them changes the table.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void look_up(const int *table, int *out) { out[threadIdx.x] = 3 * table[threadIdx.x]; }

__global__ void change(int *table, int *out) { out[threadIdx.x] = table[threadIdx.x]++; }

int main(int argc, char **) {
    int *table, *out[2];
    cudaStream_t streams[2];
    CHECK(cudaMalloc(&table, 1024));
    CHECK(cudaMemset(table, 1, 1024));
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMalloc(&out[i], 1024));
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    }
    CHECK(cudaDeviceSynchronize());
    look_up<<<1, 256, 0, streams[0]>>>(table, out[0]);
    if (argc > 1) change<<<1, 256, 0, streams[1]>>>(table, out[1]);
    else look_up<<<1, 256, 0, streams[1]>>>(table, out[1]);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    printf("sm_%d%d\n", device.major, device.minor);
    return 0;
}
