/* The work of doors.c with the driver linked directly (-lcuda). */
#include "common.h"

int main(void) {
    CUcontext context;
    CUmodule module;
    CUlibrary library;
    CUfunction function;
    CUkernel kernel;
    CUstream a, b;
    CUevent event;
    CUdeviceptr x, y;
    char host[256] = "host";
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, "image"));
    CHECK(cuModuleGetFunction(&function, module, "add_8_8_4"));
    CHECK(cuLibraryLoadData(&library, "image", 0, 0, 0, 0, 0, 0));
    CHECK(cuLibraryGetKernel(&kernel, library, "scale_8_4"));
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuEventCreate(&event, 0));
    CHECK(cuMemAlloc_v2(&x, 256));
    CHECK(cuMemAlloc_v2(&y, 256));
    CHECK(cuMemcpyHtoDAsync_v2(x, host, 256, a));
    unsigned n = 64;
    void *params[] = {&x, &y, &n};
    CHECK(cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, a, params, 0));
    CHECK(cuEventRecord(event, a));
    CHECK(cuStreamWaitEvent(b, event, 0));
    void *params2[] = {&y, &n};
    CHECK(cuLaunchKernel(kernel, 2, 1, 1, 32, 1, 1, 0, b, params2, 0));
    CHECK(cuMemsetD8Async(x, 0, 256, 0));
    CHECK(cuMemcpyDtoHAsync_v2(host, y, 256, b));
    CHECK(cuStreamSynchronize(b));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemFree_v2(x));
    CHECK(cuMemFree_v2(y));
    CHECK(cuEventDestroy_v2(event));
    CHECK(cuStreamDestroy_v2(a));
    puts("done");
    return 0;
}
