/* What a call costs when there are many streams or many live allocations: nanoseconds per op, for the driver API.
 *
 *   scale STREAMS ALLOCATIONS OPS      one op in turn on each stream: a fill of an allocation picked at random, every fourth one followed by an
 *                                      event pair with the next stream; then as many allocations and frees as there were ops, up to 20,000 */
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
static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    REQUIRE(argc == 4);
    size_t streams = strtoul(argv[1], 0, 10), count = strtoul(argv[2], 0, 10), ops = strtoul(argv[3], 0, 10);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    REQUIRE(driver);
#define LOOK(name, arguments) p_##name = dlsym(driver, #name);
    MINI_API(LOOK)
    CUcontext context;
    CUevent event;
    CUstream *all = calloc(streams, sizeof *all);
    CUdeviceptr *memory = calloc(count, sizeof *memory);
    CHECK(p_cuInit(0));
    CHECK(p_cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(p_cuCtxSetCurrent(context));
    for (size_t i = 0; i < streams; i++) CHECK(p_cuStreamCreate(&all[i], 1));
    double filled = now();
    for (size_t i = 0; i < count; i++) CHECK(p_cuMemAlloc_v2(&memory[i], 512));
    filled = (now() - filled) / count;
    CHECK(p_cuEventCreate(&event, 2));
    enum { BATCH = 500 };
    size_t batches = ops / BATCH;
    double *times = calloc(batches, sizeof *times), *pairs = calloc(batches, sizeof *pairs);
    uint64_t state = 1;
    for (size_t n = 0; n < batches; n++) {
        double start = now();
        for (size_t i = 0; i < BATCH; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            CHECK(p_cuMemsetD8Async(memory[(state >> 33) % count], 0, 16, all[(n * BATCH + i) % streams]));
        }
        times[n] = (now() - start) / BATCH;
        start = now();
        for (size_t i = 0; i < BATCH; i++) {
            size_t at = (n * BATCH + i) % streams;
            CHECK(p_cuEventRecord(event, all[at]));
            CHECK(p_cuStreamWaitEvent(all[(at + 1) % streams], event, 0));
        }
        pairs[n] = (now() - start) / BATCH;
    }
    size_t churn = count < 20000 ? count : 20000;
    double start = now();
    for (size_t i = 0; i < churn; i++) {
        CHECK(p_cuMemFree_v2(memory[i]));
        CHECK(p_cuMemAlloc_v2(&memory[i], 512));
    }
    double churned = (now() - start) / churn;
    qsort(times, batches, sizeof *times, ascending);
    qsort(pairs, batches, sizeof *pairs, ascending);
    printf("{\"fill\": %.1f, \"pair\": %.1f, \"allocate\": %.1f, \"free and allocate\": %.1f}\n", times[batches / 2], pairs[batches / 2], filled,
           churned);
    fflush(stdout);
    _exit(0);
}
