// expect: clean
// pair: cudaGraphLaunch on stream main / cudaMemcpyAsync on stream other
// needs: graph
// racy: race RAW
// why: A captured fork and join, launched and updated. With `racy` the copy on another stream does not wait for the launch.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void triple(int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 3 * x[i];
}

__global__ void increase(int *x, int n, int by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += by;
}

__global__ void sum(const int *a, const int *b, int *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

static int calls;

static cudaGraph_t capture(cudaStream_t main, cudaStream_t side, int *a, int *b, int *c, int n, int by) {
    cudaGraph_t graph;
    cudaEvent_t fork, join;
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CHECK(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaEventRecord(fork, main));
    CHECK(cudaStreamWaitEvent(side, fork, 0));
    triple<<<n / 128, 128, 0, main>>>(a, n);
    increase<<<n / 128, 128, 0, side>>>(b, n, by);
    CHECK(cudaEventRecord(join, side));
    CHECK(cudaStreamWaitEvent(main, join, 0));
    CHECK(cudaLaunchHostFunc(main, [](void *count) { ++*(int *)count; }, &calls));
    sum<<<n / 128, 128, 0, main>>>(a, b, c, n);
    CHECK(cudaStreamEndCapture(main, &graph));
    CHECK(cudaEventDestroy(fork));
    CHECK(cudaEventDestroy(join));
    return graph;
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    const int n = 1 << 14;
    int *a, *b, *c, *host;
    CHECK(cudaMalloc(&a, n * 4));
    CHECK(cudaMalloc(&b, n * 4));
    CHECK(cudaMalloc(&c, n * 4));
    CHECK(cudaMallocHost(&host, n * 4));
    for (int i = 0; i < n; i++) host[i] = i;
    CHECK(cudaMemcpy(a, host, n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(b, 0, n * 4));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t main, side, other;
    for (cudaStream_t *s : {&main, &side, &other}) CHECK(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    cudaEvent_t done;
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));

    cudaGraph_t graph = capture(main, side, a, b, c, n, 5), changed = capture(main, side, a, b, c, n, 7);
    size_t nodes, edges;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
#if CUDART_VERSION >= 13000
    CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
#else
    CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, &edges));
#endif
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(exec, main));
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(exec, changed, &info));
    CHECK(cudaGraphLaunch(exec, main));
    CHECK(cudaEventRecord(done, main));
    if (!racy) CHECK(cudaStreamWaitEvent(other, done, 0));
    CHECK(cudaMemcpyAsync(host, c, n * 4, cudaMemcpyDeviceToHost, other));
    CHECK(cudaStreamSynchronize(other));
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += host[i] != 81 * i + 22;
    CHECK(cudaDeviceSynchronize());
    printf("%zu nodes, %zu edges, %d host calls, last %d, %d wrong\n", nodes, edges, calls, host[n - 1], wrong);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphDestroy(changed));
    for (int *p : {a, b, c}) CHECK(cudaFree(p));
    return 0;
}
