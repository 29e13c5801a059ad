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
void mpi_gather_(void *, int *, int *, void *, int *, int *, int *, int *, int *);
#ifdef OPEN_MPI
// `use mpi_f08`: the last argument may be left out.
void mpi_send_f08_(void *, int *, int *, int *, int *, int *, int *);
void mpi_irecv_f08_(void *, int *, int *, int *, int *, int *, int *, int *);
void mpi_wait_f08_(int *, int *, int *);
extern int mpi_fortran_in_place_, mpi_fortran_bottom_;
#else
extern void *MPIR_F_MPI_IN_PLACE, *MPIR_F_MPI_BOTTOM;
#endif
}

#ifdef OPEN_MPI
void *in_place() { return &mpi_fortran_in_place_; }
void *bottom() { return &mpi_fortran_bottom_; }
#else
void *in_place() { return MPIR_F_MPI_IN_PLACE; }
void *bottom() { return MPIR_F_MPI_BOTTOM; }
#endif

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
    } else if (!strcmp(name, "in-place")) {  // What this process has itself stays where it is.
        int one = 1, root = 0;
        mpi_gather_(plain, &one, &type, plain + 1, &one, &type, &root, &comm, &error);
        run(y);
        mpi_gather_(fixed ? in_place() : plain, &n, &type, y, &n, &type, &root, &comm, &error);
    } else if (!strcmp(name, "bottom")) {  // Absolute addresses.
        int length = N, one = 1;
        MPI_Aint place;
        MPI_Datatype made, floats = MPI_FLOAT;
        MPI_Get_address(x, &place);
        MPI_Type_create_struct(1, &length, &place, &floats, &made);
        MPI_Type_commit(&made);
        int absolute = MPI_Type_c2f(made);
        mpi_irecv_(plain, &n, &type, &self, &tag, &comm, &requests[0], &error);
        run(x);
        if (fixed) cudaStreamSynchronize(stream);
        mpi_send_(bottom(), &one, &absolute, &self, &tag, &comm, &error);
        mpi_wait_(&requests[0], status, &error);
        MPI_Type_free(&made);
#ifdef OPEN_MPI
    } else if (!strcmp(name, "f08")) {
        mpi_irecv_f08_(x, &n, &type, &self, &tag, &comm, &requests[0], nullptr);
        mpi_send_f08_(plain, &n, &type, &self, &tag, &comm, nullptr);
        if (fixed) mpi_wait_f08_(&requests[0], status, nullptr);
        scale<<<N / 256, 256, 0, stream>>>(x, y, N);
        if (!fixed) mpi_wait_f08_(&requests[0], status, nullptr);
        error = 0;
#endif
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
