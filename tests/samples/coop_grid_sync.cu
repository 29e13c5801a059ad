// expect: clean
// pair: kernel relax on stream a / cudaMemcpyAsync on stream b
// needs: none
// racy: race RAW
// why: A cooperative launch with grid-wide barriers; the copy waits for it. With `racy` it does not.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// Rounds of a rule on a ring; every round reads what all blocks wrote in the one before.
__global__ void relax(unsigned *x, unsigned *y, int n, int rounds) {
    cg::grid_group grid = cg::this_grid();
    for (int r = 0; r < rounds; r++) {
        for (unsigned i = grid.thread_rank(); i < n; i += grid.size())
            y[i] = x[(i + n - 1) % n] + 3 * x[i] + x[(i + 1) % n];
        grid.sync();
        unsigned *t = x;
        x = y;
        y = t;
    }
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    int n = 5000, rounds = 10, blocks = 12, supported, fit;
    std::vector<unsigned> x(n), y(n), start(n);
    for (int i = 0; i < n; i++) start[i] = x[i] = i * i;
    unsigned *dx, *dy, *got;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, relax, 256, 0));
    CHECK(cudaMalloc(&dx, n * 4));
    CHECK(cudaMalloc(&dy, n * 4));
    CHECK(cudaMallocHost(&got, n * 4));
    CHECK(cudaMemcpy(dx, start.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t a, b;
    cudaEvent_t done;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    void *args[] = {&dx, &dy, &n, &rounds};
    CHECK(cudaLaunchCooperativeKernel((void *)relax, dim3(blocks), dim3(256), args, 0, a));
    CHECK(cudaEventRecord(done, a));
    if (!racy) CHECK(cudaStreamWaitEvent(b, done, 0));
    CHECK(cudaMemcpyAsync(got, dx, n * 4, cudaMemcpyDeviceToHost, b));
    CHECK(cudaDeviceSynchronize());
    for (int r = 0; r < rounds; r++, x.swap(y))
        for (int i = 0; i < n; i++) y[i] = x[(i + n - 1) % n] + 3 * x[i] + x[(i + 1) % n];
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += got[i] != x[i];
    printf("supported %d, fits %d, last %u, %d wrong\n", supported, fit > 0, got[n - 1], wrong);
    CHECK(cudaFree(dx));
    CHECK(cudaFree(dy));
    return 0;
}
