/* Ways to end, after some work. */
#include "common.h"
#include <pthread.h>
#include <signal.h>

static CUfunction function;
static CUstream stream;

static void late(void) {
    for (unsigned i = 0; i < 5; i++) launch2(function, stream, 1, i);
    CHECK(cuStreamSynchronize(stream));
    if (write(1, "late\n", 5) != 5) _exit(96);
}
static void *exits(void *unused) { exit(5); }
static CUcontext context;
static void *works_on(void *unused) {
    CHECK(cuCtxSetCurrent(context));
    for (unsigned i = 0;; i++) launch2(function, stream, 2, i);
    return 0;
}

int main(int argc, char **argv) {
    const char *how = argv[1];
    if (!strcmp(how, "atexit-early")) atexit(late); /* registered before the driver and the shim began to work */
    function = begin("count_4_4");
    CHECK(cuStreamCreate(&stream, 1));
    for (unsigned i = 0; i < 10; i++) launch2(function, stream, 0, i);
    if (!strcmp(how, "return")) return 3;
    if (!strcmp(how, "_exit")) _exit(4);
    if (!strcmp(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, 0, exits, 0);
        pthread_join(thread, 0);
    }
    if (!strcmp(how, "busy")) { /* ends while other threads still launch */
        pthread_t thread;
        CHECK(cuCtxGetCurrent(&context));
        for (int i = 0; i < 4; i++) pthread_create(&thread, 0, works_on, 0);
        usleep(20000);
        exit(6);
    }
    if (!strcmp(how, "atexit")) {
        atexit(late);
        exit(7);
    }
    if (!strcmp(how, "atexit-early")) exit(7);
    if (!strcmp(how, "quick")) quick_exit(8);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "segv")) *(volatile int *)8 = 1;
    if (!strcmp(how, "kill")) raise(SIGKILL);
    if (!strcmp(how, "term")) raise(SIGTERM);
    if (!strcmp(how, "pthread_exit")) { /* main ends, another thread ends the process */
        pthread_t thread;
        pthread_create(&thread, 0, exits, 0);
        pthread_exit(0);
    }
    return 97;
}
