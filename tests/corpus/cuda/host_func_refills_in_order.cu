// expect: clean
// pair: cudaMemcpyAsync H2D on stream s / host function refill
// needs: host
// why: the host function that refills the staging buffer runs in stream order, behind the copy that reads it and before the next one.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

struct Staging {
    int *data;
    int n, round;
};

static void CUDART_CB refill(void *arg) {
    Staging *s = (Staging *)arg;
    s->round += 1;
    for (int i = 0; i < s->n; ++i) s->data[i] = s->round + i;
}

int main() {
    const int n = 1 << 14;
    const size_t bytes = n * sizeof(int);
    int *pinned, *dev;
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&pinned, bytes));
    CHECK(cudaMalloc(&dev, 4 * bytes));
    Staging staging = {pinned, n, 0};
    refill(&staging);

    for (int round = 0; round < 4; ++round) {
        CHECK(cudaMemcpyAsync(dev + round * n, pinned, bytes, cudaMemcpyHostToDevice, s));
        CHECK(cudaLaunchHostFunc(s, refill, &staging));
    }

    CHECK(cudaStreamSynchronize(s));
    int wrong = staging.round != 5;
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(dev));
    return wrong;
}
