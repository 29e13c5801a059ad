// expect: clean
// pair: cuMemcpyHtoDAsync on stream a / kernel saxpy on stream b
// needs: driver-api
// racy: race RAW
// why: The driver API alone, with PTX written by hand. b waits for an event of a; with `racy` it does not.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda.h>

#define CHECK(call) do { CUresult e_ = (call); if (e_ != CUDA_SUCCESS) { \
    const char *t_ = "?"; cuGetErrorString(e_, &t_); fprintf(stderr, "line %d: %s\n", __LINE__, t_); exit(1); } } while (0)

static const char *ptx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 launches = 0;
.visible .const .align 4 .f32 factor = 0f40000000;

.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .u32 n) {
    .reg .pred %p<2>;
    .reg .f32 %f<4>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<7>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ne.u32 %p1, %r5, 0;
    @%p1 bra SKIP;
    atom.global.add.u32 %r4, [launches], 1;
SKIP:
    setp.ge.s32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mul.wide.s32 %rd5, %r5, 4;
    add.s64 %rd3, %rd3, %rd5;
    add.s64 %rd4, %rd4, %rd5;
    ld.global.f32 %f1, [%rd3];
    ld.global.f32 %f2, [%rd4];
    ld.const.f32 %f3, [factor];
    fma.rn.f32 %f1, %f3, %f1, %f2;
    st.global.f32 [%rd4], %f1;
DONE:
    ret;
}
)";

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int n = 100000;
    CUdevice device;
    CUcontext ctx;
    CUmodule module;
    CUfunction saxpy;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&ctx, device));
    CHECK(cuCtxSetCurrent(ctx));
    char log[1024] = "";
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CHECK(cuModuleLoadDataEx(&module, ptx, 2, options, values));
    CHECK(cuModuleGetFunction(&saxpy, module, "saxpy"));
    CUdeviceptr launches, factor, x, y;
    size_t size;
    CHECK(cuModuleGetGlobal(&launches, &size, module, "launches"));
    CHECK(cuModuleGetGlobal(&factor, nullptr, module, "factor"));
    float *host, by = 3;
    CHECK(cuMemAllocHost((void **)&host, n * 4));
    CHECK(cuMemAlloc(&x, n * 4));
    CHECK(cuMemAlloc(&y, n * 4));
    CHECK(cuMemsetD32(y, 0x3f800000, n));
    CHECK(cuCtxSynchronize());
    for (int i = 0; i < n; i++) host[i] = i % 4096;
    CUstream a, b;
    CUevent ready;
    CHECK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&ready, CU_EVENT_DISABLE_TIMING));
    CHECK(cuMemcpyHtoDAsync(x, host, n * 4, a));
    CHECK(cuEventRecord(ready, a));
    if (!racy) CHECK(cuStreamWaitEvent(b, ready, 0));
    int count = n;
    void *args[] = {&x, &y, &count};
    CHECK(cuLaunchKernel(saxpy, (n + 127) / 128, 1, 1, 128, 1, 1, 0, b, args, nullptr));
    CHECK(cuMemcpyHtoDAsync(factor, &by, 4, b));
    // The same parameters once more, packed by hand.
    struct { CUdeviceptr x, y; int n; } packed = {x, y, n};
    size_t bytes = 20;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    CHECK(cuLaunchKernel(saxpy, (n + 255) / 256, 1, 1, 256, 1, 1, 0, b, nullptr, extra));
    CHECK(cuStreamSynchronize(a));
    CHECK(cuStreamSynchronize(b));
    unsigned counted;
    std::vector<float> out(n);
    CHECK(cuMemcpyDtoH(out.data(), y, n * 4));
    CHECK(cuMemcpyDtoH(&counted, launches, 4));
    int wrong = 0, threads;
    for (int i = 0; i < n; i++) wrong += out[i] != 5 * host[i] + 1;
    CHECK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, saxpy));
    CUfunction none;
    CUresult missing = cuModuleGetFunction(&none, module, "daxpy");
    const char *name;
    CHECK(cuGetErrorName(missing, &name));
    printf("%u launches, global of %zu bytes, up to %d threads, %s, %d wrong\n", counted, size, threads, name, wrong);
    CHECK(cuModuleUnload(module));
    CHECK(cuMemFree(x));
    CHECK(cuMemFree(y));
    CHECK(cuMemFreeHost(host));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return 0;
}
