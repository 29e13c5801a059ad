/* Collectives on the default streams of two contexts in one group (devices), behind fills on the same streams; or collectives behind a fill on another stream: CASE is reduce, gather or recv; with a second argument the stream waits first. Or calls on two streams that use what is on the other one before and after
 * them (streams): with a second argument they are one group, which orders the streams, otherwise two. */
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
    if (!strcmp(argv[1], "devices")) {
        CUcontext first, second;
        CUdeviceptr z;
        CHECK(cuCtxGetCurrent(&first));
        CHECK(cuCtxCreate_v2(&second, 0, 0));
        CHECK(cuMemAlloc_v2(&z, 4 * N));
        /* With a second argument the fill is on the default stream that the call means, otherwise on one that nothing orders. */
        CUstream other = 0;
        if (argc < 3) CHECK(cuStreamCreate(&other, 1));
        CHECK(cuMemsetD8Async(z, 1, 4 * N, other));
        CHECK(cuCtxSetCurrent(first));
        CHECK(cuMemsetD8Async(x, 1, 4 * N, 0));
        REQUIRE(ncclGroupStart() == 0);
        REQUIRE(ncclAllReduce((void *)(uintptr_t)x, (void *)(uintptr_t)x, N, FLOAT, 0, comm, 0) == 0);
        CHECK(cuCtxSetCurrent(second));
        REQUIRE(ncclAllReduce((void *)(uintptr_t)z, (void *)(uintptr_t)z, N, FLOAT, 0, comm, 0) == 0);
        CHECK(cuCtxSetCurrent(first));
        REQUIRE(ncclGroupEnd() == 0);
        CHECK(cuCtxSynchronize());
        puts("done");
        return 0;
    }
    if (!strcmp(argv[1], "streams")) {
        CUdeviceptr z;
        CHECK(cuMemAlloc_v2(&z, 8 * N));
        CHECK(cuMemsetD8Async(x, 1, 4 * N, b));
        CHECK(cuMemsetD8Async(y, 1, 4 * N, a));
        REQUIRE(ncclGroupStart() == 0);
        REQUIRE(ncclAllReduce((void *)(uintptr_t)x, (void *)(uintptr_t)x, N, FLOAT, 0, comm, a) == 0);
        if (argc < 3) {
            REQUIRE(ncclGroupEnd() == 0);
            REQUIRE(ncclGroupStart() == 0);
        }
        REQUIRE(ncclAllReduce((void *)(uintptr_t)y, (void *)(uintptr_t)y, N, FLOAT, 0, comm, b) == 0);
        REQUIRE(ncclGroupEnd() == 0);
        CHECK(cuMemcpyDtoDAsync_v2(z, x, 4 * N, b));
        CHECK(cuMemcpyDtoDAsync_v2(z + 4 * N, y, 4 * N, a));
        CHECK(cuCtxSynchronize());
        puts("done");
        return 0;
    }
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
