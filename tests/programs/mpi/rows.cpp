// One race with each of MPI's functions, or its mended twin: `rows [fixed]`. Prints the functions.
//
// One process sends to itself. Managed memory is filled on a non-blocking stream, which the host has
// not waited for (blocking functions), or while a request is under way (the others). With
// `-DLARGE` the functions with large counts are called; functions of MPI 4 only where there are any.

#include <mpi.h>

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int N = 256;
constexpr int TAG = 7;

#ifdef LARGE
#define F(name) name##_c
using Count = MPI_Count;
using Displacement = MPI_Aint;
#else
#define F(name) name
using Count = int;
using Displacement = int;
#endif

#define HAS_4 (MPI_VERSION >= 4)
#define HAS_41 (MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1))

cudaStream_t stream;
bool fixed;
float *x, *plain;
const MPI_Comm all = MPI_COMM_WORLD;
MPI_Status *const ignored = MPI_STATUS_IGNORE;

void fill() { cudaMemsetAsync(x, 1, N * sizeof(float), stream); }
void wait() { cudaStreamSynchronize(stream); }
void wait(MPI_Request &request) { MPI_Wait(&request, ignored); }

// The other side of a message, in plain memory.
MPI_Request into_plain() {
    MPI_Request request;
    MPI_Irecv(plain, N, MPI_FLOAT, 0, TAG, all, &request);
    return request;
}
MPI_Request from_plain() {
    MPI_Request request;
    MPI_Isend(plain, N, MPI_FLOAT, 0, TAG, all, &request);
    return request;
}

// A function that touches `x` during the call.
template <class Call> void during(const char *name, Call call) {
    puts(name);
    fill();
    if (fixed) wait();
    call();
    wait();
}

// A function that touches `x` until `finish`, which runs before the fill in the twin.
template <class Begin, class Finish> void until(const char *name, Begin begin, Finish finish) {
    puts(name);
    begin();
    if (!fixed) fill();
    finish();
    if (fixed) fill();
    wait();
}

template <class Begin> void request(const char *name, Begin begin) {
    MPI_Request made;
    until(name, [&] { begin(&made); }, [&] { wait(made); });
}

// A persistent request.
template <class Begin> void started(const char *name, Begin begin) {
    MPI_Request made;
    begin(&made);
    until(name, [&] { MPI_Start(&made); }, [&] { wait(made); });
    MPI_Request_free(&made);
}

#define DURING(name, ...) during(#name, [&] { F(name)(__VA_ARGS__); })
#define REQUEST(name, ...) request(#name, [&](MPI_Request *r) { F(name)(__VA_ARGS__, r); })
#define STARTED(name, ...) started(#name, [&](MPI_Request *r) { F(name)(__VA_ARGS__, r); })
// With a message to plain memory, or from there.
#define TO(made, ...) do { MPI_Request other = into_plain(); made(__VA_ARGS__); wait(other); } while (0)
#define FROM(made, ...) do { MPI_Request other = from_plain(); made(__VA_ARGS__); wait(other); } while (0)

void messages() {
    TO(DURING, MPI_Send, x, N, MPI_FLOAT, 0, TAG, all);
    TO(DURING, MPI_Bsend, x, N, MPI_FLOAT, 0, TAG, all);
    TO(DURING, MPI_Ssend, x, N, MPI_FLOAT, 0, TAG, all);
    TO(DURING, MPI_Rsend, x, N, MPI_FLOAT, 0, TAG, all);
    FROM(DURING, MPI_Recv, x, N, MPI_FLOAT, 0, TAG, all, ignored);
    {
        MPI_Request other = from_plain();
        MPI_Message message;
        MPI_Mprobe(0, TAG, all, &message, ignored);
        DURING(MPI_Mrecv, x, N, MPI_FLOAT, &message, ignored);
        wait(other);
        other = from_plain();
        MPI_Mprobe(0, TAG, all, &message, ignored);
        REQUEST(MPI_Imrecv, x, N, MPI_FLOAT, &message);
        wait(other);
    }
    DURING(MPI_Sendrecv, plain, N, MPI_FLOAT, 0, TAG, x, N, MPI_FLOAT, 0, TAG, all, ignored);
    DURING(MPI_Sendrecv_replace, x, N, MPI_FLOAT, 0, TAG, 0, TAG, all, ignored);
    TO(REQUEST, MPI_Isend, x, N, MPI_FLOAT, 0, TAG, all);
    TO(REQUEST, MPI_Ibsend, x, N, MPI_FLOAT, 0, TAG, all);
    TO(REQUEST, MPI_Issend, x, N, MPI_FLOAT, 0, TAG, all);
    TO(REQUEST, MPI_Irsend, x, N, MPI_FLOAT, 0, TAG, all);
    FROM(REQUEST, MPI_Irecv, x, N, MPI_FLOAT, 0, TAG, all);
    TO(STARTED, MPI_Send_init, x, N, MPI_FLOAT, 0, TAG, all);
    TO(STARTED, MPI_Bsend_init, x, N, MPI_FLOAT, 0, TAG, all);
    TO(STARTED, MPI_Ssend_init, x, N, MPI_FLOAT, 0, TAG, all);
    TO(STARTED, MPI_Rsend_init, x, N, MPI_FLOAT, 0, TAG, all);
    FROM(STARTED, MPI_Recv_init, x, N, MPI_FLOAT, 0, TAG, all);
#if HAS_4
    REQUEST(MPI_Isendrecv, plain, N, MPI_FLOAT, 0, TAG, x, N, MPI_FLOAT, 0, TAG, all);
    REQUEST(MPI_Isendrecv_replace, x, N, MPI_FLOAT, 0, TAG, 0, TAG, all);
#endif
}

void packing() {
    char *const packed = reinterpret_cast<char *>(x), *const outside = reinterpret_cast<char *>(plain);
    Count at = 0;
    MPI_Aint at_external = 0;
#ifdef LARGE
    MPI_Count &position = at, external = 0;
#else
    int &position = at;
    MPI_Aint &external = at_external;
#endif
    const int bytes = N * sizeof(float);
    DURING(MPI_Pack, x, N, MPI_FLOAT, outside, bytes, &position, all);
    position = 0;
    DURING(MPI_Unpack, packed, bytes, &position, plain, N, MPI_FLOAT, all);
    DURING(MPI_Pack_external, "external32", x, N, MPI_FLOAT, outside, bytes, &external);
    external = 0;
    DURING(MPI_Unpack_external, "external32", packed, bytes, &external, plain, N, MPI_FLOAT);
    DURING(MPI_Reduce_local, plain, x, N, MPI_FLOAT, MPI_SUM);
    (void)at_external;
}

const Count counts[1] = {N};
const Displacement places[1] = {0};
const MPI_Datatype types[1] = {MPI_FLOAT};

// Blocking, non-blocking and persistent.
#if HAS_4
#define THRICE(name, lower, ...)                                                                                       \
    DURING(MPI_##name, __VA_ARGS__);                                                                                   \
    REQUEST(MPI_I##lower, __VA_ARGS__);                                                                                \
    STARTED(MPI_##name##_init, __VA_ARGS__, MPI_INFO_NULL)
#else
#define THRICE(name, lower, ...)                                                                                       \
    DURING(MPI_##name, __VA_ARGS__);                                                                                   \
    REQUEST(MPI_I##lower, __VA_ARGS__)
#endif

void collectives() {
    THRICE(Bcast, bcast, x, N, MPI_FLOAT, 0, all);
    THRICE(Gather, gather, plain, N, MPI_FLOAT, x, N, MPI_FLOAT, 0, all);
    THRICE(Gatherv, gatherv, plain, N, MPI_FLOAT, x, counts, places, MPI_FLOAT, 0, all);
    THRICE(Scatter, scatter, x, N, MPI_FLOAT, plain, N, MPI_FLOAT, 0, all);
    THRICE(Scatterv, scatterv, x, counts, places, MPI_FLOAT, plain, N, MPI_FLOAT, 0, all);
    THRICE(Allgather, allgather, plain, N, MPI_FLOAT, x, N, MPI_FLOAT, all);
    THRICE(Allgatherv, allgatherv, plain, N, MPI_FLOAT, x, counts, places, MPI_FLOAT, all);
    THRICE(Alltoall, alltoall, x, N, MPI_FLOAT, plain, N, MPI_FLOAT, all);
    THRICE(Alltoallv, alltoallv, x, counts, places, MPI_FLOAT, plain, counts, places, MPI_FLOAT, all);
    THRICE(Alltoallw, alltoallw, x, counts, places, types, plain, counts, places, types, all);
    THRICE(Reduce, reduce, x, plain, N, MPI_FLOAT, MPI_SUM, 0, all);
    THRICE(Allreduce, allreduce, x, plain, N, MPI_FLOAT, MPI_SUM, all);
    THRICE(Reduce_scatter, reduce_scatter, x, plain, counts, MPI_FLOAT, MPI_SUM, all);
    THRICE(Reduce_scatter_block, reduce_scatter_block, x, plain, N, MPI_FLOAT, MPI_SUM, all);
    THRICE(Scan, scan, x, plain, N, MPI_FLOAT, MPI_SUM, all);
    THRICE(Exscan, exscan, x, plain, N, MPI_FLOAT, MPI_SUM, all);
}

void neighbours() {
    // A grid of one process that is its own neighbour.
    const int size[1] = {1}, periods[1] = {1};
    const Count two[2] = {N / 2, N / 2};
    const Displacement halves[2] = {0, N / 2};
    const MPI_Aint bytes[2] = {0, N / 2 * sizeof(float)};
    const MPI_Datatype both[2] = {MPI_FLOAT, MPI_FLOAT};
    MPI_Comm ring;
    MPI_Cart_create(all, 1, size, periods, 0, &ring);
    THRICE(Neighbor_allgather, neighbor_allgather, x, N / 2, MPI_FLOAT, plain, N / 2, MPI_FLOAT, ring);
    THRICE(Neighbor_allgatherv, neighbor_allgatherv, x, N / 2, MPI_FLOAT, plain, two, halves, MPI_FLOAT, ring);
    THRICE(Neighbor_alltoall, neighbor_alltoall, plain, N / 2, MPI_FLOAT, x, N / 2, MPI_FLOAT, ring);
    THRICE(Neighbor_alltoallv, neighbor_alltoallv, plain, two, halves, MPI_FLOAT, x, two, halves, MPI_FLOAT, ring);
    THRICE(Neighbor_alltoallw, neighbor_alltoallw, plain, two, bytes, both, x, two, bytes, both, ring);
    MPI_Comm_free(&ring);
}

void one_sided() {
    MPI_Win window;
    MPI_Group group;
    MPI_Comm_group(all, &group);
    MPI_Win_create(plain, N * sizeof(float), sizeof(float), MPI_INFO_NULL, all, &window);
    auto put = [&] { F(MPI_Put)(x, N, MPI_FLOAT, 0, 0, N, MPI_FLOAT, window); };
    auto fence = [&] { MPI_Win_fence(0, window); };
    fence();
#define FENCED(name, ...) until(#name, [&] { F(name)(__VA_ARGS__); }, fence)
    FENCED(MPI_Put, x, N, MPI_FLOAT, 0, 0, N, MPI_FLOAT, window);
    FENCED(MPI_Get, x, N, MPI_FLOAT, 0, 0, N, MPI_FLOAT, window);
    FENCED(MPI_Accumulate, x, N, MPI_FLOAT, 0, 0, N, MPI_FLOAT, MPI_SUM, window);
    FENCED(MPI_Get_accumulate, plain + N, N, MPI_FLOAT, x, N, MPI_FLOAT, 0, 0, N, MPI_FLOAT, MPI_SUM, window);
    until("MPI_Fetch_and_op", [&] { MPI_Fetch_and_op(plain + N, x, MPI_FLOAT, 0, 0, MPI_SUM, window); }, fence);
    until("MPI_Compare_and_swap",
          [&] { MPI_Compare_and_swap(plain + N, plain + N + 1, x, MPI_INT, 0, 0, window); }, fence);
    MPI_Win_post(group, 0, window), MPI_Win_start(group, 0, window);
    until("MPI_Win_complete", put, [&] { MPI_Win_complete(window); });
    MPI_Win_wait(window);
    auto lock = [&] { MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window); };
    auto unlock = [&] { MPI_Win_unlock(0, window); };
    lock();
    REQUEST(MPI_Rput, x, N, MPI_FLOAT, 0, 0, N, MPI_FLOAT, window);
    REQUEST(MPI_Rget, x, N, MPI_FLOAT, 0, 0, N, MPI_FLOAT, window);
    REQUEST(MPI_Raccumulate, x, N, MPI_FLOAT, 0, 0, N, MPI_FLOAT, MPI_SUM, window);
    REQUEST(MPI_Rget_accumulate, plain + N, N, MPI_FLOAT, x, N, MPI_FLOAT, 0, 0, N, MPI_FLOAT, MPI_SUM, window);
    until("MPI_Win_flush", put, [&] { MPI_Win_flush(0, window); });
    until("MPI_Win_flush_local", put, [&] { MPI_Win_flush_local(0, window); });
    until("MPI_Win_flush_all", put, [&] { MPI_Win_flush_all(window); });
    until("MPI_Win_flush_local_all", put, [&] { MPI_Win_flush_local_all(window); });
    until("MPI_Win_unlock", put, unlock);
    MPI_Win_lock_all(0, window);
    until("MPI_Win_unlock_all", put, [&] { MPI_Win_unlock_all(window); });
    MPI_Group_free(&group);
    MPI_Win_free(&window);
}

void completion() {
    MPI_Request some[2];
    int flag = 0, number = 0, index = 0, indices[2];
    auto begin = [&] {
        some[0] = from_plain();
        MPI_Irecv(x, N, MPI_FLOAT, 0, TAG, all, &some[1]);
    };
    auto until_set = [&](auto test) { for (flag = 0; !flag;) test(); };
    until("MPI_Test", begin, [&] { until_set([&] { MPI_Test(&some[1], &flag, ignored); }); });
    wait(some[0]);
    until("MPI_Waitall", begin, [&] { MPI_Waitall(2, some, MPI_STATUSES_IGNORE); });
    until("MPI_Testall", begin, [&] { until_set([&] { MPI_Testall(2, some, &flag, MPI_STATUSES_IGNORE); }); });
    until("MPI_Waitany", begin, [&] {
        for (int i = 0; i < 2; ++i) MPI_Waitany(2, some, &index, ignored);
    });
    until("MPI_Testany", begin, [&] {
        for (int left = 2; left > 0; left -= flag) MPI_Testany(2, some, &index, &flag, ignored);
    });
    until("MPI_Waitsome", begin, [&] {
        for (int left = 2; left > 0; left -= number) MPI_Waitsome(2, some, &number, indices, MPI_STATUSES_IGNORE);
    });
    until("MPI_Testsome", begin, [&] {
        for (int left = 2; left > 0; left -= number) MPI_Testsome(2, some, &number, indices, MPI_STATUSES_IGNORE);
    });
    until("MPI_Request_get_status", begin,
          [&] { until_set([&] { MPI_Request_get_status(some[1], &flag, ignored); }); });
    MPI_Waitall(2, some, MPI_STATUSES_IGNORE);
#if HAS_41
    until("MPI_Request_get_status_all", begin,
          [&] { until_set([&] { MPI_Request_get_status_all(2, some, &flag, MPI_STATUSES_IGNORE); }); });
    MPI_Waitall(2, some, MPI_STATUSES_IGNORE);
    until("MPI_Request_get_status_any", begin,
          [&] { until_set([&] { MPI_Request_get_status_any(1, some + 1, &index, &flag, ignored); }); });
    MPI_Waitall(2, some, MPI_STATUSES_IGNORE);
    until("MPI_Request_get_status_some", begin, [&] {
        for (number = 0; number < 1;)
            MPI_Request_get_status_some(1, some + 1, &number, indices, MPI_STATUSES_IGNORE);
    });
    MPI_Waitall(2, some, MPI_STATUSES_IGNORE);
#endif
}

void partitions() {
#if HAS_4
    // Two halves: each belongs to MPI from its own moment on.
    MPI_Request from, to;
    int flag = 0;
    int both[2] = {0, 1};
    auto half = [&] { cudaMemsetAsync(x, 2, N / 2 * sizeof(float), stream); };
    for (int way = 0; way < 4; ++way) {
        puts(way == 0 ? "MPI_Pready" : way == 1 ? "MPI_Pready_range" : way == 2 ? "MPI_Pready_list" : "MPI_Parrived");
        float *const out = way < 3 ? x : plain, *const in = way < 3 ? plain : x;
        MPI_Psend_init(out, 2, N / 2, MPI_FLOAT, 0, TAG, all, MPI_INFO_NULL, &from);
        MPI_Precv_init(in, 2, N / 2, MPI_FLOAT, 0, TAG, all, MPI_INFO_NULL, &to);
        MPI_Start(&from), MPI_Start(&to);
        if (way < 3) {
            // The first half is not ready yet: it may be written.
            if (way == 0) MPI_Pready(1, from);
            half();
            if (fixed) wait();
            if (way == 0) MPI_Pready(0, from);
            if (way == 1) MPI_Pready_range(0, 1, from);
            if (way == 2) MPI_Pready_list(2, both, from);
        } else {
            MPI_Pready_range(0, 1, from);
            if (!fixed) half();
            while (!flag) MPI_Parrived(to, 0, &flag);
            if (fixed) half();  // Of the other half nothing is known.
        }
        wait(from), wait(to);
        wait();
        MPI_Request_free(&from), MPI_Request_free(&to);
    }
#endif
}

void files(const char *folder) {
    char name[4096];
    snprintf(name, sizeof name, "%s/rows.%d", folder, rand());
    MPI_File file;
    MPI_File_open(all, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    auto rewind = [&] { MPI_File_seek(file, 0, MPI_SEEK_SET), MPI_File_seek_shared(file, 0, MPI_SEEK_SET); };
#define FILED(kind, name, ...) rewind(), kind(name, __VA_ARGS__)
#define FILE_REQUEST(name, ...) rewind(), request(#name, [&](MPI_Request *r) { F(name)(__VA_ARGS__, r); })
#define HALVES(name, ...)                                                                                              \
    rewind(), until(#name "_begin", [&] { F(name##_begin)(__VA_ARGS__); }, [&] { name##_end(file, x, ignored); })
    DURING(MPI_File_write, file, x, N, MPI_FLOAT, ignored);
    FILED(DURING, MPI_File_write_all, file, x, N, MPI_FLOAT, ignored);
    DURING(MPI_File_write_at, file, 0, x, N, MPI_FLOAT, ignored);
    DURING(MPI_File_write_at_all, file, 0, x, N, MPI_FLOAT, ignored);
    FILED(DURING, MPI_File_write_shared, file, x, N, MPI_FLOAT, ignored);
    FILED(DURING, MPI_File_write_ordered, file, x, N, MPI_FLOAT, ignored);
    FILE_REQUEST(MPI_File_iwrite, file, x, N, MPI_FLOAT);
    FILE_REQUEST(MPI_File_iwrite_all, file, x, N, MPI_FLOAT);
    FILE_REQUEST(MPI_File_iwrite_at, file, 0, x, N, MPI_FLOAT);
    FILE_REQUEST(MPI_File_iwrite_at_all, file, 0, x, N, MPI_FLOAT);
    FILE_REQUEST(MPI_File_iwrite_shared, file, x, N, MPI_FLOAT);
    HALVES(MPI_File_write_all, file, x, N, MPI_FLOAT);
    HALVES(MPI_File_write_at_all, file, 0, x, N, MPI_FLOAT);
    HALVES(MPI_File_write_ordered, file, x, N, MPI_FLOAT);
    FILED(DURING, MPI_File_read, file, x, N, MPI_FLOAT, ignored);
    FILED(DURING, MPI_File_read_all, file, x, N, MPI_FLOAT, ignored);
    DURING(MPI_File_read_at, file, 0, x, N, MPI_FLOAT, ignored);
    DURING(MPI_File_read_at_all, file, 0, x, N, MPI_FLOAT, ignored);
    FILED(DURING, MPI_File_read_shared, file, x, N, MPI_FLOAT, ignored);
    FILED(DURING, MPI_File_read_ordered, file, x, N, MPI_FLOAT, ignored);
    FILE_REQUEST(MPI_File_iread, file, x, N, MPI_FLOAT);
    FILE_REQUEST(MPI_File_iread_all, file, x, N, MPI_FLOAT);
    FILE_REQUEST(MPI_File_iread_at, file, 0, x, N, MPI_FLOAT);
    FILE_REQUEST(MPI_File_iread_at_all, file, 0, x, N, MPI_FLOAT);
    FILE_REQUEST(MPI_File_iread_shared, file, x, N, MPI_FLOAT);
    HALVES(MPI_File_read_all, file, x, N, MPI_FLOAT);
    HALVES(MPI_File_read_at_all, file, 0, x, N, MPI_FLOAT);
    HALVES(MPI_File_read_ordered, file, x, N, MPI_FLOAT);
    MPI_File_close(&file);
}

}  // namespace

int main(int argc, char **argv) {
    fixed = argc > 1 && !strcmp(argv[1], "fixed");
    const char *const folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    setvbuf(stdout, nullptr, _IOLBF, 0);
    MPI_Init(&argc, &argv);
    srand(static_cast<unsigned>(MPI_Wtime() * 1e6));
    static char buffer[1 << 16];
    MPI_Buffer_attach(buffer, sizeof buffer);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    void *managed = nullptr;
    cudaMallocManaged(&managed, N * sizeof(float), cudaMemAttachGlobal);
    x = static_cast<float *>(managed);
    plain = static_cast<float *>(calloc(4 * N, sizeof(float)));
    messages();
    packing();
    collectives();
    neighbours();
    one_sided();
    completion();
    partitions();
    files(folder);
    MPI_Finalize();
    puts("done");
    return 0;
}
