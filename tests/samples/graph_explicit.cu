// expect: clean
// pair: memcpy node host to device / kernel node scale
// needs: graph
// racy: race RAW
// why: Nodes of every common kind with a child graph, parameters changed afterwards. With `racy` the edge behind the copy is missing.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void scale(const int *in, int *out, int n, int by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = by * in[i];
}

__global__ void gather(const int *in, int *sum, int n) {
    int mine = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) mine += in[i];
    atomicAdd(sum, mine);
}

static void hit(void *count) { ++*(int *)count; }

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    int n = 4096, by = 2, hits = 0;
    int *host, *in, *out, *sum, *result;
    CHECK(cudaMallocHost(&host, n * 4));
    CHECK(cudaMallocHost(&result, 4));
    CHECK(cudaMalloc(&in, n * 4));
    CHECK(cudaMalloc(&out, n * 4));
    CHECK(cudaMalloc(&sum, 4));
    for (int i = 0; i < n; i++) host[i] = i % 100;

    cudaGraph_t graph, child;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphCreate(&child, 0));
    cudaGraphNode_t upload, clear, work, add, down, call, empty;
    CHECK(cudaGraphAddMemcpyNode1D(&upload, graph, nullptr, 0, in, host, n * 4, cudaMemcpyHostToDevice));
    cudaMemsetParams zero = {};
    zero.dst = sum;
    zero.elementSize = 4;
    zero.width = 1;
    zero.height = 1;
    CHECK(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &zero));
    void *args[] = {&in, &out, &n, &by};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)scale;
    kernel.gridDim = dim3(n / 128);
    kernel.blockDim = dim3(128);
    kernel.kernelParams = args;
    CHECK(cudaGraphAddKernelNode(&work, graph, racy ? nullptr : &upload, racy ? 0 : 1, &kernel));
    // The child graph: one kernel that adds everything up.
    void *child_args[] = {&out, &sum, &n};
    cudaKernelNodeParams adder = {};
    adder.func = (void *)gather;
    adder.gridDim = dim3(1);
    adder.blockDim = dim3(256);
    adder.kernelParams = child_args;
    cudaGraphNode_t inner;
    CHECK(cudaGraphAddKernelNode(&inner, child, nullptr, 0, &adder));
    cudaGraphNode_t before[] = {clear, work};
    CHECK(cudaGraphAddChildGraphNode(&add, graph, before, 2, child));
    CHECK(cudaGraphAddMemcpyNode1D(&down, graph, &add, 1, result, sum, 4, cudaMemcpyDeviceToHost));
    cudaHostNodeParams host_node = {};
    host_node.fn = hit;
    host_node.userData = &hits;
    CHECK(cudaGraphAddHostNode(&call, graph, &down, 1, &host_node));
    CHECK(cudaGraphAddEmptyNode(&empty, graph, &call, 1));

    size_t nodes, roots;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
    cudaGraphNodeType kind;
    CHECK(cudaGraphNodeGetType(add, &kind));
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamSynchronize(s));
    int first = *result;
    by = 5;
    CHECK(cudaGraphExecKernelNodeSetParams(exec, work, &kernel));
    CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamSynchronize(s));
    int second = *result, want = 0;
    // A clone is a graph of its own; the same nodes can be found in it.
    cudaGraph_t clone;
    cudaGraphNode_t cloned;
    CHECK(cudaGraphClone(&clone, graph));
    CHECK(cudaGraphNodeFindInClone(&cloned, work, clone));
    for (int i = 0; i < n; i++) want += host[i];
    printf("%zu nodes, %zu roots, child %d, %d calls, %d %d, %s\n", nodes, roots,
           kind == cudaGraphNodeTypeGraph, hits, first, second,
           first == 2 * want && second == 5 * want ? "right" : "wrong");
    CHECK(cudaGraphExecDestroy(exec));
    for (cudaGraph_t g : {graph, child, clone}) CHECK(cudaGraphDestroy(g));
    for (int *p : {in, out, sum}) CHECK(cudaFree(p));
    return 0;
}
