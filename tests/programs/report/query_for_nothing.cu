// A small caching allocator hands a block out again as soon as its event is complete, and has
// forgotten to record the event: a query for it answers yes. A word adds the record.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                    \
    do {                                                               \
        cudaError_t error = call;                                      \
        if (error != cudaSuccess) {                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
            exit(1);                                                   \
        }                                                              \
    } while (0)

static const size_t size = 16384;
static char *cached;
static cudaEvent_t ready;

static void give_back(char *block, cudaStream_t stream, bool record) {
    if (record) CHECK(cudaEventRecord(ready, stream));
    cached = block;
}

static char *hand_out() {
    while (cudaEventQuery(ready) == cudaErrorNotReady) {}
    return cached;
}

int main(int argc, char **) {
    const bool records = argc > 1;
    char *block;
    CHECK(cudaMalloc(&block, size));
    CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    cudaStream_t first, second;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK(cudaMemsetAsync(block, 1, size, first));
    give_back(block, first, records);
    char *again = hand_out();
    CHECK(cudaMemsetAsync(again, 2, size, second));
    CHECK(cudaDeviceSynchronize());
    return 0;
}
