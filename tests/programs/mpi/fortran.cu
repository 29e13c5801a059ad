// MPI's functions as a Fortran compiler calls them: `fortran NAME [fixed]`. See `cases.cu`.

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void mpi_send_(void *, int *, int *, int *, int *, int *, int *);
void mpi_irecv_(void *, int *, int *, int *, int *, int *, int *, int *);
void mpi_wait_(int *, int *, int *);
void mpi_waitany_(int *, int *, int *, int *, int *);
}

__global__ void fill(float *x, int n, float value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value;
}

__global__ void scale(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    const bool fixed = argc > 2 && !strcmp(argv[2], "fixed");
    MPI_Init(&argc, &argv);
    constexpr int N = 4096;
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    float *x, *y;
    cudaMallocManaged(&x, N * sizeof(float));
    cudaMallocManaged(&y, N * sizeof(float));
    auto *plain = static_cast<float *>(calloc(N, sizeof(float)));
    int n = N, type = MPI_Type_c2f(MPI_FLOAT), self = 0, tag = 7, other = 8, comm = MPI_Comm_c2f(MPI_COMM_WORLD);
    int requests[2], status[16], error = -1, index = -1, two = 2;
    auto run = [&](float *at) { fill<<<N / 256, 256, 0, stream>>>(at, N, 1.0f); };
    if (!strcmp(name, "send")) {
        mpi_irecv_(plain, &n, &type, &self, &tag, &comm, &requests[0], &error);
        run(x);
        if (fixed) cudaStreamSynchronize(stream);
        mpi_send_(x, &n, &type, &self, &tag, &comm, &error);
        mpi_wait_(&requests[0], status, &error);
    } else if (!strcmp(name, "irecv")) {
        mpi_irecv_(x, &n, &type, &self, &tag, &comm, &requests[0], &error);
        mpi_send_(plain, &n, &type, &self, &tag, &comm, &error);
        if (fixed) mpi_wait_(&requests[0], status, &error);
        scale<<<N / 256, 256, 0, stream>>>(x, y, N);
        if (!fixed) mpi_wait_(&requests[0], status, &error);
    } else if (!strcmp(name, "waitany")) {  // Fortran counts from 1: the second is complete.
        mpi_irecv_(x, &n, &type, &self, &tag, &comm, &requests[0], &error);
        mpi_irecv_(y, &n, &type, &self, &other, &comm, &requests[1], &error);
        mpi_send_(plain, &n, &type, &self, &other, &comm, &error);
        mpi_waitany_(&two, requests, &index, status, &error);
        if (index != 2) return 3;
        run(fixed ? y : x);
        mpi_send_(plain, &n, &type, &self, &tag, &comm, &error);
        mpi_wait_(&requests[0], status, &error);
    } else {
        fprintf(stderr, "no case '%s'\n", name);
        return 2;
    }
    if (error != 0) return 4;
    cudaStreamSynchronize(stream);
    MPI_Finalize();
    puts("done");
    return 0;
}
