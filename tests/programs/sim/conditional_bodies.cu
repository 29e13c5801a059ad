// Bodies of conditional nodes that run and that do not, by kind of the node, by who is in the body, and by
// whether an edge orders the two. Each case uses memory of a size that no other has. For each of them, the
// program prints the size, the confidence of its race where launches are predicted, that where they are
// measured, and the case.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

enum Kind { IF, ELSE, WHILE, SWITCH, KINDS };
static const char *const kinds[] = {"if", "else", "while", "switch"};
enum Inside { WRITER, READER, FILL, BRANCHES, NESTED, TWO_NODES, INSIDES };
static const char *const insides[] = {"writer", "reader", "fill", "two branches", "nested writer", "a body each"};

__global__ void store(int *x) { x[threadIdx.x] = 1; }
__global__ void load(const int *x, int *y) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void stop(cudaGraphConditionalHandle handle) { cudaGraphSetConditional(handle, 0); }

using Nodes = std::vector<cudaGraphNode_t>;
static cudaStream_t stream;
static int *sink, cases;

static cudaGraphNode_t kernel(cudaGraph_t graph, Nodes after, const void *function, std::vector<void *> args) {
    cudaGraphNode_t node;
    cudaKernelNodeParams p = {};
    p.func = (void *)function, p.gridDim = dim3(1), p.blockDim = dim3(32), p.kernelParams = args.data();
    CHECK(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &p));
    return node;
}
static cudaGraphNode_t writer(cudaGraph_t graph, Nodes after, int *x) { return kernel(graph, after, (void *)store, {&x}); }
static cudaGraphNode_t reader(cudaGraph_t graph, Nodes after, int *x) { return kernel(graph, after, (void *)load, {&x, &sink}); }
static cudaGraphNode_t filler(cudaGraph_t graph, Nodes after, int *x) {
    cudaGraphNode_t node;
    cudaMemsetParams p = {};
    p.dst = x, p.elementSize = 4, p.width = 32, p.height = 1;
    CHECK(cudaGraphAddMemsetNode(&node, graph, after.data(), after.size(), &p));
    return node;
}

// A conditional node; answers the body in question.
static cudaGraph_t conditional(cudaGraph_t top, cudaGraph_t graph, Nodes after, Kind kind, bool runs, cudaGraphNode_t *node) {
    cudaGraphConditionalHandle handle;
    unsigned value = kind == ELSE ? !runs : kind == SWITCH ? (runs ? 1 : 2) : runs;
    CHECK(cudaGraphConditionalHandleCreate(&handle, top, value, cudaGraphCondAssignDefault));
    cudaGraphNodeParams p = {};
    p.type = cudaGraphNodeTypeConditional;
    p.conditional.handle = handle;
    p.conditional.type = kind == WHILE ? cudaGraphCondTypeWhile : kind == SWITCH ? cudaGraphCondTypeSwitch : cudaGraphCondTypeIf;
    p.conditional.size = kind == ELSE || kind == SWITCH ? 2 : 1;
    CHECK(cudaGraphAddNode(node, graph, after.data(), nullptr, after.size(), &p));
    cudaGraph_t body = p.conditional.phGraph_out[p.conditional.size - 1];
    if (kind == WHILE) kernel(body, {}, (void *)stop, {&handle});
    return body;
}

// Each case has call sites that no other has, because findings are told apart by these.
template <int K, int INSIDE, bool RUNS, bool RACY> __attribute__((noinline)) void test() {
    constexpr Kind kind = Kind(K);
    constexpr Inside inside = Inside(INSIDE);
    constexpr bool runs = RUNS, racy = RACY;
    size_t size = 4096 + 512 * ++cases;
    int *x;
    CHECK(cudaMalloc(&x, size));
    cudaGraph_t graph, body, other;
    cudaGraphNode_t node, second, first;
    CHECK(cudaGraphCreate(&graph, 0));
    body = conditional(graph, graph, {}, kind, runs, &node);
    Nodes after = racy ? Nodes{} : Nodes{node};
    if (inside == WRITER) writer(body, {}, x), reader(graph, after, x);
    if (inside == READER) reader(body, {}, x), writer(graph, after, x);
    if (inside == FILL) filler(body, {}, x), reader(graph, after, x);
    if (inside == BRANCHES) first = writer(body, {}, x), reader(body, racy ? Nodes{} : Nodes{first}, x);
    if (inside == NESTED) {
        writer(conditional(graph, body, {}, IF, true, &second), {}, x);
        reader(graph, after, x);
    }
    if (inside == TWO_NODES) {
        other = conditional(graph, graph, after, IF, true, &second);
        writer(body, {}, x), reader(other, {}, x);
    }
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaFree(x));
    // No kernel sets the conditions but those of loops. The simulated GPU tells which kernels of a body run, and of
    // fills nothing.
    const char *sure = runs && kind != WHILE ? "certain" : "possible";
    const char *predicted = racy ? sure : "none";
    const char *measured = !racy ? "none" : inside == FILL ? sure : runs ? "certain" : "none";
    printf("%zu %s %s %s%s, %s, %s\n", size, predicted, measured, kinds[kind], runs ? "" : " not run", insides[inside], racy ? "racy" : "mended");
}

template <int K, int INSIDE = 0> void all() {
    test<K, INSIDE, false, false>(), test<K, INSIDE, true, false>(), test<K, INSIDE, false, true>(), test<K, INSIDE, true, true>();
    if constexpr (INSIDE + 1 < INSIDES) all<K, INSIDE + 1>();
}

int main() {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&sink, 128));
    all<IF>(), all<ELSE>(), all<WHILE>(), all<SWITCH>();
    puts("done");
}
