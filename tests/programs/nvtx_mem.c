/* A pool of the program's own, annotated with NVTX's memory extension (the real header): it hands the same bytes out twice.
 *
 *   nvtx_mem racy      the second life is used on another stream while the first one's use may still run
 *   nvtx_mem waited    the same with an event between the two
 *   nvtx_mem apart     both lives at once, side by side: other bytes
 *   nvtx_mem reset     the first life ends with the whole heap (racy)
 *   nvtx_mem resized   one life, which grows; the added bytes are filled on another stream (clean), then the old ones too (racy) */
#include "common.h"

#include <nvtx3/nvToolsExtMem.h>

enum { SIZE = 4096 };

static nvtxDomainHandle_t domain;
static nvtxMemHeapHandle_t heap;

static nvtxMemRegionHandle_t take(CUdeviceptr at, size_t size, const char *name) {
    nvtxMemVirtualRangeDesc_t range = {size, (void const *)at};
    nvtxMemRegionHandle_t handle = 0;
    nvtxMemRegionsRegisterBatch_t batch = {NVTX_EXT_COMPATID_MEM, sizeof batch, NVTX_MEM_TYPE_VIRTUAL_ADDRESS, heap, 1, sizeof range, &range, &handle};
    nvtxMemRegionsRegister(domain, &batch);
    nvtxMemRegionNameDesc_t one = {NVTX_MEM_REGION_REF_TYPE_HANDLE, NVTX_MESSAGE_TYPE_ASCII, {.handle = handle}, {.ascii = name}, 0, 0};
    nvtxMemRegionsNameBatch_t names = {NVTX_EXT_COMPATID_MEM, sizeof names, 0, 1, sizeof one, &one, 0};
    if (name) nvtxMemRegionsName(domain, &names);
    return handle;
}

static void give_back(nvtxMemRegionHandle_t handle) {
    nvtxMemRegionRef_t region = {.handle = handle};
    nvtxMemRegionsUnregisterBatch_t batch = {NVTX_EXT_COMPATID_MEM, sizeof batch, NVTX_MEM_REGION_REF_TYPE_HANDLE, 1, sizeof region, &region};
    nvtxMemRegionsUnregister(domain, &batch);
}

static void resize(CUdeviceptr at, size_t size) {
    nvtxMemVirtualRangeDesc_t range = {size, (void const *)at};
    nvtxMemRegionsResizeBatch_t batch = {NVTX_EXT_COMPATID_MEM, sizeof batch, NVTX_MEM_TYPE_VIRTUAL_ADDRESS, 1, sizeof range, &range};
    nvtxMemRegionsResize(domain, &batch);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "racy";
    int waited = !strcmp(how, "waited"), apart = !strcmp(how, "apart"), reset = !strcmp(how, "reset"), resized = !strcmp(how, "resized");
    attach();
    CUstream a, b;
    CUevent done;
    CUdeviceptr pool;
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuEventCreate(&done, 2));
    CHECK(cuMemAlloc_v2(&pool, 1 << 20));
    domain = nvtxDomainCreateA("pool");
    nvtxMemVirtualRangeDesc_t whole = {1 << 20, (void const *)pool};
    nvtxMemHeapDesc_t desc = {NVTX_EXT_COMPATID_MEM, sizeof desc, 0, NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR, NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                              sizeof whole, &whole, 0, NVTX_MESSAGE_TYPE_ASCII, {.ascii = "arena"}};
    heap = nvtxMemHeapRegister(domain, &desc);

    nvtxMemRegionHandle_t first = take(pool + SIZE, SIZE, "activations");
    CHECK(cuMemsetD8Async(pool + SIZE, 1, SIZE, a));
    if (resized) {
        resize(pool + SIZE, 2 * SIZE);
        CHECK(cuMemsetD8Async(pool + 2 * SIZE, 2, SIZE, b));
        CHECK(cuMemsetD8Async(pool + SIZE, 2, 16, b));
    } else {
        if (reset) nvtxMemHeapReset(domain, heap);
        else if (!apart) give_back(first);
        if (waited) {
            CHECK(cuEventRecord(done, a));
            CHECK(cuStreamWaitEvent(b, done, 0));
        }
        CUdeviceptr at = apart ? pool + 2 * SIZE : pool + SIZE;
        nvtxMemRegionHandle_t second = take(at, SIZE / 2, reset ? 0 : "gradients");
        CHECK(cuMemsetD8Async(at, 2, SIZE / 2, b));
        if (apart) give_back(first);
        give_back(second);
    }
    CHECK(cuCtxSynchronize());
    nvtxMemHeapUnregister(domain, heap);
    CHECK(cuMemFree_v2(pool));
    printf("done\n");
    return 0;
}
