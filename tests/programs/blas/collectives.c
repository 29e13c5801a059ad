/* NCCL between the devices of one process, or (`collectives processes`) of three processes on one
   machine: every collective against loops. `collectives racy` reads a result too early. Of `collectives
   apart` each rank reduces on two streams and reads on the other one what each gives; `collectives
   together` has both in one group, which orders the streams. `collectives serial` reduces the same memory on one
   stream and then on the other one, and reads it there; `collectives overtaken` reads it on the first. */
#include "matrices.h"
#include <sys/wait.h>
#include <unistd.h>

typedef struct Comm *comm_t;
typedef struct { char bytes[128]; } id_t_;
int cudaSetDevice(int);
int cudaGetDeviceCount(int *);
int ncclGetUniqueId(id_t_ *);
int ncclCommInitAll(comm_t *, int, const int *);
int ncclCommInitRank(comm_t *, int, id_t_, int);
int ncclCommDestroy(comm_t);
int ncclCommCount(comm_t, int *);
int ncclCommUserRank(comm_t, int *);
int ncclAllReduce(const void *, void *, size_t, int, int, comm_t, stream_t);
int ncclReduce(const void *, void *, size_t, int, int, int, comm_t, stream_t);
int ncclReduceScatter(const void *, void *, size_t, int, int, comm_t, stream_t);
int ncclAllGather(const void *, void *, size_t, int, comm_t, stream_t);
int ncclBroadcast(const void *, void *, size_t, int, int, comm_t, stream_t);
int ncclGather(const void *, void *, size_t, int, int, comm_t, stream_t);
int ncclScatter(const void *, void *, size_t, int, int, comm_t, stream_t);
int ncclCommSplit(comm_t, int, int, comm_t *, void *);
int ncclSend(const void *, size_t, int, int, comm_t, stream_t);
int ncclRecv(void *, size_t, int, int, comm_t, stream_t);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int cudaMemcpyAsync(void *, const void *, size_t, int, stream_t);

enum { RANKS = 3, N = 12, INT32 = 2, HALF = 6, FLOAT = 7, SUM = 0, MAX = 2, AVG = 4 };

/* One rank: its communicator, stream and memory. */
typedef struct { comm_t comm; stream_t stream; float *from, *to; int device; } rank_t_;
static rank_t_ ranks[RANKS];
static int first, last;

static float value(int rank, int i) { return rank * 100 + i; }

static void prepare(int rank) {
    rank_t_ *r = &ranks[rank];
    float host[RANKS * N];
    cudaSetDevice(r->device);
    if (!r->stream) {
        cudaStreamCreateWithFlags(&r->stream, 1);
        cudaMalloc((void **)&r->from, sizeof host), cudaMalloc((void **)&r->to, sizeof host);
    }
    for (int i = 0; i < RANKS * N; i++) host[i] = value(rank, i);
    cudaMemcpy(r->from, host, sizeof host, 1);
    cudaMemset(r->to, 0, sizeof host);
    cudaDeviceSynchronize();
}

static void check(int rank, const char *what, int count, float (*wanted)(int rank, int i)) {
    float host[RANKS * N];
    cudaSetDevice(ranks[rank].device);
    cudaStreamSynchronize(ranks[rank].stream);
    cudaMemcpy(host, ranks[rank].to, sizeof host, 2);
    int good = 1;
    for (int i = 0; i < RANKS * N; i++) good &= host[i] == (i < count ? wanted(rank, i) : 0);
    expect(good, what, rank);
}

static float sums(int rank, int i) { (void)rank; return 300 + 3 * i; }
static float averages(int rank, int i) { (void)rank; return 100 + i; }
static float greatest(int rank, int i) { (void)rank; return 200 + i; }
static float gathered(int rank, int i) { (void)rank; return value(i / N, i % N); }
static float scattered(int rank, int i) { return 300 + 3 * (rank * N + i); }
static float ones(int rank, int i) { (void)rank; return value(1, i); }
static float pieces(int rank, int i) { return value(2, rank * N + i); }
static float turned(int rank, int i) { (void)rank; return value(i < N ? 2 : 0, i % N); }
static float before(int rank, int i) { return value((rank + RANKS - 1) % RANKS, i); }

#define ALL(call)                                                                                    \
    for (int rank = first; rank < last; rank++) prepare(rank);                                       \
    ncclGroupStart();                                                                                \
    for (int rank = first; rank < last; rank++) {                                                    \
        rank_t_ *r = &ranks[rank];                                                                   \
        expect(!(call), #call, rank);                                                                \
    }                                                                                                \
    expect(!ncclGroupEnd(), "group", 0)
#define CHECK(what, count, wanted)                                                                   \
    for (int rank = first; rank < last; rank++) check(rank, what, count, wanted)

static int run(void) {
    for (int rank = first; rank < last; rank++) {
        int count, own;
        expect(!ncclCommCount(ranks[rank].comm, &count) && count == RANKS, "count", rank);
        expect(!ncclCommUserRank(ranks[rank].comm, &own) && own == rank, "rank", rank);
    }
    for (int again = 0; again < 3; again++) {
        ALL(ncclAllReduce(r->from, r->to, N, FLOAT, SUM, r->comm, r->stream));
        CHECK("sum", N, sums);
        ALL(ncclAllReduce(r->from, r->to, N, FLOAT, AVG, r->comm, r->stream));
        CHECK("average", N, averages);
        ALL(ncclAllReduce(r->from, r->to, N, FLOAT, MAX, r->comm, r->stream));
        CHECK("greatest", N, greatest);
        ALL(ncclAllGather(r->from, r->to, N, FLOAT, r->comm, r->stream));
        CHECK("gather", RANKS * N, gathered);
        ALL(ncclReduceScatter(r->from, r->to, N, FLOAT, SUM, r->comm, r->stream));
        CHECK("scatter", N, scattered);
        ALL(ncclBroadcast(r->from, r->to, N, FLOAT, 1, r->comm, r->stream));
        CHECK("broadcast", N, ones);
        ALL(ncclReduce(r->from, r->to, N, FLOAT, SUM, 2, r->comm, r->stream));
        for (int rank = first; rank < last; rank++) check(rank, "reduce", rank == 2 ? N : 0, sums);
        /* Round the ring; each rank receives before it sends. */
        ALL(ncclRecv(r->to, N, FLOAT, (rank + RANKS - 1) % RANKS, r->comm, r->stream) ||
            ncclSend(r->from, N, FLOAT, (rank + 1) % RANKS, r->comm, r->stream));
        CHECK("ring", N, before);
    }
    ALL(ncclGather(r->from, r->to, N, FLOAT, 1, r->comm, r->stream));
    for (int rank = first; rank < last; rank++) check(rank, "gather to one", rank == 1 ? RANKS * N : 0, gathered);
    ALL(ncclScatter(r->from, r->to, N, FLOAT, 2, r->comm, r->stream));
    CHECK("scatter from one", N, pieces);
    for (int again = 0; again < 2; again++) {
        /* The ranks 0 and 2, the other way round; rank 1 by itself, and then in none. */
        comm_t parts[RANKS];
        ncclGroupStart();
        for (int rank = first; rank < last; rank++)
            expect(!ncclCommSplit(ranks[rank].comm, rank == 1 ? 7 - 8 * again : 3, -rank, &parts[rank], NULL), "split", rank);
        expect(!ncclGroupEnd(), "group of splits", 0);
        for (int rank = first; rank < last; rank++) {
            int count, own;
            if (rank == 1 && again) {
                expect(!parts[rank], "in none", rank);
                continue;
            }
            expect(!ncclCommCount(parts[rank], &count) && count == (rank == 1 ? 1 : 2), "count of a part", rank);
            expect(!ncclCommUserRank(parts[rank], &own) && own == (rank == 0), "rank in a part", rank);
        }
        ALL(rank == 1 ? 0 : ncclAllGather(r->from, r->to, N, FLOAT, parts[rank], r->stream));
        for (int rank = first; rank < last; rank++) check(rank, "gather in a part", rank == 1 ? 0 : 2 * N, turned);
        for (int rank = first; rank < last; rank++)
            if (parts[rank]) ncclCommDestroy(parts[rank]);
    }
    for (int rank = first; rank < last; rank++) ncclCommDestroy(ranks[rank].comm);
    printf("%d comparisons, %d failed\n", checks, failures);
    return failures != 0;
}

/* Each rank's two sums: of what the other stream has put there, and read by the other stream. */
static void two_streams(int together) {
    for (int rank = first; rank < last; rank++) prepare(rank);
    stream_t other[RANKS];
    float *more[RANKS], *read[RANKS];
    size_t size = N * sizeof(float);
    for (int rank = first; rank < last; rank++) {
        cudaSetDevice(ranks[rank].device);
        cudaStreamCreateWithFlags(&other[rank], 1);
        cudaMalloc((void **)&more[rank], size), cudaMalloc((void **)&read[rank], 2 * size);
        cudaMemcpyAsync(more[rank], ranks[rank].from, size, 3, ranks[rank].stream);
        cudaMemcpyAsync(ranks[rank].to, ranks[rank].from, size, 3, other[rank]);
    }
    for (int part = 0; part < 2; part++) {
        if (!part || !together) ncclGroupStart();
        for (int rank = first; rank < last; rank++) {
            rank_t_ *r = &ranks[rank];
            expect(!(part ? ncclAllReduce(more[rank], more[rank], N, FLOAT, SUM, r->comm, other[rank])
                          : ncclAllReduce(r->to, r->to, N, FLOAT, SUM, r->comm, r->stream)), "sum", rank);
        }
        if (part || !together) expect(!ncclGroupEnd(), "group", 0);
    }
    for (int rank = first; rank < last; rank++) {
        float host[2 * N];
        int good = 1;
        cudaSetDevice(ranks[rank].device);
        cudaMemcpyAsync(read[rank], more[rank], size, 3, ranks[rank].stream);
        cudaMemcpyAsync(read[rank] + N, ranks[rank].to, size, 3, other[rank]);
        cudaDeviceSynchronize();
        cudaMemcpy(host, read[rank], sizeof host, 2);
        for (int i = 0; i < 2 * N; i++) good &= host[i] == sums(rank, i % N);
        if (together) expect(good, "sums on two streams", rank);
    }
}

/* NCCL orders the operations of a communicator, not what else is on their streams. */
static void one_after_the_other(int overtaken) {
    for (int rank = first; rank < last; rank++) prepare(rank);
    stream_t other[RANKS];
    float *read[RANKS];
    size_t size = N * sizeof(float);
    for (int rank = first; rank < last; rank++) {
        cudaSetDevice(ranks[rank].device);
        cudaStreamCreateWithFlags(&other[rank], 1);
        cudaMalloc((void **)&read[rank], size);
    }
    for (int part = 0; part < 2; part++) {
        ncclGroupStart();
        for (int rank = first; rank < last; rank++) {
            rank_t_ *r = &ranks[rank];
            expect(!ncclAllReduce(r->from, r->from, N, FLOAT, SUM, r->comm, part ? other[rank] : r->stream), "sum", rank);
        }
        expect(!ncclGroupEnd(), "group", 0);
    }
    for (int rank = first; rank < last; rank++) {
        float host[N];
        int good = 1;
        cudaSetDevice(ranks[rank].device);
        cudaMemcpyAsync(read[rank], ranks[rank].from, size, 3, overtaken ? ranks[rank].stream : other[rank]);
        cudaDeviceSynchronize();
        cudaMemcpy(host, read[rank], sizeof host, 2);
        for (int i = 0; i < N; i++) good &= host[i] == 3 * sums(rank, i);
        if (!overtaken) expect(good, "sums one after the other", rank);
    }
}

static int one_process(int racy) {
    int devices[RANKS], count;
    comm_t comms[RANKS];
    cudaGetDeviceCount(&count);
    for (int rank = 0; rank < RANKS; rank++) devices[rank] = ranks[rank].device = rank % count;
    if (ncclCommInitAll(comms, RANKS, devices)) return 2;
    for (int rank = 0; rank < RANKS; rank++) ranks[rank].comm = comms[rank];
    last = RANKS;
    if (!racy) return run();
    if (racy > 2) {
        if (racy < 5) two_streams(racy == 4);
        else one_after_the_other(racy == 6);
        return failures != 0;
    }
    ALL(ncclAllReduce(r->from, r->to, N, FLOAT, SUM, r->comm, r->stream));
    stream_t other;
    cudaSetDevice(ranks[0].device);
    cudaStreamCreateWithFlags(&other, 1);
    if (racy == 2) {
        event_t event;
        cudaEventCreate(&event);
        cudaEventRecord(event, ranks[0].stream);
        cudaStreamWaitEvent(other, event, 0);
    }
    cudaMemsetAsync(ranks[0].to, 0, N * sizeof(float), other);
    for (int rank = 0; rank < RANKS; rank++) cudaStreamSynchronize(ranks[rank].stream);
    cudaStreamSynchronize(other);
    return 0;
}

static int processes(void) {
    int pipes[RANKS][2], failed = 0;
    for (int rank = 1; rank < RANKS; rank++)
        if (pipe(pipes[rank])) return 2;
    int rank = 0;
    for (int child = 1; child < RANKS && !rank; child++)
        if (!fork()) rank = child;
    id_t_ id;
    if (!rank) {
        if (ncclGetUniqueId(&id)) return 3;
        for (int child = 1; child < RANKS; child++)
            if (write(pipes[child][1], &id, sizeof id) != sizeof id) return 2;
    } else if (read(pipes[rank][0], &id, sizeof id) != sizeof id)
        return 2;
    cudaSetDevice(0);
    if (ncclCommInitRank(&ranks[rank].comm, RANKS, id, rank)) return 3;
    first = rank, last = rank + 1;
    failed = run();
    if (rank) return failed;
    for (int child = 1, status; child < RANKS; child++) {
        wait(&status);
        failed |= status != 0;
    }
    return failed;
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "processes")) return processes();
    static const char *const modes[] = {"", "racy", "ordered", "apart", "together", "serial", "overtaken"};
    int mode = 0;
    for (int i = 1; argc > 1 && i < 7; i++)
        if (!strcmp(argv[1], modes[i])) mode = i;
    return one_process(mode);
}
