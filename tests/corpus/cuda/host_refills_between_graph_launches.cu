// expect: race host WAR
// pair: memcpy node of the graph on stream s / host write to staging
// needs: host graph
// why: the graph copies from the staging buffer, and the host fills it for the next launch while the last one may still be running.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void accumulate(int *total, const int *v, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) total[i] += v[i];
}

int main() {
    const int n = 1 << 14;
    const size_t bytes = n * sizeof(int);
    int *staging, *dev, *total;
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaMallocHost(&staging, bytes));
    CHECK(cudaMalloc(&dev, bytes));
    CHECK(cudaMalloc(&total, bytes));
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaMemsetAsync(total, 0, bytes, s));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemcpyAsync(dev, staging, bytes, cudaMemcpyHostToDevice, s));
    accumulate<<<n / 256, 256, 0, s>>>(total, dev, n);
    CHECK(cudaStreamEndCapture(s, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));

    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < n; ++i) staging[i] = round * i + 1;     // without waiting for the launch before
        CHECK(cudaGraphLaunch(exec, s));
    }

    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaFree(dev));
    CHECK(cudaFree(total));
    CHECK(cudaFreeHost(staging));
    return 0;
}
