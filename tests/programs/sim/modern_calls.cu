// Calls of CUDA 12.4 to 13 on the simulated GPU. The first argument is the call, the second is how
// the work of another stream is ordered with it: "racy", or a way of waiting. Prints whether the
// results are right (races here do not change them).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                   \
    do {                                                                                                              \
        int code_ = (int)(call);                                                                                      \
        if (code_ != 0) {                                                                                             \
            printf("line %d: %d\n", __LINE__, code_);                                                                 \
            exit(3);                                                                                                  \
        }                                                                                                             \
    } while (0)
#define REQUIRE(condition)                                                                                            \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            printf("line %d: wrong\n", __LINE__);                                                                     \
            exit(4);                                                                                                  \
        }                                                                                                             \
    } while (0)

static const int N = 1 << 16;

__global__ void fill(int *p, int n, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = value + i;
}

__global__ void copy(int *to, const int *from, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}

static cudaStream_t a, b;
static const char *how;

static bool is(const char *word) { return !strcmp(how, word); }

// Orders what `b` gets next behind what `a` has got, unless it is to race.
static void order() {
    if (is("racy")) return;
    if (is("host")) {
        CHECK(cudaStreamSynchronize(a));
        return;
    }
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaEventRecord(event, a));
    CHECK(cudaStreamWaitEvent(b, event, 0));
    CHECK(cudaEventDestroy(event));
}

static int *device(size_t bytes) {
    int *p;
    CHECK(cudaMalloc(&p, bytes));
    CHECK(cudaMemset(p, 0, bytes));
    CHECK(cudaDeviceSynchronize());
    return p;
}

static void expect(const int *p, int n, int first) {
    int *host = (int *)malloc(n * sizeof *host);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(host, p, n * sizeof *host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) REQUIRE(host[i] == first + i);
    free(host);
}

// Two boxes: linear to array, and the array back; `b` overwrites what the second reads into.
static void boxes() {
    const size_t width = 64, height = 32, depth = 32;
    int *from = device(N * sizeof(int)), *to = device(N * sizeof(int)), *other = device(N * sizeof(int));
    int *result = device(N * sizeof(int));
    fill<<<N / 256, 256, 0, a>>>(from, N, 7);
    cudaArray_t array;
    cudaChannelFormatDesc texel = cudaCreateChannelDesc<int>();
    CHECK(cudaMalloc3DArray(&array, &texel, make_cudaExtent(width, height, depth), 0));
    cudaMemcpy3DBatchOp op[2] = {};
    op[0].src.type = cudaMemcpyOperandTypePointer;
    op[0].src.op.ptr.ptr = from;
    op[0].dst.type = cudaMemcpyOperandTypeArray;
    op[0].dst.op.array.array = array;
    op[0].extent = make_cudaExtent(width, height, depth);
    op[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    CHECK(cudaMemcpy3DBatchAsync(1, op, 0, a));
    op[0].dst.type = cudaMemcpyOperandTypePointer;
    op[0].dst.op.ptr.ptr = to;
    op[0].dst.op.ptr.rowLength = op[0].dst.op.ptr.layerHeight = 0;
    op[0].src.type = cudaMemcpyOperandTypeArray;
    op[0].src.op.array.array = array;
    op[0].src.op.array.offset = {0, 0, 0};
    // Beside it in the batch: half of the rows, with a pitch.
    op[1] = op[0];
    op[1].src = {};
    op[1].src.type = cudaMemcpyOperandTypePointer;
    op[1].src.op.ptr.ptr = from;
    // Between pointers an element is a byte.
    op[1].src.op.ptr.rowLength = 2 * width * sizeof(int);
    op[1].src.op.ptr.layerHeight = height / 2;
    op[1].dst.op.ptr.ptr = other;
    op[1].extent = make_cudaExtent(width * sizeof(int), height / 2, depth);
    CHECK(cudaMemcpy3DBatchAsync(2, op, 0, a));
    order();
    copy<<<N / 256, 256, 0, b>>>(result, to, N);
    expect(to, N, 7);
    expect(other, width, 7);
    expect(other + width, width, 7 + 2 * width);
}

// A range of managed memory is discarded, prefetched and written by `a`; `b` reads it.
static void ranges(bool discard, bool prefetch) {
    int *p, *result = device(2 * N * sizeof(int));
    CHECK(cudaMallocManaged(&p, 2 * N * sizeof(int)));
    fill<<<2 * N / 256, 256, 0, a>>>(p, 2 * N, 1);
    void *parts[2] = {p, p + N};
    size_t sizes[2] = {N * sizeof(int), N * sizeof(int)}, firsts[1] = {0};
    cudaMemLocation location = {};
    location.type = cudaMemLocationTypeDevice;
    if (discard && prefetch) CHECK(cudaMemDiscardAndPrefetchBatchAsync(parts, sizes, 2, &location, firsts, 1, 0, a));
    if (discard && !prefetch) CHECK(cudaMemDiscardBatchAsync(parts, sizes, 2, 0, a));
    if (!discard) CHECK(cudaMemPrefetchBatchAsync(parts, sizes, 2, &location, firsts, 1, 0, a));
    fill<<<2 * N / 256, 256, 0, a>>>(p, 2 * N, 5);
    order();
    copy<<<2 * N / 256, 256, 0, b>>>(result, p, 2 * N);
    expect(p, 2 * N, 5);
    // What no device takes.
    sizes[1] = 3 * N * sizeof(int);
    REQUIRE(cudaMemPrefetchBatchAsync(parts, sizes, 2, &location, firsts, 1, 0, a) != cudaSuccess);
    firsts[0] = 1;
    sizes[1] = N * sizeof(int);
    REQUIRE(cudaMemPrefetchBatchAsync(parts, sizes, 2, &location, firsts, 1, 0, a) != cudaSuccess);
    (void)cudaGetLastError();
}

static cudaGraphNode_t kernel_node(cudaGraph_t graph, const cudaGraphNode_t *after, void *function, void **args) {
    cudaKernelNodeParams params = {};
    params.func = function;
    params.gridDim = dim3(N / 256);
    params.blockDim = dim3(256);
    params.kernelParams = args;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, after, after ? 1 : 0, &params));
    return node;
}

// A child graph that its parent owns: fills memory of its own, and copies it out.
static void moved() {
    int *out = device(N * sizeof(int)), *result = device(N * sizeof(int)), n = N, value = 11;
    cudaGraph_t parent, child, inner;
    CHECK(cudaGraphCreate(&parent, 0));
    CHECK(cudaGraphCreate(&child, 0));
    cudaMemAllocNodeParams memory = {};
    memory.poolProps.allocType = cudaMemAllocationTypePinned;
    memory.poolProps.location.type = cudaMemLocationTypeDevice;
    memory.bytesize = N * sizeof(int);
    cudaGraphNode_t made, freed, node;
    CHECK(cudaGraphAddMemAllocNode(&made, child, nullptr, 0, &memory));
    void *block = memory.dptr, *fills[] = {&block, &n, &value}, *copies[] = {&out, &block, &n};
    cudaGraphNode_t first = kernel_node(child, &made, (void *)fill, fills);
    cudaGraphNode_t second = kernel_node(child, &first, (void *)copy, copies);
    CHECK(cudaGraphAddMemFreeNode(&freed, child, &second, 1, block));
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeGraph;
    params.graph.graph = child;
    // A copy of a graph with memory is refused, and so is a graph in itself.
    REQUIRE(cudaGraphAddNode(&node, parent, nullptr, nullptr, 0, &params) != cudaSuccess);
    params.graph.ownership = cudaGraphChildGraphOwnershipMove;
    REQUIRE(cudaGraphAddNode(&node, child, nullptr, nullptr, 0, &params) != cudaSuccess);
    CHECK(cudaGraphAddNode(&node, parent, nullptr, nullptr, 0, &params));
    (void)cudaGetLastError();
    CHECK(cudaGraphChildGraphNodeGetGraph(node, &inner));
    REQUIRE(inner == child);
    // What may not be done with a graph that is owned.
    cudaGraphExec_t exec, none;
    cudaGraph_t stranger;
    CHECK(cudaGraphCreate(&stranger, 0));
    REQUIRE(cudaGraphInstantiate(&none, child, 0) != cudaSuccess);
    REQUIRE(cudaGraphAddNode(&node, stranger, nullptr, nullptr, 0, &params) != cudaSuccess);
    REQUIRE(cudaGraphDestroy(child) != cudaSuccess);
    REQUIRE(cudaGraphAddMemAllocNode(&made, child, nullptr, 0, &memory) != cudaSuccess);
    (void)cudaGetLastError();
    CHECK(cudaGraphInstantiate(&exec, parent, 0));
    CHECK(cudaGraphLaunch(exec, a));
    order();
    copy<<<N / 256, 256, 0, b>>>(result, out, N);
    expect(out, N, 11);
    CHECK(cudaGraphLaunch(exec, a));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(parent));
    CHECK(cudaGraphDestroy(stranger));
}

template <class F> static F driver(const char *name) {
    void *found;
    cudaDriverEntryPointQueryResult status;
    CHECK(cudaGetDriverEntryPointByVersion(name, &found, 13000, cudaEnableDefault, &status));
    REQUIRE(status == cudaDriverEntryPointSuccess);
    return (F)found;
}
#define DRIVER(name) driver<decltype(&name)>(#name)

// A stream in each of two green contexts.
static void green() {
    CUdevResource all, groups[2], rest;
    CUgreenCtx contexts[2];
    CUcontext primary, context;
    unsigned count = 0;
    CHECK(DRIVER(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    unsigned half = all.sm.smCount / 2;
    CHECK(DRIVER(cuDevSmResourceSplitByCount)(nullptr, &count, &all, nullptr, 0, half));
    REQUIRE(count == 2);
    CHECK(DRIVER(cuDevSmResourceSplitByCount)(groups, &count, &all, &rest, 0, half));
    REQUIRE(groups[0].sm.smCount >= half && groups[0].sm.smCount + groups[1].sm.smCount + rest.sm.smCount == all.sm.smCount);
    CHECK(DRIVER(cuCtxGetCurrent)(&primary));
    for (int i = 0; i < 2; i++) {
        CUdevResourceDesc desc;
        CUdevResource own;
        CHECK(DRIVER(cuDevResourceGenerateDesc)(&desc, &groups[i], 1));
        CHECK(DRIVER(cuGreenCtxCreate)(&contexts[i], desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
        CHECK(DRIVER(cuGreenCtxStreamCreate)(i ? &b : &a, contexts[i], CU_STREAM_NON_BLOCKING, 0));
        CHECK(DRIVER(cuGreenCtxGetDevResource)(contexts[i], &own, CU_DEV_RESOURCE_TYPE_SM));
        REQUIRE(own.sm.smCount == groups[i].sm.smCount);
    }
    CUgreenCtx found;
    CHECK(DRIVER(cuStreamGetGreenCtx)(a, &found));
    REQUIRE(found == contexts[0]);
    CHECK(DRIVER(cuStreamGetGreenCtx)(0, &found));
    REQUIRE(found == nullptr);
    int *p = device(N * sizeof(int)), *result = device(N * sizeof(int));
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    fill<<<N / 256, 256, 0, a>>>(p, N, 3);
    if (is("contexts")) {
        CHECK(DRIVER(cuGreenCtxRecordEvent)(contexts[0], event));
        CHECK(DRIVER(cuGreenCtxWaitEvent)(contexts[1], event));
    } else if (is("contexts, racy")) {
        CHECK(DRIVER(cuGreenCtxRecordEvent)(contexts[1], event));
        CHECK(DRIVER(cuGreenCtxWaitEvent)(contexts[1], event));
    } else if (is("whole")) {
        CHECK(cudaDeviceSynchronize());
    } else if (is("its own") || is("its own, racy")) {
        CHECK(DRIVER(cuCtxFromGreenCtx)(&context, contexts[is("its own") ? 0 : 1]));
        CHECK(DRIVER(cuCtxSetCurrent)(context));
        CHECK(cudaDeviceSynchronize());
        CHECK(DRIVER(cuCtxSetCurrent)(primary));
    } else {
        order();
    }
    copy<<<N / 256, 256, 0, b>>>(result, p, N);
    expect(p, N, 3);
    for (CUgreenCtx made : contexts) CHECK(DRIVER(cuGreenCtxDestroy)(made));
    // Its memory was the primary context's.
    expect(p, N, 3);
}

int main(int, char **argv) {
    how = argv[2];
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    const char *call = argv[1];
    if (!strcmp(call, "boxes")) boxes();
    if (!strcmp(call, "discard")) ranges(true, false);
    if (!strcmp(call, "prefetch")) ranges(false, true);
    if (!strcmp(call, "discard and prefetch")) ranges(true, true);
    if (!strcmp(call, "moved")) moved();
    if (!strcmp(call, "green")) green();
    puts("done");
    return 0;
}
