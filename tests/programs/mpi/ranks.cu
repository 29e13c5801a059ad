// A ring of ranks: `ranks MODE`. Each sends what a kernel has filled to the next one, on managed
// memory. `racy`: the last rank does not wait for its kernel. `fails`: the last rank ends with 3.

#include <mpi.h>

#include <cstdio>
#include <cstring>

__global__ void fill(float *x, int n, float value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "fixed";
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    constexpr int N = 1024;
    float *out, *in;
    cudaMallocManaged(&out, N * sizeof(float));
    cudaMallocManaged(&in, N * sizeof(float));
    const bool last = rank == ranks - 1;
    MPI_Request request;
    MPI_Irecv(in, N, MPI_FLOAT, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, &request);
    fill<<<N / 256, 256>>>(out, N, static_cast<float>(rank));
    if (!last || strcmp(mode, "racy") != 0) cudaDeviceSynchronize();
    MPI_Send(out, N, MPI_FLOAT, (rank + 1) % ranks, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    cudaDeviceSynchronize();
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d of %d got %g\n", rank, ranks, in[N - 1]);
    fflush(stdout);
    MPI_Finalize();
    return last && strcmp(mode, "fails") == 0 ? 3 : 0;
}
