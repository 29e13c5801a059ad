/* Communicators of NCCL that are made from ids, or by splitting.
 *
 * `again HOW`: what is enqueued on one communicator, on stream a, and on the next one, on stream b, which has the handle of the first. HOW says how
 * the first one ends: abort; destroy, finalize, which wait for it; kept: it does not, and goes on on stream b; waits: aborted, and b waits for a.
 *
 * `order FIRST SECOND`: two processes enqueue collectives of two communicators. Letters are these communicators, each on its own stream; those in
 * brackets are one group, s and r a send and a receive of the second communicator. `split FIRST SECOND`: both were split from one. */
#include "common.h"
#include <sys/wait.h>

typedef struct { char bytes[128]; } Id;
int ncclCommInitRank(void **, int, Id, int);
int ncclCommInitRankConfig(void **, int, Id, int, void *);
int ncclCommSplit(void *, int, int, void **, void *);
int ncclCommDestroy(void *);
int ncclCommAbort(void *);
int ncclCommFinalize(void *);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *, void *, size_t, int, int, void *, CUstream);
int ncclSend(const void *, size_t, int, int, void *, CUstream);
int ncclRecv(void *, size_t, int, int, void *, CUstream);

enum { FLOAT = 7, N = 1024 };

static CUstream a, b;
static CUdeviceptr x, y, z;
static void *at(CUdeviceptr p) { return (void *)(uintptr_t)p; }

static Id id(CUfunction kernel, char which) {
    Id id;
    memset(&id, which, sizeof id);
    memcpy(id.bytes, &kernel, sizeof kernel);
    return id;
}

static CUfunction start(void) {
    CUfunction kernel = begin("nccl_8");
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuMemAlloc_v2(&x, 4 * N));
    CHECK(cuMemAlloc_v2(&y, 4 * N));
    CHECK(cuMemAlloc_v2(&z, 4 * N));
    return kernel;
}

static void again(const char *how) {
    CUfunction kernel = start();
    void *first, *second;
    CUevent done;
    CHECK(cuEventCreate(&done, 2));
    REQUIRE(!ncclCommInitRank(&first, 2, id(kernel, 1), 0));
    CHECK(cuMemsetD8Async(x, 1, 4 * N, a));
    REQUIRE(!ncclAllReduce(at(y), at(y), N, FLOAT, 0, first, a));
    CHECK(cuEventRecord(done, a));
    second = first;
    if (strcmp(how, "kept")) {
        int waits = !strcmp(how, "destroy") || !strcmp(how, "finalize");
        if (!strcmp(how, "finalize")) REQUIRE(!ncclCommFinalize(first));
        REQUIRE(!(waits ? ncclCommDestroy : ncclCommAbort)(first));
        REQUIRE(!ncclCommInitRankConfig(&second, 2, id(kernel, 2), 0, 0));
        REQUIRE(second == first);
    }
    if (!strcmp(how, "waits")) CHECK(cuStreamWaitEvent(b, done, 0));
    REQUIRE(!ncclAllReduce(at(z), at(z), N, FLOAT, 0, second, b));
    CHECK(cuMemcpyDtoDAsync_v2(z, x, 4 * N, b));
    CHECK(cuCtxSynchronize());
}

static void member(int rank, int split, const char *calls) {
    CUfunction kernel = start();
    void *comms[2];
    REQUIRE(!ncclCommInitRank(&comms[0], 2, id(kernel, 1), rank));
    if (split) {
        void *parent = comms[0], *left;
        REQUIRE(!ncclCommSplit(parent, 0, rank, &comms[0], 0));
        REQUIRE(!ncclCommSplit(parent, -1, rank, &left, 0));
        REQUIRE(!ncclCommSplit(parent, 0, rank, &comms[1], 0));
    } else {
        REQUIRE(!ncclCommInitRankConfig(&comms[1], 2, id(kernel, 2), rank, 0));
    }
    for (; *calls; calls++) {
        if (*calls == '(') REQUIRE(!ncclGroupStart());
        if (*calls == ')') REQUIRE(!ncclGroupEnd());
        if (*calls == 'a') REQUIRE(!ncclAllReduce(at(x), at(x), N, FLOAT, 0, comms[0], a));
        if (*calls == 'b') REQUIRE(!ncclAllReduce(at(y), at(y), N, FLOAT, 0, comms[1], b));
        if (*calls == 's') REQUIRE(!ncclSend(at(z), N, FLOAT, !rank, comms[1], b));
        if (*calls == 'r') REQUIRE(!ncclRecv(at(z), N, FLOAT, !rank, comms[1], b));
    }
    CHECK(cuCtxSynchronize());
}

int main(int argc, char **argv) {
    if (!strcmp(argv[1], "again")) {
        again(argv[2]);
    } else {
        int status, split = !strcmp(argv[1], "split");
        pid_t child = fork();
        if (!child) {
            member(1, split, argv[3]);
            exit(0);
        }
        member(0, split, argv[2]);
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    }
    puts("done");
    return 0;
}
