/* NCCL without NCCL: calls launch one kernel on their stream, grouped ones when the group ends. A communicator is the kernel, or one that was
 * made from an id, which begins with the kernel: the first place that is free. */
#include "cuda_mini.h"
#include <stdint.h>
#include <string.h>

typedef struct { char bytes[128]; } Id;
static struct Made { CUfunction kernel; int rank, ranks; } made[8];

static struct Made *known(void *comm) {
    uintptr_t at = (uintptr_t)comm, first = (uintptr_t)made;
    return at >= first && at < first + sizeof made ? comm : 0;
}
static CUfunction kernel_of(void *comm) { return known(comm) ? known(comm)->kernel : comm; }

static int depth;
static struct { CUfunction kernel; CUstream stream; void *at; } waiting[16];
static int count;

static int launch(CUfunction kernel, CUstream stream, void *at) {
    void *params[] = {&at};
    return cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, 0) ? 1 : 0;
}
static int call(void *comm, CUstream stream, void *at) {
    CUfunction kernel = kernel_of(comm);
    if (!depth) return launch(kernel, stream, at);
    waiting[count].kernel = kernel, waiting[count].stream = stream, waiting[count++].at = at;
    return 0;
}
int ncclCommInitRank(void **comm, int ranks, Id id, int rank) {
    struct Made *free = made;
    while (free->kernel) free++;
    memcpy(&free->kernel, id.bytes, sizeof free->kernel);
    free->rank = rank, free->ranks = ranks;
    *comm = free;
    return 0;
}
int ncclCommInitRankConfig(void **comm, int ranks, Id id, int rank, void *config) { return ncclCommInitRank(comm, ranks, id, rank); }
int ncclCommSplit(void *comm, int colour, int key, void **to, void *config) {
    Id id;
    CUfunction kernel = kernel_of(comm);
    memcpy(id.bytes, &kernel, sizeof kernel);
    if (colour < 0) return *to = 0, 0;
    return ncclCommInitRank(to, known(comm)->ranks, id, known(comm)->rank);
}
int ncclCommDestroy(void *comm) { return known(comm)->kernel = 0, 0; }
int ncclCommAbort(void *comm) { return ncclCommDestroy(comm); }
int ncclCommFinalize(void *comm) { return 0; }
int ncclGroupStart(void) { depth++; return 0; }
int ncclGroupEnd(void) {
    if (--depth) return 0;
    for (int i = 0; i < count; i++)
        if (launch(waiting[i].kernel, waiting[i].stream, waiting[i].at)) return 1;
    count = 0;
    return 0;
}
int ncclCommCount(void *comm, int *ranks) { *ranks = known(comm) ? known(comm)->ranks : 2; return 0; }
int ncclCommUserRank(void *comm, int *rank) { *rank = known(comm) ? known(comm)->rank : 0; return 0; }
int ncclAllReduce(const void *send, void *recv, size_t n, int type, int op, void *comm, CUstream s) { return call(comm, s, recv); }
int ncclAllGather(const void *send, void *recv, size_t n, int type, void *comm, CUstream s) { return call(comm, s, recv); }
int ncclSend(const void *send, size_t n, int type, int peer, void *comm, CUstream s) { return call(comm, s, (void *)send); }
int ncclRecv(void *recv, size_t n, int type, int peer, void *comm, CUstream s) { return call(comm, s, recv); }
