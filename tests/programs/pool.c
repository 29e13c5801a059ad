/* A pool that tells its blocks through streamsan.h. Block one is used on stream b, which waits for a, and goes back:
 *   pool early      to a, whose next block could have got its bytes
 *   pool waited     to a, after a waits for b (clean)
 *   pool user       to b, which uses it (clean)
 *   pool any        as a pool that synchronises before it hands out; the next block lies elsewhere (clean)
 *   pool same       to a, and a's next block gets the same bytes: a race of its own */
#include "../../include/streamsan.h"
#include "common.h"

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "early";
    int any = !strcmp(how, "any"), user = !strcmp(how, "user"), same = !strcmp(how, "same");
    attach();
    CUstream a, b;
    CUevent done;
    CUdeviceptr pool;
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuEventCreate(&done, 2));
    CHECK(cuMemAlloc_v2(&pool, 1 << 20));
    STREAMSAN_ALLOCATED("arena", pool, 4096, any ? STREAMSAN_ANY_STREAM : a);
    CHECK(cuMemsetD8Async(pool, 1, 4096, a));
    CHECK(cuEventRecord(done, a));
    CHECK(cuStreamWaitEvent(b, done, 0));
    CHECK(cuMemsetD8Async(pool, 2, 4096, b));
    if (!strcmp(how, "waited")) {
        CHECK(cuEventRecord(done, b));
        CHECK(cuStreamWaitEvent(a, done, 0));
    }
    STREAMSAN_FREED(pool, any ? STREAMSAN_ANY_STREAM : user ? b : a);
    CUdeviceptr next = same ? pool : pool + 65536;
    CUstream to = user ? b : a;
    STREAMSAN_ALLOCATED("arena", next, 2048, any ? STREAMSAN_ANY_STREAM : to);
    CHECK(cuMemsetD8Async(next, 3, 2048, to));
    STREAMSAN_FREED(next, to);
    CHECK(cuCtxSynchronize());
    CHECK(cuMemFree_v2(pool));
    printf("done %d\n", STREAMSAN_ACTIVE());
    return 0;
}
