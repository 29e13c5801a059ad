/* Nanoseconds per call of the driver API, as a program sees them: launches, event record and wait pairs, small copies.
 * Finds the driver by dlopen, so it runs on a GPU and against the fake driver alike.   driver_calls LAUNCH_COUNT [cold]
 * With `cold` the program does work of its own before each call, as a framework does: 2 MiB of data and 512 KiB of code. */
#define MINI_IMPLEMENTS
#include "../common.h"
#include <time.h>

#define POINTER(name, arguments) static CUresult(*p_##name) arguments;
MINI_API(POINTER)

static const char image[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                            ".visible .entry count_8_4(.param .u64 a, .param .u32 b) { ret; }\n";

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}
static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static CUfunction function;
static CUstream a, b;
static CUevent event;
static CUdeviceptr memory;
static char host[64];

static void launch(unsigned i) {
    void *params[] = {&memory, &i};
    CHECK(p_cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, a, params, 0));
}
static void pair(unsigned i) {
    CHECK(p_cuEventRecord(event, a));
    CHECK(p_cuStreamWaitEvent(b, event, 0));
}
static void copy(unsigned i) { CHECK(p_cuMemcpyDtoDAsync_v2(memory, memory + 64, 64, a)); }

/* The driver's queue is emptied, so that it is never full while time is taken. */
static void drain(void) {
    CHECK(p_cuStreamSynchronize(a));
    CHECK(p_cuStreamSynchronize(b));
}
static double median(double *times, unsigned count) {
    qsort(times, count, sizeof *times, ascending);
    return times[count / 2];
}

enum { BATCH = 400 };

/* The median over batches: a batch is short enough to fit the driver's queue, and the queue is drained between batches. */
static double measure(void (*work)(unsigned), unsigned count) {
    unsigned batches = count / BATCH;
    double *times = calloc(batches, sizeof *times);
    for (unsigned n = 0; n < batches; n++) {
        double start = now();
        for (unsigned i = 0; i < BATCH; i++) work(i);
        times[n] = (now() - start) / BATCH;
        drain();
    }
    double middle = median(times, batches);
    free(times);
    return middle;
}

/* A jump on every line of 512 KiB of code: what the caches and the branch predictor knew of anybody's code is gone. */
__attribute__((noinline)) static void foreign_code(void) {
#if defined(__x86_64__)
    __asm__ volatile(".balign 64\n.rept 8192\njmp 1f\n.balign 64\n1:\n.endr\n");
#endif
}
static volatile char foreign_data[2 << 20];

/* The median over single calls, each after foreign work that is not timed. */
static double measure_cold(void (*work)(unsigned), unsigned count) {
    double *times = calloc(count, sizeof *times);
    for (unsigned n = 0; n < count; n++) {
        for (unsigned i = 0; i < sizeof foreign_data; i += 64) foreign_data[i]++;
        foreign_code();
        now(); /* The clock itself is to be warm. */
        double start = now();
        work(n);
        times[n] = now() - start;
        if (n % BATCH == BATCH - 1) drain();
    }
    double middle = median(times, count);
    free(times);
    return middle;
}

int main(int argc, char **argv) {
    unsigned count = argc > 1 ? atoi(argv[1]) : 40000;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    REQUIRE(driver);
#define LOOK(name, arguments) p_##name = dlsym(driver, #name);
    MINI_API(LOOK)
    CUcontext context;
    CUmodule module;
    CHECK(p_cuInit(0));
    CHECK(p_cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(p_cuCtxSetCurrent(context));
    CHECK(p_cuModuleLoadData(&module, image));
    CHECK(p_cuModuleGetFunction(&function, module, "count_8_4"));
    CHECK(p_cuStreamCreate(&a, 1));
    CHECK(p_cuStreamCreate(&b, 1));
    CHECK(p_cuEventCreate(&event, 2));
    CHECK(p_cuMemAlloc_v2(&memory, 4096));
    measure(launch, 4000); /* warm up */
    double (*how)(void (*)(unsigned), unsigned) = argc > 2 && !strcmp(argv[2], "cold") ? measure_cold : measure;
    double launches = how(launch, count), pairs = how(pair, count), copies = how(copy, count);
    printf("{\"launch\": %.1f, \"pair\": %.1f, \"copy\": %.1f}\n", launches, pairs, copies);
    return 0;
}
