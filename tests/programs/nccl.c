/* Collectives behind a fill on another stream: CASE is reduce, gather or recv; with a second argument the stream waits first. */
#include "common.h"
#include <string.h>

int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *, void *, size_t, int, int, void *, CUstream);
int ncclAllGather(const void *, void *, size_t, int, void *, CUstream);
int ncclSend(const void *, size_t, int, int, void *, CUstream);
int ncclRecv(void *, size_t, int, int, void *, CUstream);

enum { FLOAT = 7, N = 1024 };

int main(int argc, char **argv) {
    CUfunction comm = begin("nccl_8");
    CUstream a, b;
    CUdeviceptr x, y;
    CUevent done;
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuEventCreate(&done, 2));
    CHECK(cuMemAlloc_v2(&x, 4 * N));
    CHECK(cuMemAlloc_v2(&y, 8 * N));
    int recv = !strcmp(argv[1], "recv"), gather = !strcmp(argv[1], "gather");
    /* The fill races with what the call reads, with the last rank's part of what it gathers, or with what it receives. */
    CHECK(cuMemsetD8Async(gather ? y + 4 * N : recv ? y : x, 1, 4 * N, a));
    if (argc > 2) {
        CHECK(cuEventRecord(done, a));
        CHECK(cuStreamWaitEvent(b, done, 0));
    }
    void *from = (void *)(uintptr_t)x, *to = (void *)(uintptr_t)y;
    if (gather) {
        REQUIRE(ncclAllGather(from, to, N, FLOAT, comm, b) == 0);
    } else if (recv) {
        REQUIRE(ncclGroupStart() == 0);
        REQUIRE(ncclSend(from, N, FLOAT, 1, comm, b) == 0);
        REQUIRE(ncclRecv(to, N, FLOAT, 1, comm, b) == 0);
        REQUIRE(ncclGroupEnd() == 0);
    } else {
        REQUIRE(ncclAllReduce(from, to, N, FLOAT, 0, comm, b) == 0);
    }
    CHECK(cuCtxSynchronize());
    puts("done");
    return 0;
}
