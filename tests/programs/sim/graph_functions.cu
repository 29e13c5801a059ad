// Host functions of graphs, and what they touch: by each way of making the node, each kind of work that it
// may race with, and each order of the two. Each case uses memory of a size that no other has. For each of
// them, the program prints the size, whether that is a race, and the case.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

enum Make { ADDED, GENERIC, CAPTURED, CHILD, NESTED, SET_AGAIN, MAKES };
static const char *const makes[] = {"added", "added by type", "captured", "of a child graph", "of a child of a child", "set again"};
enum Work { KERNEL, FILL, COPY, WORKS };
static const char *const works[] = {"kernel", "fill", "copy"};
enum Order { BEHIND, BESIDE, IN_FRONT, STREAM_BEFORE, STREAM_BEHIND, OTHER_STREAM, TWICE, ELSEWHERE, ORDERS };
static const char *const orders[] = {"behind it", "beside it", "in front of it", "behind its stream", "before its stream", "on another stream", "launched twice", "at other bytes"};

__global__ void fill(char *to, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = 1;
}

constexpr int PART = 256;
static cudaStream_t stream, another;
static char *device;
static int cases;
static volatile int sink;
static cudaGraph_t last_child;

struct Touch { char *at; bool store; };
static void touch(void *data) {
    auto [at, store] = *(Touch *)data;
    if (store) for (int i = 0; i < PART; i += 64) ((volatile char *)at)[i] = 2;
    else for (int i = 0; i < PART; i += 64) sink = at[i];
}
static void nothing(void *) {}

template <int W> static void enqueue(char *at, cudaStream_t to) {
    if (W == KERNEL) fill<<<1, 32, 0, to>>>(at, PART);
    if (W == FILL) CHECK(cudaMemsetAsync(at, 1, PART, to));
    if (W == COPY) CHECK(cudaMemcpyAsync(device, at, PART, cudaMemcpyHostToDevice, to));
}

template <int W> static cudaGraphNode_t add_work(cudaGraph_t graph, const cudaGraphNode_t *after, int count, char *at) {
    cudaGraphNode_t node;
    int n = PART;
    void *arguments[] = {&at, &n};
    if (W == KERNEL) {
        cudaKernelNodeParams p = {};
        p.func = (void *)fill, p.gridDim = dim3(1), p.blockDim = dim3(32), p.kernelParams = arguments;
        CHECK(cudaGraphAddKernelNode(&node, graph, after, count, &p));
    }
    if (W == FILL) {
        cudaMemsetParams p = {};
        p.dst = at, p.value = 1, p.elementSize = 1, p.width = PART, p.height = 1;
        CHECK(cudaGraphAddMemsetNode(&node, graph, after, count, &p));
    }
    if (W == COPY) CHECK(cudaGraphAddMemcpyNode1D(&node, graph, after, count, device, at, PART, cudaMemcpyHostToDevice));
    return node;
}

template <int M> static cudaGraphNode_t add_function(cudaGraph_t graph, const cudaGraphNode_t *after, int count, Touch *data) {
    cudaGraphNode_t node;
    cudaHostNodeParams p = {};
    p.fn = touch, p.userData = data;
    if (M == GENERIC) {
        cudaGraphNodeParams any = {};
        any.type = cudaGraphNodeTypeHost;
        any.host.fn = touch, any.host.userData = data;
        CHECK(cudaGraphAddNode(&node, graph, after, nullptr, count, &any));
    } else if (M == CHILD || M == NESTED) {
        cudaGraph_t child, around, held;
        cudaGraphNode_t inner, middle;
        CHECK(cudaGraphCreate(&child, 0));
        CHECK(cudaGraphAddHostNode(&inner, child, nullptr, 0, &p));
        if (M == NESTED) {
            CHECK(cudaGraphCreate(&around, 0));
            CHECK(cudaGraphAddEmptyNode(&middle, around, nullptr, 0));
            CHECK(cudaGraphAddChildGraphNode(&inner, around, &middle, 1, child));
            CHECK(cudaGraphDestroy(child));
            child = around;
        }
        CHECK(cudaGraphAddChildGraphNode(&node, graph, after, count, child));
        CHECK(cudaGraphDestroy(child));
        CHECK(cudaGraphChildGraphNodeGetGraph(node, &held));
        last_child = M == CHILD ? held : nullptr;
    } else {
        if (M == SET_AGAIN) p.fn = nothing;
        CHECK(cudaGraphAddHostNode(&node, graph, after, count, &p));
        cudaHostNodeParams got = {};
        CHECK(cudaGraphHostNodeGetParams(node, &got));
        if (got.fn != p.fn || got.userData != data) puts("another function");
    }
    return node;
}

template <int M, int W, int O, int STORE> __attribute__((noinline)) void test() {
    size_t size = 4096 + 64 * ++cases;
    char *memory;
    if (W == COPY) CHECK(cudaMallocHost(&memory, size));
    else CHECK(cudaMallocManaged(&memory, size));
    memset(memory, 0, size);
    static Touch data;
    data = {memory + (O == ELSEWHERE ? 2 * PART : 0), STORE != 0};
    constexpr bool inside = O == BEHIND || O == BESIDE || O == IN_FRONT || O == TWICE || O == ELSEWHERE;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t node = nullptr;
    if (M == CAPTURED) {
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        cudaEvent_t fork, join;
        if (O == BESIDE || O == ELSEWHERE) {
            CHECK(cudaEventCreate(&fork));
            CHECK(cudaEventCreate(&join));
            CHECK(cudaEventRecord(fork, stream));
            CHECK(cudaStreamWaitEvent(another, fork, 0));
            enqueue<W>(memory, another);
            CHECK(cudaEventRecord(join, another));
        }
        if (O == BEHIND || O == TWICE) enqueue<W>(memory, stream);
        CHECK(cudaLaunchHostFunc(stream, touch, &data));
        if (O == IN_FRONT) enqueue<W>(memory, stream);
        if (O == BESIDE || O == ELSEWHERE) CHECK(cudaStreamWaitEvent(stream, join, 0));
        CHECK(cudaStreamEndCapture(stream, &graph));
    } else {
        CHECK(cudaGraphCreate(&graph, 0));
        cudaGraphNode_t work = nullptr;
        if (inside && O != IN_FRONT) work = add_work<W>(graph, nullptr, 0, memory);
        node = add_function<M>(graph, &work, O == BEHIND || O == TWICE, &data);
        if (O == IN_FRONT) add_work<W>(graph, &node, 1, memory);
    }
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    if (M == SET_AGAIN) {
        cudaHostNodeParams p = {touch, &data};
        CHECK(cudaGraphExecHostNodeSetParams(exec, node, &p));
    }
    if (M == CHILD) {
        size_t one = 1;
        CHECK(cudaGraphGetNodes(last_child, &node, &one));
        cudaHostNodeParams got = {};
        CHECK(cudaGraphHostNodeGetParams(node, &got));
        if (got.fn != touch || got.userData != &data) puts("another function inside");
    }
    CHECK(cudaGraphDestroy(graph));
    if (O == STREAM_BEFORE) enqueue<W>(memory, stream);
    if (O == OTHER_STREAM) enqueue<W>(memory, another);
    for (int k = 0; k < (O == TWICE ? 3 : 1); k++) CHECK(cudaGraphLaunch(exec, stream));
    if (O == STREAM_BEHIND) enqueue<W>(memory, stream);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphExecDestroy(exec));
    if (STORE && O == IN_FRONT && W == COPY) {
        char got;
        CHECK(cudaMemcpy(&got, device, 1, cudaMemcpyDeviceToHost));
        if (got != 2) puts("the function did not run");
    }
    if (W == COPY) CHECK(cudaFreeHost(memory));
    else CHECK(cudaFree(memory));
    bool race = (O == BESIDE || O == OTHER_STREAM) && (STORE || W != COPY);
    printf("%zu %s %s, %s %s, %s\n", size, race ? "race" : "silent", makes[M], works[W], orders[O], STORE ? "store" : "load");
}

template <int M, int W, int O = 0> void all_orders() {
    test<M, W, O, 0>(), test<M, W, O, 1>();
    if constexpr (O + 1 < ORDERS) all_orders<M, W, O + 1>();
}
template <int M = 0> void all() {
    all_orders<M, KERNEL>(), all_orders<M, FILL>(), all_orders<M, COPY>();
    if constexpr (M + 1 < MAKES) all<M + 1>();
}

int main() {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&another, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&device, PART));
    all();
    puts("done");
    return 0;
}
