/* A job of any length on the fake driver: `long_job OPS [race-first] [save] [race-last] [wait FILE]`.
 *
 * Two streams take turns with a buffer, ordered by events: nothing races. Buffers are allocated and freed all the time, and a kernel
 * is launched with a kilobyte that nothing compresses, so that few ops fill a segment (a thousand turns of nine a MiB). `race-first`
 * and `race-last` let the two streams write to one buffer without order, at the beginning or at the end; `save` asks for what was
 * recorded to be kept, after the first race; `wait` waits at the end until FILE is there. */
#include "common.h"
#include "streamsan.h"

static CUstream a, b;
static CUdeviceptr x;

static void race(void) {
    CHECK(cuMemsetD8Async(x, 1, 4096, a));
    CHECK(cuMemsetD8Async(x, 2, 4096, b));
    CHECK(cuCtxSynchronize());
}

/* Fills with what nothing compresses. */
static void noise(uint64_t *words, size_t count) {
    static uint64_t state = 0x9e3779b97f4a7c15;
    for (size_t n = 0; n < count; n++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words[n] = state;
    }
}

static int asked(int argc, char **argv, const char *word) {
    for (int i = 2; i < argc; i++)
        if (!strcmp(argv[i], word)) return i;
    return 0;
}

int main(int argc, char **argv) {
    long ops = argc > 1 ? atol(argv[1]) : 1000;
    uint64_t words[128];
    void *params[] = {words};
    CUevent event;
    CUfunction f = begin("f_1024");
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuEventCreate(&event, 2));
    CHECK(cuMemAlloc_v2(&x, 4096));
    if (asked(argc, argv, "race-first")) race();
    if (asked(argc, argv, "save")) STREAMSAN_SAVE("asked for");
    for (long n = 0; n < ops; n += 9) {
        CUdeviceptr y;
        noise(words, 128);
        CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, a, params, 0));
        CHECK(cuMemAllocAsync(&y, 256 + n % 4096, a));
        CHECK(cuMemsetD8Async(y, 1, 256, a));
        CHECK(cuMemsetD8Async(x, (unsigned char)n, 1 + n * 7919 % 4096, a));
        CHECK(cuEventRecord(event, a));
        CHECK(cuStreamWaitEvent(b, event, 0));
        CHECK(cuMemsetD8Async(x, 2, 1 + n * 104729 % 4096, b));
        CHECK(cuEventRecord(event, b));
        CHECK(cuStreamWaitEvent(a, event, 0));
        CHECK(cuMemFreeAsync(y, a));
    }
    CHECK(cuCtxSynchronize());
    if (asked(argc, argv, "race-last")) race();
    int wait = asked(argc, argv, "wait");
    for (int n = 0; wait && n < 40000 && access(argv[wait + 1], F_OK); n++) usleep(5000);
    CHECK(cuMemFree_v2(x));
    return 0;
}
