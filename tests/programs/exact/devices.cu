// On every device, two streams that nothing orders scatter into one table by indices in memory: the first into its even elements, the second into
// odd ones. With `race` the last device's second stream shares an element with the first; with `peer` a stream of the first device writes such an
// element of the last one (the only one, where there is only one).
// Usage: devices race|peer|clean
#include <cstdio>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s: %s\n", #call, cudaGetErrorString(e)); return 1; } } while (0)

__global__ void scatter(float *to, const int *at, int n, float value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[at[i]] = value;
}

int main(int argc, char **argv) {
    const bool race = argc > 1 && !strcmp(argv[1], "race"), peer = argc > 1 && !strcmp(argv[1], "peer");
    const int n = 1000;
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices));
    std::vector<float *> table(devices);
    for (int d = 0; d < devices; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaMalloc(&table[d], (2 * n + 1) * sizeof(float)));
        CHECK(cudaMemset(table[d], 0, (2 * n + 1) * sizeof(float)));
    }
    std::vector<cudaStream_t> used;
    for (int d = 0; d < devices; d++) {
        const bool last = d == devices - 1;
        CHECK(cudaSetDevice(d));
        std::vector<int> even(n), odd(n);
        for (int i = 0; i < n; i++) even[i] = 2 * i, odd[i] = 2 * i + 1;
        if (race && last) odd[17] = even[400];
        int *at[2];
        for (int k = 0; k < 2; k++) {
            cudaStream_t stream;
            CHECK(cudaMalloc(&at[k], n * sizeof(int)));
            CHECK(cudaMemcpy(at[k], (k ? odd : even).data(), n * sizeof(int), cudaMemcpyHostToDevice));
            CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            CHECK(cudaDeviceSynchronize());
            used.push_back(stream);
        }
        for (int k = 0; k < 2; k++) scatter<<<(n + 255) / 256, 256, 0, used[2 * d + k]>>>(table[d], at[k], n, 1);
    }
    if (peer) {
        int can = devices == 1;
        CHECK(cudaSetDevice(0));
        if (devices > 1) {
            CHECK(cudaDeviceCanAccessPeer(&can, 0, devices - 1));
            if (can) CHECK(cudaDeviceEnablePeerAccess(devices - 1, 0));
        }
        const int element = 800;
        int *at;
        cudaStream_t stream;
        CHECK(cudaMalloc(&at, sizeof(int)));
        CHECK(cudaMemcpy(at, &element, sizeof(int), cudaMemcpyHostToDevice));
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        if (can) scatter<<<1, 1, 0, stream>>>(table[devices - 1], at, 1, 1);
        else puts("no peer access");
    }
    for (int d = 0; d < devices; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaDeviceSynchronize());
        std::vector<float> got(2 * n + 1);
        CHECK(cudaMemcpy(got.data(), table[d], got.size() * sizeof(float), cudaMemcpyDeviceToHost));
        float sum = 0;
        for (float f : got) sum += f;
        if (sum != 2 * n - (race && d == devices - 1)) return printf("WRONG %d: %f\n", d, sum), 1;
    }
    puts("right");
    return 0;
}
