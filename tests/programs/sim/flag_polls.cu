// Kernels that poll a flag: in memory that other processes may open (exported), or in memory of this process alone (private). The flag is
// set before they are launched.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void relaxed(const unsigned *flag, const unsigned *data, unsigned *out) {
    unsigned seen;
    do {
        asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory"); // the flag
    } while (seen == 0);
    *out = *data;
}
__global__ void narrow(const unsigned *flag, const unsigned *data, unsigned *out) {
    unsigned seen;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory"); // the narrow flag
    } while (seen == 0);
    *out = *data;
}
__global__ void fenced(const unsigned *flag, const unsigned *data, unsigned *out) {
    while (*(volatile const unsigned *)flag == 0) {}
    __threadfence_system();
    *out = *data;
}
__global__ void acquired(const unsigned *flag, const unsigned *data, unsigned *out) {
    unsigned seen;
    do {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    } while (seen == 0);
    *out = *data;
}

int main(int argc, char **argv) {
    unsigned *words, *out;
    CHECK(cudaMalloc(&words, 1 << 20));
    CHECK(cudaMalloc(&out, 1 << 20));
    CHECK(cudaMemset(words, 1, 1 << 20));
    CHECK(cudaDeviceSynchronize());
    if (!strcmp(argv[1], "exported")) {
        cudaIpcMemHandle_t handle;
        CHECK(cudaIpcGetMemHandle(&handle, words));
    }
    relaxed<<<1, 1>>>(words, words + 64, out);
    narrow<<<1, 1>>>(words, words + 64, out);
    fenced<<<1, 1>>>(words, words + 64, out);
    acquired<<<1, 1>>>(words, words + 64, out);
    CHECK(cudaDeviceSynchronize());
    puts("done");
    return 0;
}
