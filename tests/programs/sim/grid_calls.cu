// The grid's barrier by its functions of the device runtime, as Numba's grids call it. Needs relocatable device code.
// Usage: grid_calls all|some|apart|plain|asked race|clean
#include <cstdio>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                                 \
    do {                                                                            \
        cudaError_t error = call;                                                   \
        if (error != cudaSuccess) {                                                 \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));          \
            return 1;                                                               \
        }                                                                           \
    } while (0)

// Every round reads what all blocks wrote in the one before. Threads from `left` on end before.
__global__ void relax(unsigned *x, unsigned *y, int n, int rounds, int left, int *status) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= left) return;
    unsigned long long handle = cudaCGGetIntrinsicHandle(cudaCGScopeGrid);
    if (i == 0) status[0] = handle != 0;
    for (int r = 0; r < rounds; r++) {
        if (i < n) y[i] = x[(i + n - 1) % n] + 3 * x[i] + x[(i + 1) % n];
        cudaError_t ended = cudaCGSynchronize(handle, 0);
        if (i == 0) status[1] = ended;
        unsigned *t = x;
        x = y;
        y = t;
    }
}

// Lanes of a warp come to the barrier from two places.
__global__ void relax_apart(unsigned *x, unsigned *y, int n, int rounds, int, int *status) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long handle = cudaCGGetIntrinsicHandle(cudaCGScopeGrid);
    for (int r = 0; r < rounds; r++) {
        if (i < n) y[i] = x[(i + n - 1) % n] + 3 * x[i] + x[(i + 1) % n];
        if (i % 3 == 0) {
            int ended = cudaCGSynchronizeGrid(handle, 0);
            if (i == 0) status[0] = 1, status[1] = ended;
        } else {
            cudaCGSynchronize(handle, 0);
        }
        unsigned *t = x;
        x = y;
        y = t;
    }
}

// What a thread is told of its grid; pointers that are null are left out.
__global__ void asked(unsigned *x, unsigned *y, int n, int, int, int *status) {
    unsigned long long handle = cudaCGGetIntrinsicHandle(cudaCGScopeGrid);
    unsigned threads = 77, grids = 77, rank = 77, grid = 77;
    int ended = cudaCGGetSize(&threads, &grids, handle) | cudaCGGetRank(&rank, &grid, handle);
    ended |= cudaCGGetSize(&threads, nullptr, handle) | cudaCGGetRank(nullptr, &grid, handle);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = threads * 7 + grids * 5 + rank * 3 + grid;
    if (i == 0) status[0] = handle != 0, status[1] = ended;
    if (i == 1) cudaCGGetSize(x, x + 1, handle);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const bool race = !strcmp(argv[2], "race"), some = !strcmp(argv[1], "some"), plain = !strcmp(argv[1], "plain");
    const bool questions = !strcmp(argv[1], "asked");
    auto kernel = questions ? asked : strcmp(argv[1], "apart") ? relax : relax_apart;
    int n = 9000, rounds = plain || questions ? 1 : 6, blocks = 37, left = some ? 9100 : blocks * 256;
    std::vector<unsigned> x(n), y(n), got(n);
    for (int i = 0; i < n; i++) x[i] = i * i;
    unsigned *dx, *dy;
    int *status, said[2];
    CHECK(cudaMalloc(&dx, n * 4));
    CHECK(cudaMalloc(&dy, n * 4));
    CHECK(cudaMalloc(&status, 8));
    CHECK(cudaMemcpy(dx, x.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t a, b;
    cudaEvent_t done;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    void *args[] = {&dx, &dy, &n, &rounds, &left, &status};
    if (plain)
        CHECK(cudaLaunchKernel((void *)kernel, dim3(blocks), dim3(256), args, 0, a));
    else
        CHECK(cudaLaunchCooperativeKernel((void *)kernel, dim3(blocks), dim3(256), args, 0, a));
    CHECK(cudaEventRecord(done, a));
    if (!race) CHECK(cudaStreamWaitEvent(b, done, 0));
    unsigned *last = rounds % 2 ? dy : dx;
    CHECK(cudaMemcpyAsync(got.data(), last, n * 4, cudaMemcpyDeviceToHost, b));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(said, status, 8, cudaMemcpyDeviceToHost));
    for (int r = 0; r < rounds; r++, x.swap(y))
        for (int i = 0; i < n; i++) y[i] = x[(i + n - 1) % n] + 3 * x[i] + x[(i + 1) % n];
    if (questions) {
        unsigned told[2];
        CHECK(cudaMemcpy(told, dx, 8, cudaMemcpyDeviceToHost));
        for (int i = 0; i < n; i++) x[i] = blocks * 256 * 7 + 5 + i * 3;
        if (told[0] != blocks * 256u || told[1] != 1) x[0] = 0;
    }
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += got[i] != x[i];
    printf("handle %d, status %d, %s\n", said[0], said[1], wrong && !race ? "wrong" : "right");
    return 0;
}
