// Races with MPI's calls, and their mended twins: `cases NAME [fixed]`.
//
// One process sends to itself. Memory is managed, which every MPI library can read; the names that
// end in `-pinned` and `-device` say otherwise. Kernels run on a non-blocking stream.

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int N = 1 << 12;
constexpr int TAG = 7;

__global__ void fill(float *x, int n, float value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value;
}

__global__ void column(float *x, int rows, int pitch, int at, float value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows) x[i * pitch + at] = value;
}

__global__ void scale(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

cudaStream_t stream;
bool fixed;
std::string name;

float *memory(int n = N) {
    void *p = nullptr;
    if (name.size() > 7 && name.substr(name.size() - 7) == "-pinned")
        cudaMallocHost(&p, n * sizeof(float));
    else if (name.size() > 7 && name.substr(name.size() - 7) == "-device")
        cudaMalloc(&p, n * sizeof(float));
    else
        cudaMallocManaged(&p, n * sizeof(float));
    return static_cast<float *>(p);
}

bool is(const char *what) { return name == what || name.rfind(std::string(what) + "-", 0) == 0; }

void run(float *x, int n = N) { fill<<<(n + 255) / 256, 256, 0, stream>>>(x, n, 1.0f); }
void read(const float *x, float *y, int n = N) { scale<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n); }
void wait() { cudaStreamSynchronize(stream); }
void mended() { if (fixed) wait(); }

// A message to this process itself, which the other side receives into plain memory.
MPI_Request sink(void *into, int bytes) {
    MPI_Request request;
    MPI_Irecv(into, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
    return request;
}

void done(MPI_Request &request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

}  // namespace

int main(int argc, char **argv) {
    name = argc > 1 ? argv[1] : "";
    fixed = argc > 2 && !strcmp(argv[2], "fixed");
    MPI_Init(&argc, &argv);
    // The stand-in's copies wait for blocking streams: if they counted, they would order.
    const bool blocking = name.rfind("transport", 0) == 0;
    cudaStreamCreateWithFlags(&stream, blocking ? cudaStreamDefault : cudaStreamNonBlocking);
    const MPI_Comm all = MPI_COMM_WORLD;
    auto *plain = static_cast<float *>(calloc(4 * N, sizeof(float)));
    float *x = memory(4 * N), *y = memory(4 * N);
    const int bytes = N * sizeof(float);
    fill<<<64, 256, 0, stream>>>(x, 4 * N, 0.0f);
    fill<<<64, 256, 0, stream>>>(y, 4 * N, 0.0f);
    wait();
    MPI_Request request, other, some[2];
    int flag = 0, index = 0, indices[2];

    if (is("send")) {  // The kernel still writes what is sent.
        other = sink(plain, bytes);
        run(x);
        mended();
        MPI_Send(x, N, MPI_FLOAT, 0, TAG, all);
        done(other);
        wait();
    } else if (is("ssend")) {
        other = sink(plain, bytes);
        run(x);
        mended();
        MPI_Ssend(x, N, MPI_FLOAT, 0, TAG, all);
        done(other);
        wait();
    } else if (is("recv")) {  // The kernel still reads what is received.
        MPI_Isend(plain, bytes, MPI_BYTE, 0, TAG, all, &other);
        read(x, y);
        mended();
        MPI_Recv(x, N, MPI_FLOAT, 0, TAG, all, MPI_STATUS_IGNORE);
        done(other);
        wait();
    } else if (is("isend")) {  // The kernel overwrites what is on its way.
        other = sink(plain, bytes);
        MPI_Isend(x, N, MPI_FLOAT, 0, TAG, all, &request);
        if (fixed) done(request);
        run(x);
        if (!fixed) done(request);
        done(other);
        wait();
    } else if (is("irecv")) {  // The kernel reads what has not arrived.
        MPI_Irecv(x, N, MPI_FLOAT, 0, TAG, all, &request);
        MPI_Send(plain, bytes, MPI_BYTE, 0, TAG, all);
        if (fixed) done(request);
        read(x, y);
        if (!fixed) done(request);
        wait();
    } else if (is("devicesync")) {  // Waiting for the device is no wait for a request.
        MPI_Irecv(x, N, MPI_FLOAT, 0, TAG, all, &request);
        MPI_Send(plain, bytes, MPI_BYTE, 0, TAG, all);
        if (fixed) done(request);
        cudaDeviceSynchronize();
        run(x);
        if (!fixed) done(request);
        wait();
    } else if (is("test")) {  // A test that says no is no wait.
        MPI_Irecv(x, N, MPI_FLOAT, 0, TAG, all, &request);
        if (fixed) {
            MPI_Send(plain, bytes, MPI_BYTE, 0, TAG, all);
            while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        } else {
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        }
        read(x, y);
        if (!fixed) {
            MPI_Send(plain, bytes, MPI_BYTE, 0, TAG, all);
            done(request);
        }
        wait();
    } else if (is("waitall") || is("waitany") || is("waitsome") || is("testall") || is("testany")) {
        MPI_Irecv(x, N, MPI_FLOAT, 0, TAG, all, &some[0]);
        MPI_Irecv(y, N, MPI_FLOAT, 0, TAG + 1, all, &some[1]);
        MPI_Send(plain, bytes, MPI_BYTE, 0, TAG, all);
        if (is("waitany")) {
            MPI_Waitany(2, some, &index, MPI_STATUS_IGNORE);
            if (index != 0) return 3;
            run(fixed ? x : y);
        }
        MPI_Send(plain, bytes, MPI_BYTE, 0, TAG + 1, all);
        if (!fixed && !is("waitany")) run(y);
        if (is("waitall")) {
            MPI_Waitall(2, some, MPI_STATUSES_IGNORE);
        } else if (is("waitsome")) {
            for (int left = 2, count; left > 0; left -= count)
                MPI_Waitsome(2, some, &count, indices, MPI_STATUSES_IGNORE);
        } else if (is("testall")) {
            while (!flag) MPI_Testall(2, some, &flag, MPI_STATUSES_IGNORE);
        } else if (is("testany")) {
            for (int left = 2; left > 0; left -= flag) MPI_Testany(2, some, &index, &flag, MPI_STATUS_IGNORE);
        } else {
            MPI_Waitall(2, some, MPI_STATUSES_IGNORE);
        }
        run(x);
        run(y);
        wait();
    } else if (is("sendrecv")) {
        run(x);
        mended();
        MPI_Sendrecv(x, N, MPI_FLOAT, 0, TAG, plain, N, MPI_FLOAT, 0, TAG, all, MPI_STATUS_IGNORE);
        wait();
    } else if (is("replace")) {
        read(x, y);
        mended();
        MPI_Sendrecv_replace(x, N, MPI_FLOAT, 0, TAG, 0, TAG, all, MPI_STATUS_IGNORE);
        wait();
    } else if (is("persistent")) {
        MPI_Recv_init(x, N, MPI_FLOAT, 0, TAG, all, &request);
        for (int round = 0; round < 3; ++round) {
            MPI_Start(&request);
            MPI_Send(plain, bytes, MPI_BYTE, 0, TAG, all);
            if (fixed || round < 2) MPI_Wait(&request, MPI_STATUS_IGNORE);
            read(x, y);
            wait();
        }
        if (!fixed) MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    } else if (is("startall")) {
        MPI_Recv_init(x, N, MPI_FLOAT, 0, TAG, all, &some[0]);
        MPI_Send_init(y, N, MPI_FLOAT, 0, TAG, all, &some[1]);
        MPI_Startall(2, some);
        if (!fixed) run(y);
        MPI_Waitall(2, some, MPI_STATUSES_IGNORE);
        if (fixed) run(y);
        wait();
        for (auto &one : some) MPI_Request_free(&one);
    } else if (is("vector")) {  // A column is sent: the kernel writes it, or the one beside it.
        MPI_Datatype type;
        MPI_Type_vector(64, 1, 64, MPI_FLOAT, &type);
        MPI_Type_commit(&type);
        other = sink(plain, 64 * sizeof(float));
        column<<<1, 64, 0, stream>>>(x, 64, 64, fixed ? 4 : 3, 1.0f);
        MPI_Send(x + 3, 1, type, 0, TAG, all);
        done(other);
        wait();
        MPI_Type_free(&type);
    } else if (is("subarray")) {
        const int sizes[2] = {64, 64}, parts[2] = {8, 8}, starts[2] = {2, 16};
        MPI_Datatype type;
        MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_FLOAT, &type);
        MPI_Type_commit(&type);
        other = sink(plain, 64 * sizeof(float));
        column<<<1, 64, 0, stream>>>(x, 64, 64, fixed ? 24 : 23, 1.0f);
        MPI_Send(x, 1, type, 0, TAG, all);
        done(other);
        wait();
        MPI_Type_free(&type);
    } else if (is("struct")) {  // Absolute addresses, from MPI_BOTTOM.
        int lengths[2] = {16, 16};
        MPI_Aint places[2];
        MPI_Get_address(x, &places[0]);
        MPI_Get_address(y + 1000, &places[1]);
        MPI_Datatype types[2] = {MPI_FLOAT, MPI_FLOAT}, type;
        MPI_Type_create_struct(2, lengths, places, types, &type);
        MPI_Type_commit(&type);
        other = sink(plain, 32 * sizeof(float));
        fill<<<1, 16, 0, stream>>>(fixed ? y + 1016 : y + 1008, 16, 1.0f);
        MPI_Send(MPI_BOTTOM, 1, type, 0, TAG, all);
        done(other);
        wait();
        MPI_Type_free(&type);
    } else if (is("halves")) {  // One half is sent while the kernel writes the other.
        other = sink(plain, bytes / 2);
        run(fixed ? x + N / 2 : x + N / 2 - 1, N / 2);
        MPI_Send(x, N / 2, MPI_FLOAT, 0, TAG, all);
        done(other);
        wait();
    } else if (is("nobody")) {  // To nobody, nothing is sent.
        run(x);
        if (!fixed) other = sink(plain, bytes);
        MPI_Send(x, N, MPI_FLOAT, fixed ? MPI_PROC_NULL : 0, TAG, all);
        if (!fixed) done(other);
        wait();
    } else if (is("bcast")) {
        run(x);
        mended();
        MPI_Bcast(x, N, MPI_FLOAT, 0, all);
        wait();
    } else if (is("allreduce")) {
        run(x);
        mended();
        MPI_Allreduce(MPI_IN_PLACE, x, N, MPI_FLOAT, MPI_SUM, all);
        wait();
    } else if (is("reduce")) {
        read(y, plain == nullptr ? x : y + N);
        mended();
        MPI_Reduce(x, y + N, N, MPI_FLOAT, MPI_SUM, 0, all);
        wait();
    } else if (is("iallreduce")) {
        MPI_Iallreduce(x, y, N, MPI_FLOAT, MPI_SUM, all, &request);
        if (fixed) done(request);
        run(y);
        if (!fixed) done(request);
        wait();
    } else if (is("gatherv")) {
        const int count = 16, place = 100;
        run(fixed ? y + 116 : y + 115, 16);
        MPI_Gatherv(x, count, MPI_FLOAT, y, &count, &place, MPI_FLOAT, 0, all);
        wait();
    } else if (is("allgather")) {
        run(y);
        mended();
        MPI_Allgather(x, N, MPI_FLOAT, y, N, MPI_FLOAT, all);
        wait();
    } else if (is("alltoallw")) {
        const int count = 16, place = 64;
        MPI_Datatype type = MPI_FLOAT;
        run(fixed ? y + 32 : y + 31, 16);
        MPI_Alltoallw(x, &count, &place, &type, y, &count, &place, &type, all);
        wait();
    } else if (is("scatter-inplace")) {
        // The root's own block stays in place: alone it sends nothing.
        int rank, size;
        MPI_Comm_rank(all, &rank);
        MPI_Comm_size(all, &size);
        run(y);
        void *to = rank == 0 ? MPI_IN_PLACE : (void *)plain;
        if (!fixed) MPI_Scatter(y, N / size, MPI_FLOAT, to, N / size, MPI_FLOAT, 0, all);
        wait();
    } else if (is("put") || is("get") || is("accumulate") || is("rput") || is("flush")) {
        MPI_Win window;
        MPI_Win_create(plain, bytes, sizeof(float), MPI_INFO_NULL, all, &window);
        const bool locked = is("rput") || is("flush");
        if (locked) MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window); else MPI_Win_fence(0, window);
        if (is("put") || is("flush")) MPI_Put(x, N, MPI_FLOAT, 0, 0, N, MPI_FLOAT, window);
        if (is("get")) MPI_Get(x, N, MPI_FLOAT, 0, 0, N, MPI_FLOAT, window);
        if (is("accumulate")) MPI_Accumulate(x, N, MPI_FLOAT, 0, 0, N, MPI_FLOAT, MPI_SUM, window);
        if (is("rput")) MPI_Rput(x, N, MPI_FLOAT, 0, 0, N, MPI_FLOAT, window, &request);
        if (!fixed) run(x);
        if (is("rput")) done(request);
        if (is("flush")) MPI_Win_flush_local(0, window);
        if (!locked) MPI_Win_fence(0, window);
        if (fixed) run(x);
        if (locked) MPI_Win_unlock(0, window);
        wait();
        MPI_Win_free(&window);
    } else if (is("pack")) {
        int position = 0;
        run(x);
        mended();
        MPI_Pack(x, N, MPI_FLOAT, plain, bytes, &position, all);
        wait();
    } else if (is("upload")) {  // The copy still reads what is received.
        void *device = nullptr;
        cudaMalloc(&device, bytes);
        cudaMemcpyAsync(device, x, bytes, cudaMemcpyDefault, stream);
        MPI_Isend(plain, bytes, MPI_BYTE, 0, TAG, all, &other);
        mended();
        MPI_Recv(x, N, MPI_FLOAT, 0, TAG, all, MPI_STATUS_IGNORE);
        done(other);
        wait();
    } else if (is("transport")) {
        other = sink(plain, bytes);
        run(x);
        mended();
        MPI_Send(x, N, MPI_FLOAT, 0, TAG, all);
        done(other);
        read(x, y);
        wait();
    } else {
        fprintf(stderr, "no case '%s'\n", name.c_str());
        return 2;
    }
    wait();
    MPI_Finalize();
    puts("done");
    return 0;
}
