// Two kernels of one graph with an edge between them that may let the second begin before the first
// is over, made in each way that there is:
//   edges capture|update|event|completion|dependencies|launch_order|node|clone|plain [waits]
// `waits`: the second kernel waits for the first before it reads. `plain` has an edge without data. Who asks for the
// neighbours of a node without room for the edges' data is refused where that would lose some.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

__global__ void fill(int *x, int n) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i;
}

__global__ void twice(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

__global__ void twice_later(const int *x, int *y, int n) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

static const int n = 1 << 14;

static cudaKernelNodeParams node(void *kernel, void **params) {
    cudaKernelNodeParams p = {};
    p.func = kernel, p.gridDim = n / 256, p.blockDim = 256, p.kernelParams = params;
    return p;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "capture";
    auto is = [&](const char *name) { return !strcmp(how, name); };
    auto second = argc > 2 ? twice_later : twice;
    int *x, *y, count = n;
    cudaStream_t a, b;
    cudaEvent_t event, joined;
    cudaGraph_t graph;
    CHECK(cudaMalloc(&x, n * sizeof(int)));
    CHECK(cudaMalloc(&y, n * sizeof(int)));
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = n / 256, config.blockDim = 256, config.stream = a, config.attrs = &attribute, config.numAttrs = 1;
    if (is("capture")) {
        CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
        fill<<<n / 256, 256, 0, a>>>(x, n);
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        CHECK(cudaLaunchKernelEx(&config, second, (const int *)x, y, n));
        CHECK(cudaStreamEndCapture(a, &graph));
    } else if (is("update")) {
        CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
        fill<<<n / 256, 256, 0, a>>>(x, n);
        cudaStreamCaptureStatus status;
        unsigned long long id;
        const cudaGraphNode_t *behind;
        const cudaGraphEdgeData *pending;
        size_t count;
        CHECK(cudaStreamGetCaptureInfo(a, &status, &id, &graph, &behind, &pending, &count));
        cudaGraphNode_t before = behind[0];
        cudaGraphEdgeData edge = {};
        edge.type = cudaGraphDependencyTypeProgrammatic, edge.from_port = cudaGraphKernelNodePortProgrammatic;
        CHECK(cudaStreamUpdateCaptureDependencies(a, &before, &edge, 1, cudaStreamSetCaptureDependencies));
        CHECK(cudaStreamGetCaptureInfo(a, &status, &id, &graph, &behind, &pending, &count));
        if (count != 1 || !pending || pending[0].from_port != edge.from_port) printf("the pending edge has no port\n");
        second<<<n / 256, 256, 0, a>>>(x, y, n);
        CHECK(cudaStreamEndCapture(a, &graph));
    } else if (is("event") || is("completion")) {
        CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
        if (is("event")) {
            attribute.id = cudaLaunchAttributeProgrammaticEvent;
            attribute.val.programmaticEvent.event = event;
        } else {
            attribute.id = cudaLaunchAttributeLaunchCompletionEvent;
            attribute.val.launchCompletionEvent.event = event;
        }
        CHECK(cudaLaunchKernelEx(&config, fill, x, n));
        CHECK(cudaStreamWaitEvent(b, event, 0));
        second<<<n / 256, 256, 0, b>>>(x, y, n);
        CHECK(cudaEventRecord(joined, b));
        CHECK(cudaStreamWaitEvent(a, joined, 0));
        CHECK(cudaStreamEndCapture(a, &graph));
    } else {
        void *first_params[] = {&x, &count}, *second_params[] = {&x, &y, &count};
        auto first = node((void *)fill, first_params), then = node((void *)second, second_params);
        cudaGraphNode_t one, two;
        cudaGraphEdgeData edge = {};
        if (!is("plain")) {
            edge.type = cudaGraphDependencyTypeProgrammatic;
            edge.from_port = is("launch_order") ? cudaGraphKernelNodePortLaunchCompletion : cudaGraphKernelNodePortProgrammatic;
        }
        CHECK(cudaGraphCreate(&graph, 0));
        CHECK(cudaGraphAddKernelNode(&one, graph, nullptr, 0, &first));
        if (is("node")) {
            cudaGraphNodeParams any = {};
            any.type = cudaGraphNodeTypeKernel;
            any.kernel.func = then.func, any.kernel.gridDim = then.gridDim, any.kernel.blockDim = then.blockDim;
            any.kernel.kernelParams = second_params;
            CHECK(cudaGraphAddNode(&two, graph, &one, &edge, 1, &any));
        } else {
            CHECK(cudaGraphAddKernelNode(&two, graph, nullptr, 0, &then));
            CHECK(cudaGraphAddDependencies(graph, &one, &two, &edge, 1));
        }
        if (is("clone")) {
            cudaGraph_t other;
            CHECK(cudaGraphClone(&other, graph));
            graph = other;
        }
    }
    size_t edges = 0;
    cudaGraphNode_t from[4], to[4];
    cudaGraphEdgeData data[4];
    CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
    CHECK(cudaGraphGetEdges(graph, from, to, data, &edges));
    cudaGraphNode_t neighbours[2];
    cudaError_t loses = data[0].from_port ? cudaErrorLossyQuery : cudaSuccess;
    for (bool before : {true, false}) {
        size_t some = 2, all = 2;
        cudaGraphEdgeData of[2];
        auto ask = before ? cudaGraphNodeGetDependencies : cudaGraphNodeGetDependentNodes;
        if (ask(before ? to[0] : from[0], neighbours, nullptr, &some) != loses) printf("a lossy question is answered\n");
        CHECK(ask(before ? to[0] : from[0], neighbours, of, &all));
        if (all != 1 || of[0].from_port != data[0].from_port) printf("a neighbour's edge has another port\n");
    }
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, a));
    CHECK(cudaStreamSynchronize(a));
    int last;
    CHECK(cudaMemcpy(&last, y + n - 1, sizeof last, cudaMemcpyDeviceToHost));
    printf("%zu edge from port %d, %d\n", edges, data[0].from_port, last);
    return 0;
}
