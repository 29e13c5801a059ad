// expect: clean
// pair: kernel fill on stream a / kernel sum on stream b
// needs: driver-api
// racy: race RAW
// why: Physical pieces mapped side by side into reserved addresses; b reads what a wrote across the seam, behind an event or (`racy`) not.
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

__global__ void fill(unsigned *x, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x) x[i] = i % 1000;
}

__global__ void sum(const unsigned *x, size_t n, unsigned long long *out) {
    unsigned long long mine = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x) mine += x[i];
    atomicAdd(out, mine);
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    CHECK(cudaSetDevice(0));
    CHECK(cudaFree(0));
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    size_t piece;
    DRIVER(cuMemGetAllocationGranularity(&piece, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUdeviceptr base;
    CUmemGenericAllocationHandle pieces[2];
    DRIVER(cuMemAddressReserve(&base, 2 * piece, 0, 0, 0));
    for (int i = 0; i < 2; i++) {
        DRIVER(cuMemCreate(&pieces[i], piece, &prop, 0));
        DRIVER(cuMemMap(base + i * piece, piece, 0, pieces[i], 0));
    }
    CUmemAccessDesc access = {};
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DRIVER(cuMemSetAccess(base, 2 * piece, &access, 1));
    // The 64 Ki numbers around the seam.
    const size_t n = 1 << 16;
    unsigned *x = (unsigned *)(base + piece) - n / 2;
    unsigned long long *total, got, want = 0;
    CHECK(cudaMalloc(&total, 8));
    CHECK(cudaMemset(total, 0, 8));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t a, b;
    cudaEvent_t filled;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    fill<<<64, 256, 0, a>>>(x, n);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(filled, a));
    if (!racy) CHECK(cudaStreamWaitEvent(b, filled, 0));
    sum<<<32, 256, 0, b>>>(x, n, total);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&got, total, 8, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < n; i++) want += i % 1000;
    unsigned first, last;
    CHECK(cudaMemcpy(&first, x + 1, 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&last, x + n - 1, 4, cudaMemcpyDeviceToHost));
    printf("sum %llu, %s, ends %u %u, whole pages %d\n", got, got == want ? "right" : "wrong", first, last, piece % 4096 == 0);
    DRIVER(cuMemUnmap(base, 2 * piece));
    for (auto handle : pieces) DRIVER(cuMemRelease(handle));
    DRIVER(cuMemAddressFree(base, 2 * piece));
    CHECK(cudaFree(total));
    return 0;
}
