// A capture draws a second stream in and forgets to join it: the call that ends the capture fails,
// and the report says what CUDA says, and what mends it. A word adds the join.
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

int main(int argc, char **) {
    const bool joins = argc > 1;
    const size_t size = 16384;
    char *left, *right;
    CHECK(cudaMalloc(&left, size));
    CHECK(cudaMalloc(&right, size));
    cudaStream_t origin, forked;
    CHECK(cudaStreamCreateWithFlags(&origin, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&forked, cudaStreamNonBlocking));
    cudaEvent_t begun, done;
    CHECK(cudaEventCreate(&begun));
    CHECK(cudaEventCreate(&done));

    CHECK(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal));
    CHECK(cudaEventRecord(begun, origin));
    CHECK(cudaStreamWaitEvent(forked, begun, 0));
    CHECK(cudaMemsetAsync(left, 1, size, origin));
    CHECK(cudaMemsetAsync(right, 2, size, forked));
    if (joins) {
        CHECK(cudaEventRecord(done, forked));
        CHECK(cudaStreamWaitEvent(origin, done, 0));
    }
    cudaGraph_t graph = nullptr;
    cudaError_t ended = cudaStreamEndCapture(origin, &graph);
    if (ended != cudaSuccess) {
        (void)cudaGetLastError();
        printf("not captured\n");
        return 0;
    }
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, origin));
    CHECK(cudaStreamSynchronize(origin));
    return 0;
}
