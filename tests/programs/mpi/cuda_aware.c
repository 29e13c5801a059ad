// What a CUDA-aware MPI library does with device memory, in front of one that is not: the bytes go
// through memory of the host, by copies on the legacy default stream.
//
// Knows blocking and non-blocking sends and receives, their waits, and a few collectives: what the
// tests send from device memory.

#include <mpi.h>

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

// Requests whose bytes wait in memory of the host.
static struct { MPI_Request request; void *device, *host; size_t bytes; int used; } pending[MOST];

static int on_device(const void *p) {
    struct cudaPointerAttributes found;
    if (p == MPI_IN_PLACE || cudaPointerGetAttributes(&found, p) != cudaSuccess) return cudaGetLastError(), 0;
    return found.type == cudaMemoryTypeDevice;
}

static size_t size_of(int count, MPI_Datatype type) {
    int size = 0;
    PMPI_Type_size(type, &size);
    return (size_t)count * (size_t)size;
}

static void *staged(const void *device, size_t bytes) {
    void *host = malloc(bytes ? bytes : 1);
    if (device) cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost);
    return host;
}

static void keep(MPI_Request request, void *device, void *host, size_t bytes) {
    for (int i = 0; i < MOST; ++i)
        if (!pending[i].used) {
            pending[i].request = request, pending[i].device = device, pending[i].host = host;
            pending[i].bytes = bytes, pending[i].used = 1;
            return;
        }
    abort();
}

static void finish(MPI_Request request) {
    for (int i = 0; i < MOST; ++i)
        if (pending[i].used && pending[i].request == request) {
            if (pending[i].device)
                cudaMemcpy(pending[i].device, pending[i].host, pending[i].bytes, cudaMemcpyHostToDevice);
            free(pending[i].host);
            pending[i].used = 0;
            return;
        }
}

int MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    if (!on_device(buf)) return PMPI_Send(buf, count, type, dest, tag, comm);
    void *host = staged(buf, size_of(count, type));
    int result = PMPI_Send(host, count, type, dest, tag, comm);
    free(host);
    return result;
}

int MPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
    if (!on_device(buf)) return PMPI_Recv(buf, count, type, source, tag, comm, status);
    size_t bytes = size_of(count, type);
    void *host = staged(NULL, bytes);
    int result = PMPI_Recv(host, count, type, source, tag, comm, status);
    cudaMemcpy(buf, host, bytes, cudaMemcpyHostToDevice);
    free(host);
    return result;
}

int MPI_Isend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request) {
    if (!on_device(buf)) return PMPI_Isend(buf, count, type, dest, tag, comm, request);
    void *host = staged(buf, size_of(count, type));
    int result = PMPI_Isend(host, count, type, dest, tag, comm, request);
    keep(*request, NULL, host, 0);
    return result;
}

int MPI_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request) {
    if (!on_device(buf)) return PMPI_Irecv(buf, count, type, source, tag, comm, request);
    size_t bytes = size_of(count, type);
    void *host = staged(NULL, bytes);
    int result = PMPI_Irecv(host, count, type, source, tag, comm, request);
    keep(*request, buf, host, bytes);
    return result;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    MPI_Request before = *request;
    int result = PMPI_Wait(request, status);
    finish(before);
    return result;
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses) {
    MPI_Request *before = malloc(sizeof *before * (count > 0 ? count : 1));
    memcpy(before, requests, sizeof *before * count);
    int result = PMPI_Waitall(count, requests, statuses);
    for (int i = 0; i < count; ++i) finish(before[i]);
    free(before);
    return result;
}

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    if (!on_device(recv)) return PMPI_Allreduce(send, recv, count, type, op, comm);
    size_t bytes = size_of(count, type);
    void *from = staged(send == MPI_IN_PLACE ? recv : send, bytes), *to = staged(NULL, bytes);
    int result = PMPI_Allreduce(from, to, count, type, op, comm);
    cudaMemcpy(recv, to, bytes, cudaMemcpyHostToDevice);
    free(from);
    free(to);
    return result;
}
