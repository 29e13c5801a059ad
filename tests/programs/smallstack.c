/* The very first CUDA call of the process comes from a thread with a stack of STACK_KIB, or the smallest
 * that the system allows. */
#include "common.h"
#include <pthread.h>

static void *work(void *unused) {
    CUfunction f = begin("count_4_4");
    for (unsigned i = 0; i < 10; i++) launch2(f, 0, 0, i);
    return 0;
}

int main(int argc, char **argv) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    size_t stack = strtoul(argv[1], 0, 10) << 10, least = sysconf(_SC_THREAD_STACK_MIN);
    REQUIRE(pthread_attr_setstacksize(&attributes, stack < least ? least : stack) == 0);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, &attributes, work, 0) == 0);
    pthread_join(thread, 0);
    puts("done");
    return 0;
}
