// expect: clean
// pair: kernel fill / cudaMemcpyPeer
// needs: none
// why: One stream at a time. Whatever the machine has: queries are consistent, and copies between any two devices arrive.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void fill(int *x, int n, int v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i ^ v;
}

int main() {
    int count = 0, bad = 0;
    const int n = 10000;
    CHECK(cudaGetDeviceCount(&count));
    std::vector<int *> x(count);
    for (int d = 0; d < count; d++) {
        cudaDeviceProp prop;
        CHECK(cudaSetDevice(d));
        CHECK(cudaGetDeviceProperties(&prop, d));
        size_t free_, total;
        CHECK(cudaMemGetInfo(&free_, &total));
        int threads, warp, same = -1;
        char id[32];
        CHECK(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, d));
        CHECK(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, d));
        CHECK(cudaDeviceGetPCIBusId(id, sizeof id, d));
        CHECK(cudaDeviceGetByPCIBusId(&same, id));
        bad += prop.maxThreadsPerBlock != threads || prop.warpSize != warp || warp != 32 || free_ > total || same != d;
        bad += prop.major < 5 || prop.multiProcessorCount < 1 || !prop.unifiedAddressing || !prop.name[0];
        CHECK(cudaMalloc(&x[d], n * 4));
        fill<<<(n + 255) / 256, 256>>>(x[d], n, d + 1);
        CHECK(cudaDeviceSynchronize());
    }
    std::vector<int> host(n);
    for (int from = 0; from < count; from++)
        for (int to = 0; to < count; to++) {
            int *y, can = 0;
            CHECK(cudaSetDevice(to));
            CHECK(cudaMalloc(&y, n * 4));
            CHECK(cudaMemset(y, 0, n * 4));
            if (from != to) {
                CHECK(cudaDeviceCanAccessPeer(&can, to, from));
                if (can) CHECK(cudaDeviceEnablePeerAccess(from, 0));
            }
            CHECK(cudaMemcpyPeer(y, to, x[from], from, n * 4));
            CHECK(cudaMemcpyPeerAsync(y, to, x[from], from, n * 2, 0));
            CHECK(cudaDeviceSynchronize());
            CHECK(cudaMemcpy(host.data(), y, n * 4, cudaMemcpyDeviceToHost));
            for (int i = 0; i < n; i++) bad += host[i] != (i ^ (from + 1));
            cudaPointerAttributes kind;
            CHECK(cudaPointerGetAttributes(&kind, y));
            bad += kind.device != to;
            if (can) CHECK(cudaDeviceDisablePeerAccess(from));
            CHECK(cudaFree(y));
        }
    bad += cudaSetDevice(count) != cudaErrorInvalidDevice;
    int driver, runtime;
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    printf("devices %s, versions %s, %d wrong\n", count > 0 ? "found" : "none", driver >= runtime ? "fit" : "do not fit", bad);
    return 0;
}
