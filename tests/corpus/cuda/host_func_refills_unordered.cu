// expect: race host WAR
// pair: cudaMemcpyAsync H2D on stream a / host function refill on stream b
// needs: host
// why: the host function that refills the staging buffer is queued on a stream that does not wait for the copy.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

struct Staging {
    int *data;
    int n;
};

static void CUDART_CB refill(void *arg) {
    Staging *s = (Staging *)arg;
    for (int i = 0; i < s->n; ++i) s->data[i] = -i;
}

int main() {
    const int n = 1 << 16;
    const size_t bytes = n * sizeof(int);
    int *pinned, *dev;
    cudaStream_t a, b;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&pinned, bytes));
    CHECK(cudaMalloc(&dev, bytes));
    for (int i = 0; i < n; ++i) pinned[i] = i;
    Staging staging = {pinned, n};

    CHECK(cudaMemcpyAsync(dev, pinned, bytes, cudaMemcpyHostToDevice, a));
    CHECK(cudaLaunchHostFunc(b, refill, &staging));

    CHECK(cudaStreamSynchronize(b));
    CHECK(cudaStreamSynchronize(a));
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(dev));
    return 0;
}
