/* Two fills of the same bytes on two streams, unordered (or ordered by an event: `racy CODE ordered`). Copies standard input to
 * standard output, ends with CODE. */
#include "common.h"

int main(int argc, char **argv) {
    begin("f_4_4");
    CUstream a, b;
    CUevent event;
    CUdeviceptr x;
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuEventCreate(&event, 2));
    CHECK(cuMemAlloc_v2(&x, 4096));
    CHECK(cuMemsetD8Async(x, 1, 4096, a));
    if (argc > 2 && !strcmp(argv[2], "ordered")) {
        CHECK(cuEventRecord(event, a));
        CHECK(cuStreamWaitEvent(b, event, 0));
    }
    CHECK(cuMemsetD8Async(x, 2, 4096, b));
    CHECK(cuCtxSynchronize());
    char block[4096];
    ssize_t got;
    while ((got = read(0, block, sizeof block)) > 0) REQUIRE(write(1, block, got) == got);
    return argc > 1 ? atoi(argv[1]) : 0;
}
