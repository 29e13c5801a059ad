// expect: clean
// racy: race RAW
// pair: kernel fill / cuMemcpyDtoDAsync
// needs: driver-api
// why: A library is loaded, used and unloaded again and again. Each has a kernel of the same name, which fills another quarter of x, and may get
// the handle of the one before; on another stream a copy reads the quarter behind it (racy: the same one).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>

#define CHECK(call) do { CUresult e_ = (call); if (e_ != CUDA_SUCCESS) { \
    const char *t_ = "?"; cuGetErrorString(e_, &t_); fprintf(stderr, "line %d: %s\n", __LINE__, t_); exit(1); } } while (0)

static const char *text = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 x) {
    .reg .b32 %%r<3>;
    .reg .b64 %%rd<4>;
    ld.param.u64 %%rd1, [x];
    mov.u32 %%r1, %%tid.x;
    mul.wide.u32 %%rd2, %%r1, 4;
    add.u64 %%rd3, %%rd1, %%rd2;
    mov.u32 %%r2, %u;
    st.global.u32 [%%rd3+%u], %%r2;
    ret;
}
)";

enum { QUARTER = 64 * 4, TURNS = 60 };

int main(int argc, char **argv) {
    bool racy = argc > 1 && !strcmp(argv[1], "racy");
    CUdevice device;
    CUcontext ctx;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&ctx, device));
    CHECK(cuCtxPushCurrent(ctx));
    CUdeviceptr x, y;
    CHECK(cuMemAlloc(&x, 4 * QUARTER));
    CHECK(cuMemAlloc(&y, QUARTER));
    CUstream s, t;
    CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemsetD8Async(x, 0, 4 * QUARTER, s));
    CHECK(cuStreamSynchronize(s));
    unsigned wrong = 0, out[QUARTER / 4];
    for (unsigned turn = 0; turn < TURNS; turn++) {
        // 3 and 4 have no common divisor: every way to launch meets every quarter.
        unsigned quarter = turn % 4, other = (quarter + !racy) % 4;
        char ptx[1024];
        snprintf(ptx, sizeof ptx, text, turn + 1, quarter * QUARTER);
        CUlibrary library = nullptr;
        CUmodule module = nullptr;
        CUkernel kernel;
        CUfunction function;
        if (turn % 3 == 0) {
            CHECK(cuModuleLoadData(&module, ptx));
            CHECK(cuModuleGetFunction(&function, module, "fill"));
        } else {
            CHECK(cuLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
            CHECK(cuLibraryGetKernel(&kernel, library, "fill"));
            if (turn % 3 == 1) CHECK(cuKernelGetFunction(&function, kernel));
            else function = (CUfunction)kernel;
        }
        void *args[] = {&x};
        CHECK(cuLaunchKernel(function, 1, 1, 1, QUARTER / 4, 1, 1, 0, s, args, nullptr));
        CHECK(cuMemcpyDtoDAsync(y, x + other * QUARTER, QUARTER, t));
        CHECK(cuStreamSynchronize(s));
        CHECK(cuStreamSynchronize(t));
        CHECK(cuMemcpyDtoH(out, y, QUARTER));
        // What was put there three turns ago.
        unsigned expected = turn < 3 ? 0 : turn - 2;
        for (unsigned word : out) wrong += word != expected;
        if (module) CHECK(cuModuleUnload(module));
        else CHECK(cuLibraryUnload(library));
    }
    printf("%d turns, %u wrong\n", TURNS, wrong);
    CHECK(cuMemFree(x));
    CHECK(cuMemFree(y));
    CHECK(cuCtxPopCurrent(&ctx));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return 0;
}
