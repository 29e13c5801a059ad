// expect: clean
// pair: kernel first / kernel second
// needs: driver-api
// why: One stream. Two texts of PTX linked to one module; a library with kernels, launched by its own handles and by cuLaunchKernelEx.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda.h>

#define CHECK(call) do { CUresult e_ = (call); if (e_ != CUDA_SUCCESS) { \
    const char *t_ = "?"; cuGetErrorString(e_, &t_); fprintf(stderr, "line %d: %s\n", __LINE__, t_); exit(1); } } while (0)

static const char *helper = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .func (.param .b32 result) twice(.param .b32 value) {
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [value];
    add.u32 %r2, %r1, %r1;
    st.param.b32 [result], %r2;
    ret;
}
)";

static const char *user = R"(
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 result) twice(.param .b32 value);
.visible .entry first(.param .u64 x) {
    .reg .b32 %r<5>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    {
        .param .b32 value;
        .param .b32 result;
        st.param.b32 [value], %r1;
        call.uni (result), twice, (value);
        ld.param.b32 %r2, [result];
    }
    st.global.u32 [%rd3], %r2;
    ret;
}
)";

static const char *library_text = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 step = 100;
.visible .entry second(.param .u64 x, .param .u32 by) {
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [x];
    ld.param.u32 %r4, [by];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r2, [%rd3];
    ld.global.u32 %r3, [step];
    mad.lo.u32 %r5, %r3, %r4, %r2;
    st.global.u32 [%rd3], %r5;
    ret;
}
)";

int main() {
    CUdevice device;
    CUcontext ctx;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&ctx, device));
    CHECK(cuCtxPushCurrent(ctx));
    CUlinkState link;
    CHECK(cuLinkCreate(0, nullptr, nullptr, &link));
    CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)helper, strlen(helper) + 1, "helper.ptx", 0, nullptr, nullptr));
    CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)user, strlen(user) + 1, "user.ptx", 0, nullptr, nullptr));
    void *image;
    size_t size;
    CHECK(cuLinkComplete(link, &image, &size));
    CUmodule module;
    CUfunction first;
    CHECK(cuModuleLoadData(&module, image));
    CHECK(cuLinkDestroy(link));
    CHECK(cuModuleGetFunction(&first, module, "first"));

    CUlibrary library;
    CUkernel kernel;
    CUfunction second;
    CHECK(cuLibraryLoadData(&library, library_text, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK(cuLibraryGetKernel(&kernel, library, "second"));
    CHECK(cuKernelGetFunction(&second, kernel));
    CUdeviceptr step, x;
    size_t step_size;
    CHECK(cuLibraryGetGlobal(&step, &step_size, library, "step"));
    CHECK(cuMemAlloc(&x, 256 * 4));
    CUstream s;
    CHECK(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    void *args1[] = {&x};
    CHECK(cuLaunchKernel(first, 1, 1, 1, 256, 1, 1, 0, s, args1, nullptr));
    unsigned by = 2, thousand = 1000;
    void *args2[] = {&x, &by};
    CUlaunchConfig config = {};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 256;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = s;
    CHECK(cuLaunchKernelEx(&config, (CUfunction)kernel, args2, nullptr));
    CHECK(cuMemcpyHtoDAsync(step, &thousand, 4, s));
    CHECK(cuLaunchKernel(second, 1, 1, 1, 256, 1, 1, 0, s, args2, nullptr));
    unsigned out[256], wrong = 0;
    CHECK(cuMemcpyDtoHAsync(out, x, sizeof out, s));
    CHECK(cuStreamSynchronize(s));
    for (unsigned i = 0; i < 256; i++) wrong += out[i] != 2 * i + 2200;
    const char *name;
    size_t offset, bytes;
    CHECK(cuKernelGetName(&name, kernel));
    CHECK(cuKernelGetParamInfo(kernel, 1, &offset, &bytes));
    unsigned kernels;
    CHECK(cuLibraryGetKernelCount(&kernels, library));
    printf("%s with parameter 1 of %zu bytes at %zu, %u kernel, global of %zu bytes, linked %d, %u wrong\n", name, bytes, offset, kernels,
           step_size, size > 0, wrong);
    CHECK(cuLibraryUnload(library));
    CHECK(cuModuleUnload(module));
    CHECK(cuMemFree(x));
    CHECK(cuCtxPopCurrent(&ctx));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return 0;
}
