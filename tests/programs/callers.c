/* A helper fills memory on one stream and on another, unordered or (ORDERED) ordered by an event. Functions of the program call it:
 * (CALLER) one of three, or all of them one after the other. */
#include "common.h"

static CUstream a, b;
static CUevent event;
static CUdeviceptr x;

static __attribute__((noinline)) void helper(void) {
    CHECK(cuMemsetD8Async(x, 1, 4096, a));
#ifdef ORDERED
    CHECK(cuEventRecord(event, a));
    CHECK(cuStreamWaitEvent(b, event, 0));
#endif
    CHECK(cuMemsetD8Async(x, 2, 4096, b));
    CHECK(cuCtxSynchronize());
}

static __attribute__((noinline)) int first(int n) { helper(); return n + 1; }
static __attribute__((noinline)) int second(int n) { helper(); return n + 2; }
static __attribute__((noinline)) int third(int n) { helper(); return n + 3; }

#ifndef CALLER
#define CALLER 0
#endif

int main(void) {
    attach();
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuEventCreate(&event, 2));
    CHECK(cuMemAlloc_v2(&x, 4096));
    int n = 0;
    if (CALLER == 0 || CALLER == 1) n = first(n);
    if (CALLER == 0 || CALLER == 2) n = second(n);
    if (CALLER == 0 || CALLER == 3) n = third(n);
    printf("done: %d\n", n);
    return 0;
}
