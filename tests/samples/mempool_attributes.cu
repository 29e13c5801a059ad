// expect: clean
// pair: cudaMallocFromPoolAsync / kernel fill
// needs: none
// why: One stream; an explicit pool and what it says of itself.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void fill(unsigned char *x, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) x[i] = i;
}

static unsigned long long ask(cudaMemPool_t pool, cudaMemPoolAttr what) {
    unsigned long long value = 0;
    CHECK(cudaMemPoolGetAttribute(pool, what, &value));
    return value;
}

int main() {
    cudaMemPool_t pool, current;
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.handleTypes = cudaMemHandleTypeNone;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = 0;
    CHECK(cudaMemPoolCreate(&pool, &props));
    CHECK(cudaDeviceSetMemPool(0, pool));
    CHECK(cudaDeviceGetMemPool(&current, 0));
    cudaStream_t s;
    CHECK(cudaStreamCreate(&s));
    unsigned long long keep = 64 << 20;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    int follow = 0, follows = 1;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &follow));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &follows));
    const size_t size = 1 << 20;
    unsigned char *x, *y, last;
    CHECK(cudaMallocAsync(&x, size, s));
    CHECK(cudaMallocFromPoolAsync(&y, size, pool, s));
    fill<<<size / 256, 256, 0, s>>>(x, size);
    fill<<<size / 256, 256, 0, s>>>(y, size);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(&last, y + size - 1, 1, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    unsigned long long used = ask(pool, cudaMemPoolAttrUsedMemCurrent), high = ask(pool, cudaMemPoolAttrUsedMemHigh);
    bool reserved = ask(pool, cudaMemPoolAttrReservedMemCurrent) >= used;
    CHECK(cudaFreeAsync(x, s));
    CHECK(cudaFreeAsync(y, s));
    CHECK(cudaStreamSynchronize(s));
    unsigned long long left = ask(pool, cudaMemPoolAttrUsedMemCurrent), zero = 0;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
    CHECK(cudaMemPoolTrimTo(pool, 0));
    cudaMemAccessFlags access;
    cudaMemLocation where = props.location;
    CHECK(cudaMemPoolGetAccess(&access, pool, &where));
    printf("current %d, follow %d, used %llu, high %llu, reserved %d, last %d, left %llu, high then %llu, trimmed to %llu, access %d\n",
           current == pool, follows, used, high, reserved, last, left, ask(pool, cudaMemPoolAttrUsedMemHigh),
           ask(pool, cudaMemPoolAttrReservedMemCurrent), access == cudaMemAccessFlagsProtReadWrite);
    CHECK(cudaStreamDestroy(s));
    CHECK(cudaMemPoolDestroy(pool));
    return 0;
}
