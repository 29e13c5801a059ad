/* What a hunt meets in a folder: two fills of the same bytes on two streams, unordered or (ORDERED) ordered by an event, and
 * then (FAILS) an error of its own, (DIES) a signal, (READS) all of standard input, or (HANGS) no end, whatever it is asked, with
 * a child in a session of its own. (SKIPS) does nothing and says so by its exit code, or (WELL) ends well. (REFUSED)
 * asks for what the simulated GPU does not have, and makes nothing of the answer. */
#include "common.h"
#include <signal.h>
#include <time.h>

CUresult cuMemBatchDecompressAsync(void *params, size_t count, unsigned flags, size_t *error, void *stream);

static void fills(void) {
    attach();
    CUstream a, b;
    CUevent event;
    CUdeviceptr x;
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuEventCreate(&event, 2));
    CHECK(cuMemAlloc_v2(&x, 4096));
    CHECK(cuMemsetD8Async(x, 1, 4096, a));
#ifdef ORDERED
    CHECK(cuEventRecord(event, a));
    CHECK(cuStreamWaitEvent(b, event, 0));
#endif
    CHECK(cuMemsetD8Async(x, 2, 4096, b));
    CHECK(cuCtxSynchronize());
}

int main(void) {
#ifdef SKIPS
#ifdef WELL
    return 0;
#endif
    return 77;
#endif
#ifdef REFUSED
    attach();
    return cuMemBatchDecompressAsync(NULL, 0, 0, NULL, NULL) == 0;
#endif
    fills();
    printf("done: %s\n", getenv("HUNTED") ? getenv("HUNTED") : "");
    fflush(stdout);
#ifdef READS
    char block[4096];
    ssize_t got;
    while ((got = read(0, block, sizeof block)) != 0) REQUIRE(got > 0);
#endif
#ifdef FAILS
    fprintf(stderr, "expected 3, got 4\n");
    return 3;
#endif
#ifdef DIES
    signal(SIGABRT, SIG_DFL);
    abort();
#endif
#ifdef HANGS
    signal(SIGTERM, SIG_IGN);
    if (fork() == 0) setsid();
    /* A test that fails must not leave it there for ever. */
    time_t until = time(NULL) + 100;
    while (time(NULL) < until) usleep(10000);
#endif
    return 0;
}
