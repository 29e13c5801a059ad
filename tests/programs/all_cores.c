/* Threads that use every core while another one submits 20,000 fills, each ordered behind the one before, or the last one not:
 * `all_cores fixed`, `all_cores racy`. */
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_int over;

static void *work(void *none) {
    while (!atomic_load(&over)) {}
    return none;
}

int main(int argc, char **argv) {
    int racy = argc > 1 && !strcmp(argv[1], "racy");
    begin("f_4_4");
    CUstream a, b;
    CUevent event;
    CUdeviceptr x;
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuEventCreate(&event, 2));
    CHECK(cuMemAlloc_v2(&x, 4096));
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t threads[256];
    if (cores > 256) cores = 256;
    for (long i = 0; i < cores; i++) REQUIRE(!pthread_create(&threads[i], NULL, work, NULL));
    for (int step = 0; step < 10000; step++) {
        CHECK(cuMemsetD8Async(x, step, 4096, a));
        CHECK(cuEventRecord(event, a));
        /* The race is in the last step. */
        if (!racy || step < 9999) CHECK(cuStreamWaitEvent(b, event, 0));
        CHECK(cuMemsetD8Async(x, 2, 2048, b));
        CHECK(cuEventRecord(event, b));
        CHECK(cuStreamWaitEvent(a, event, 0));
        /* Long enough to be noticed. */
        if (step % 100 == 0) usleep(5000);
    }
    atomic_store(&over, 1);
    for (long i = 0; i < cores; i++) REQUIRE(!pthread_join(threads[i], NULL));
    CHECK(cuCtxSynchronize());
    puts("done");
    return 0;
}
