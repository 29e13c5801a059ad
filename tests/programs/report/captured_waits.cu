// A step is captured on three streams and launched many times. One wait inside orders a kernel
// after the one whose result it reads. Another orders two kernels that share nothing, but it draws
// a stream in and joins another one: the waits that do the same can go if it stays. Words leave
// waits out: "needed", "needless", "twin".
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call)                                                    \
    do {                                                               \
        cudaError_t error = call;                                      \
        if (error != cudaSuccess) {                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
            exit(1);                                                   \
        }                                                              \
    } while (0)

const int n = 4096;

__global__ void fill(float *x, float value) { x[blockIdx.x * blockDim.x + threadIdx.x] = value; }

__global__ void add(float *to, const float *from) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] += from[i];
}

int main(int argc, char **argv) {
    auto without = [&](const char *word) {
        for (int i = 1; i < argc; i++)
            if (!strcmp(argv[i], word)) return true;
        return false;
    };
    float *x, *y, *z;
    CHECK(cudaMalloc(&x, n * sizeof(float)));
    CHECK(cudaMalloc(&y, n * sizeof(float)));
    CHECK(cudaMalloc(&z, n * sizeof(float)));
    CHECK(cudaMemset(y, 0, n * sizeof(float)));
    CHECK(cudaMemset(z, 0, n * sizeof(float)));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t main, left, right;
    CHECK(cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&left, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&right, cudaStreamNonBlocking));
    cudaEvent_t begun, filled, added, done;
    for (cudaEvent_t *event : {&begun, &filled, &added, &done}) CHECK(cudaEventCreate(event));

    CHECK(cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal));
    CHECK(cudaEventRecord(begun, main));
    CHECK(cudaStreamWaitEvent(left, begun, 0));   // draws left in
    CHECK(cudaStreamWaitEvent(right, begun, 0));  // draws right in
    fill<<<n / 256, 256, 0, main>>>(x, 1);
    CHECK(cudaEventRecord(filled, main));
    if (!without("needed")) CHECK(cudaStreamWaitEvent(left, filled, 0));  // left reads x
    add<<<n / 256, 256, 0, left>>>(y, x);
    CHECK(cudaEventRecord(added, left));
    if (!without("needless")) CHECK(cudaStreamWaitEvent(right, added, 0));  // right uses only z
    fill<<<n / 256, 256, 0, right>>>(z, 2);
    CHECK(cudaEventRecord(done, right));
    CHECK(cudaStreamWaitEvent(main, done, 0));  // joins right, and left before it
    if (!without("twin")) CHECK(cudaStreamWaitEvent(main, added, 0));  // joins left
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(main, &graph));
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int step = 0; step < 10; step++) CHECK(cudaGraphLaunch(exec, main));
    CHECK(cudaStreamSynchronize(main));
    return 0;
}
