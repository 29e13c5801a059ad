/* Sixteen threads that all start at once. Each launches on a stream of its own and, under a mutex, on a common one; the
 * parameters say which stream and count up.   threads STACK_KIB LAUNCHES */
#include "common.h"
#include <pthread.h>

enum { THREADS = 16 };
static CUfunction function;
static CUcontext context;
static CUstream shared;
static unsigned shared_count, launches;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static void *work(void *argument) {
    unsigned me = (unsigned)(uintptr_t)argument;
    pthread_barrier_wait(&barrier);
    CHECK(cuCtxSetCurrent(context));
    CUstream own;
    CHECK(cuStreamCreate(&own, 1));
    for (unsigned i = 0; i < launches; i++) {
        launch2(function, own, 1 + me, i);
        if (i % 4 == 0) {
            pthread_mutex_lock(&mutex);
            launch2(function, shared, 0, shared_count++);
            pthread_mutex_unlock(&mutex);
        }
    }
    CHECK(cuStreamSynchronize(own));
    return 0;
}

int main(int argc, char **argv) {
    size_t stack = strtoul(argv[1], 0, 10) << 10;
    launches = strtoul(argv[2], 0, 10);
    function = begin("count_4_4");
    CHECK(cuCtxGetCurrent(&context));
    CHECK(cuStreamCreate(&shared, 1));
    pthread_barrier_init(&barrier, 0, THREADS);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    size_t least = sysconf(_SC_THREAD_STACK_MIN);
    if (stack) REQUIRE(pthread_attr_setstacksize(&attributes, stack < least ? least : stack) == 0);
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], &attributes, work, (void *)(uintptr_t)i) == 0);
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    puts("done");
    return 0;
}
