// expect: clean
// pair: cudaMemcpyAsync H2D on stream s / host write to staging
// needs: host threads
// why: a second thread refills the buffer after the first has polled the stream until it was idle and has said so.
#include <cstdio>
#include <cstdlib>
#include <atomic>
#include <thread>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

static std::atomic<int> filled{0}, taken{0};

int main() {
    const int n = 1 << 16, rounds = 4;
    const size_t bytes = n * sizeof(int);
    int *staging, *dev;
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&staging, bytes));
    CHECK(cudaMalloc(&dev, bytes));

    std::thread filler([=] {
        for (int r = 1; r <= rounds; ++r) {
            while (taken.load() != r - 1) { }
            for (int i = 0; i < n; ++i) staging[i] = r * i + 1;
            filled.store(r);
        }
    });
    for (int r = 1; r <= rounds; ++r) {
        while (filled.load() != r) { }
        CHECK(cudaMemcpyAsync(dev, staging, bytes, cudaMemcpyHostToDevice, s));
        cudaError_t q;
        while ((q = cudaStreamQuery(s)) == cudaErrorNotReady) { }
        CHECK(q);
        taken.store(r);
    }
    filler.join();
    (void)cudaGetLastError();

    CHECK(cudaFreeHost(staging));
    CHECK(cudaFree(dev));
    return 0;
}
