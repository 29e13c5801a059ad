/* Steps that upload from pinned memory: what looking for early refills adds. Each step fills a buffer, uploads it, works for a while and
 * waits; prints the nanoseconds of a step.   uploads KIB STEPS MICROSECONDS_OF_WORK */
#define MINI_IMPLEMENTS
#include "../common.h"
#include <time.h>

#define POINTER(name, arguments) static CUresult(*p_##name) arguments;
MINI_API(POINTER)

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
    size_t bytes = (argc > 1 ? strtoul(argv[1], 0, 10) : 8192) << 10;
    unsigned steps = argc > 2 ? atoi(argv[2]) : 100;
    double work = (argc > 3 ? atof(argv[3]) : 8000) * 1e3;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    REQUIRE(driver);
#define LOOK(name, arguments) p_##name = dlsym(driver, #name);
    MINI_API(LOOK)
    CUcontext context;
    CUstream stream;
    CUdeviceptr memory;
    void *pinned[2];
    CHECK(p_cuInit(0));
    CHECK(p_cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(p_cuCtxSetCurrent(context));
    CHECK(p_cuStreamCreate(&stream, 1));
    CHECK(p_cuMemAlloc_v2(&memory, bytes));
    for (int i = 0; i < 2; i++) CHECK(p_cuMemHostAlloc(&pinned[i], bytes, 0));
    double start = now();
    for (unsigned i = 0; i < steps; i++) {
        double began = now();
        memset(pinned[i & 1], i, bytes);
        CHECK(p_cuMemcpyHtoDAsync_v2(memory, pinned[i & 1], bytes, stream));
        while (now() - began < work) {}
        CHECK(p_cuStreamSynchronize(stream));
    }
    printf("{\"step\": %.0f}\n", (now() - start) / steps);
    return 0;
}
