/* A job of any length on the fake driver: `long_job OPS [race-first] [save] [race-last] [wait FILE]`.
 *
 * Two streams take turns with a buffer, ordered by events: nothing races. Buffers are allocated and freed all the time. `race-first`
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

static int asked(int argc, char **argv, const char *word) {
    for (int i = 2; i < argc; i++)
        if (!strcmp(argv[i], word)) return i;
    return 0;
}

int main(int argc, char **argv) {
    long ops = argc > 1 ? atol(argv[1]) : 1000;
    CUevent event;
    begin("f_4_4");
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuEventCreate(&event, 2));
    CHECK(cuMemAlloc_v2(&x, 4096));
    if (asked(argc, argv, "race-first")) race();
    if (asked(argc, argv, "save")) STREAMSAN_SAVE("asked for");
    for (long n = 0; n < ops; n += 8) {
        CUdeviceptr y;
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
