// CUDA's less used rules of order, each as a race and its mended twin (or, where there is no race to make, as a clean program):
// graphs in all their forms, green contexts, batches, mapped memory, memory operations, handles that come back, IPC.
// Usage: order_rules CASE; order_rules --list prints "name race|clean" lines. Exits with 77 when the device or driver can not do it.
// Build: nvcc -O2 -g -std=c++17 -arch=native order_rules.cu -o order_rules   (links no driver: its functions are looked up)
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error == cudaErrorNotSupported) exit(77);                                                                  \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(error));                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define DO(call)                                                                                                       \
    do {                                                                                                               \
        CUresult result = (call);                                                                                      \
        if (result == CUDA_ERROR_NOT_SUPPORTED) exit(77);                                                              \
        if (result != CUDA_SUCCESS) {                                                                                  \
            fprintf(stderr, "line %d: driver error %d\n", __LINE__, result);                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define DRIVER(name)                                                                                                   \
    decltype(&name) p_##name = nullptr;                                                                                \
    CHECK(cudaGetDriverEntryPointByVersion(#name, (void **)&p_##name, CUDA_VERSION, cudaEnableDefault, nullptr))

static const int N = 1 << 18;
static const size_t BYTES = N * sizeof(float);
static float *x, *y, *z;
static cudaStream_t s, t; // non-blocking
static cudaStream_t b, c; // blocking
static cudaEvent_t e, f;

__global__ void fill(float *p, float v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) p[i] = v;
}
__global__ void add(float *to, const float *from) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) to[i] += from[i];
}
__global__ void add_after_predecessor(float *to, const float *from) {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) to[i] += from[i];
}
__global__ void fill_and_trigger(float *p, float v) {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) p[i] = v;
}

static void filled(float *p, cudaStream_t on) { fill<<<N / 256, 256, 0, on>>>(p, 1); CHECK(cudaGetLastError()); }
static void added(float *to, const float *from, cudaStream_t on) { add<<<N / 256, 256, 0, on>>>(to, from); CHECK(cudaGetLastError()); }
static void after(cudaStream_t later, cudaStream_t earlier) { CHECK(cudaEventRecord(f, earlier)); CHECK(cudaStreamWaitEvent(later, f, 0)); }

static cudaKernelNodeParams kernel(void *function, void **params) {
    cudaKernelNodeParams p = {};
    p.func = function;
    p.gridDim = N / 256;
    p.blockDim = 256;
    p.kernelParams = params;
    return p;
}
static cudaGraphNode_t fill_node(cudaGraph_t graph, float *p, std::vector<cudaGraphNode_t> deps = {}) {
    float v = 1;
    void *params[] = {&p, &v};
    auto k = kernel((void *)fill, params);
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, deps.data(), deps.size(), &k));
    return node;
}
static cudaGraphNode_t add_node(cudaGraph_t graph, float *to, float *from, std::vector<cudaGraphNode_t> deps = {}) {
    void *params[] = {&to, &from};
    auto k = kernel((void *)add, params);
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, deps.data(), deps.size(), &k));
    return node;
}
static cudaGraph_t graph() { cudaGraph_t g; CHECK(cudaGraphCreate(&g, 0)); return g; }
static cudaGraphExec_t executable(cudaGraph_t g) { cudaGraphExec_t exec; CHECK(cudaGraphInstantiate(&exec, g, 0)); return exec; }
static void launched(cudaGraph_t g, cudaStream_t on) { CHECK(cudaGraphLaunch(executable(g), on)); }

// A wait of the legacy stream for an event never recorded is no barrier among blocking streams.
static void legacy_wait_never(bool mended) {
    filled(x, b);
    if (mended) CHECK(cudaEventRecord(e, b));
    CHECK(cudaStreamWaitEvent(0, e, 0));
    added(y, x, c);
}
static void child_graph(bool mended) {
    cudaGraph_t inner = graph(), outer = graph();
    fill_node(inner, x);
    cudaGraphNode_t child;
    CHECK(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, inner));
    add_node(outer, y, x, mended ? std::vector{child} : std::vector<cudaGraphNode_t>{});
    launched(outer, s);
}
static void conditional_body(bool mended) {
    cudaGraph_t outer = graph();
    cudaGraphConditionalHandle handle;
    CHECK(cudaGraphConditionalHandleCreate(&handle, outer, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeIf;
    params.conditional.size = 1;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddNode(&node, outer, nullptr, nullptr, 0, &params));
    fill_node(params.conditional.phGraph_out[0], x);
    add_node(outer, y, x, mended ? std::vector{node} : std::vector<cudaGraphNode_t>{});
    launched(outer, s);
}
static void cloned(bool mended) {
    cudaGraph_t g = graph(), copy;
    cudaGraphNode_t first = fill_node(g, x);
    add_node(g, y, x, mended ? std::vector{first} : std::vector<cudaGraphNode_t>{});
    CHECK(cudaGraphClone(&copy, g));
    CHECK(cudaGraphDestroy(g));
    launched(copy, s);
}
// The record node is given another event: who waits for the first one waits for nothing.
static void exec_event_node(bool mended) {
    cudaGraph_t g = graph();
    cudaGraphNode_t first = fill_node(g, x), record;
    cudaEvent_t other;
    CHECK(cudaEventCreateWithFlags(&other, cudaEventDisableTiming));
    CHECK(cudaGraphAddEventRecordNode(&record, g, &first, 1, e));
    cudaGraphExec_t exec = executable(g);
    CHECK(cudaGraphExecEventRecordNodeSetEvent(exec, record, other));
    CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamWaitEvent(t, mended ? other : e, 0));
    added(y, x, t);
}
// The child graph's node is given another buffer.
static void exec_child_params(bool mended) {
    cudaGraph_t inner = graph(), changed = graph(), outer = graph();
    fill_node(inner, x);
    fill_node(changed, z);
    cudaGraphNode_t child;
    CHECK(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, inner));
    cudaGraphExec_t exec = executable(outer);
    CHECK(cudaGraphExecChildGraphNodeSetParams(exec, child, changed));
    CHECK(cudaGraphLaunch(exec, s));
    added(y, mended ? x : z, t);
}
static void exec_updated(bool mended) {
    cudaGraph_t first = graph(), second = graph();
    fill_node(first, x);
    fill_node(second, z);
    cudaGraphExec_t exec = executable(first);
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(exec, second, &info));
    CHECK(cudaGraphLaunch(exec, s));
    added(y, mended ? x : z, t);
}
// After an update nodes still go by the graph that the executable was made from.
static void exec_updated_then_changed(bool mended) {
    cudaGraph_t first = graph(), second = graph();
    cudaGraphNode_t node = fill_node(first, x);
    fill_node(second, z);
    cudaGraphExec_t exec = executable(first);
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(exec, second, &info));
    float v = 2;
    void *params[] = {&x, &v};
    auto k = kernel((void *)fill, params);
    CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &k));
    CHECK(cudaGraphLaunch(exec, s));
    added(y, mended ? z : x, t);
}
static void disabled_node(bool mended) {
    cudaGraph_t g = graph();
    cudaGraphNode_t node = fill_node(g, x);
    cudaGraphExec_t exec = executable(g);
    CHECK(cudaGraphNodeSetEnabled(exec, node, mended ? 0 : 1));
    CHECK(cudaGraphLaunch(exec, s));
    added(y, x, t);
}
static void capture_to_graph(bool mended) {
    cudaGraph_t g = graph();
    cudaGraphNode_t first = fill_node(g, x);
    CHECK(cudaStreamBeginCaptureToGraph(s, g, &first, nullptr, mended ? 1 : 0, cudaStreamCaptureModeThreadLocal));
    added(y, x, s);
    CHECK(cudaStreamEndCapture(s, &g));
    launched(g, s);
}
static void capture_dependencies_cut(bool mended) {
    cudaGraph_t g;
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    filled(x, s);
    if (!mended) CHECK(cudaStreamUpdateCaptureDependencies(s, nullptr, nullptr, 0, cudaStreamSetCaptureDependencies));
    added(y, x, s);
    CHECK(cudaStreamEndCapture(s, &g));
    launched(g, s);
}
// A programmatic edge orders nothing for a kernel that never waits for it.
static void programmatic_edge(bool mended) {
    cudaGraph_t g = graph();
    float v = 1;
    void *first_params[] = {&x, &v}, *second_params[] = {&y, &x};
    auto first = kernel((void *)fill_and_trigger, first_params);
    auto second = kernel(mended ? (void *)add_after_predecessor : (void *)add, second_params);
    cudaGraphNode_t one, two;
    CHECK(cudaGraphAddKernelNode(&one, g, nullptr, 0, &first));
    CHECK(cudaGraphAddKernelNode(&two, g, nullptr, 0, &second));
    cudaGraphEdgeData edge = {};
    edge.type = cudaGraphDependencyTypeProgrammatic;
    edge.from_port = cudaGraphKernelNodePortProgrammatic;
    CHECK(cudaGraphAddDependencies(g, &one, &two, &edge, 1));
    launched(g, s);
}
// A value written by a node of a graph releases another stream.
static void memory_operation_node(bool mended) {
    DRIVER(cuGraphAddBatchMemOpNode);
    DRIVER(cuStreamWaitValue32);
    DRIVER(cuCtxGetCurrent);
    unsigned *flag;
    CHECK(cudaMalloc(&flag, 256));
    CHECK(cudaMemset(flag, 0, 256));
    CHECK(cudaDeviceSynchronize());
    cudaGraph_t g = graph();
    cudaGraphNode_t first = fill_node(g, x), node;
    CUstreamBatchMemOpParams op = {};
    op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    op.writeValue.address = (CUdeviceptr)flag;
    op.writeValue.value = 1;
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = {};
    DO(p_cuCtxGetCurrent(&params.ctx));
    params.count = 1;
    params.paramArray = &op;
    DO(p_cuGraphAddBatchMemOpNode(&node, g, &first, 1, &params));
    launched(g, s);
    if (mended) DO(p_cuStreamWaitValue32(t, (CUdeviceptr)flag, 1, CU_STREAM_WAIT_VALUE_GEQ));
    added(y, x, t);
}

struct Green {
    CUgreenCtx context;
    CUstream stream;
};
static Green green_context() {
    DRIVER(cuDeviceGetDevResource);
    DRIVER(cuDevSmResourceSplitByCount);
    DRIVER(cuDevResourceGenerateDesc);
    DRIVER(cuGreenCtxCreate);
    DRIVER(cuGreenCtxStreamCreate);
    CUdevResource all, part, rest;
    unsigned groups = 1;
    DO(p_cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    DO(p_cuDevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, 16));
    CUdevResourceDesc description;
    DO(p_cuDevResourceGenerateDesc(&description, &part, 1));
    Green green;
    DO(p_cuGreenCtxCreate(&green.context, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    DO(p_cuGreenCtxStreamCreate(&green.stream, green.context, CU_STREAM_NON_BLOCKING, 0));
    return green;
}
static void green_context_record(bool mended) {
    DRIVER(cuGreenCtxRecordEvent);
    Green green = green_context();
    filled(x, green.stream);
    if (mended) {
        DO(p_cuGreenCtxRecordEvent(green.context, e));
        CHECK(cudaStreamWaitEvent(t, e, 0));
    }
    added(y, x, t);
}
static void green_context_wait(bool mended) {
    DRIVER(cuGreenCtxWaitEvent);
    Green green = green_context();
    filled(x, s);
    CHECK(cudaEventRecord(e, s));
    if (mended) DO(p_cuGreenCtxWaitEvent(green.context, e));
    added(y, x, green.stream);
}
static void green_context_and_device(bool mended) {
    Green green = green_context();
    filled(x, green.stream);
    if (mended) CHECK(cudaDeviceSynchronize());
    added(y, x, t);
}

static void batch(void *to0, void *from0, void *to1, void *from1, size_t bytes, cudaMemcpySrcAccessOrder order, cudaStream_t on) {
    void *to[] = {to0, to1};
    const void *from[] = {from0, from1};
    size_t sizes[] = {bytes, bytes};
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = order;
    size_t first = 0;
    CHECK(cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, on));
}
// The copies of one batch have no order among themselves.
static void batch_overlaps(bool mended) {
    batch(y, x, mended ? y + N / 2 : y + N / 4, z, BYTES / 2, cudaMemcpySrcAccessOrderStream, s);
}
// Sources that are read during the call may be overwritten after it.
static void batch_source_order(bool mended) {
    float *pinned;
    CHECK(cudaMallocHost(&pinned, BYTES));
    memset(pinned, 0, BYTES);
    batch(x, pinned, y, pinned + N / 2, BYTES / 2, mended ? cudaMemcpySrcAccessOrderDuringApiCall : cudaMemcpySrcAccessOrderStream, s);
    CHECK(cudaMemcpyAsync(pinned, z, BYTES, cudaMemcpyDeviceToHost, t));
}
static void sync_memops(bool mended) {
    DRIVER(cuPointerSetAttribute);
    unsigned one = 1;
    if (mended) DO(p_cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)x));
    CHECK(cudaMemset(x, 0, BYTES));
    added(y, x, t);
}
static void array_freed(bool mended) {
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocArray(&array, &format, 64, 64));
    filled(x, s);
    if (mended) CHECK(cudaFreeArray(array));
    added(y, x, t);
    if (!mended) CHECK(cudaFreeArray(array));
}
static void stream_handle_reused(bool mended) {
    cudaStream_t old, young;
    CHECK(cudaStreamCreateWithFlags(&old, cudaStreamNonBlocking));
    filled(x, old);
    if (mended) CHECK(cudaStreamSynchronize(old));
    CHECK(cudaStreamDestroy(old));
    CHECK(cudaStreamCreateWithFlags(&young, cudaStreamNonBlocking));
    added(y, x, young);
}
static void event_handle_reused(bool mended) {
    cudaEvent_t old, young;
    CHECK(cudaEventCreateWithFlags(&old, cudaEventDisableTiming));
    filled(x, s);
    CHECK(cudaEventRecord(old, s));
    if (mended) CHECK(cudaStreamWaitEvent(t, old, 0));
    CHECK(cudaEventDestroy(old));
    CHECK(cudaEventCreateWithFlags(&young, cudaEventDisableTiming));
    CHECK(cudaStreamWaitEvent(t, young, 0));
    added(y, x, t);
}

struct Twice {
    CUdeviceptr one, two;
};
static Twice mapped_twice() {
    DRIVER(cuMemCreate);
    DRIVER(cuMemAddressReserve);
    DRIVER(cuMemMap);
    DRIVER(cuMemSetAccess);
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccessDesc access = {};
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const size_t size = 2 << 20;
    CUmemGenericAllocationHandle handle;
    DO(p_cuMemCreate(&handle, size, &prop, 0));
    Twice twice;
    for (CUdeviceptr *p : {&twice.one, &twice.two}) {
        DO(p_cuMemAddressReserve(p, size, 0, 0, 0));
        DO(p_cuMemMap(*p, size, 0, handle, 0));
        DO(p_cuMemSetAccess(*p, size, &access, 1));
    }
    return twice;
}
static void two_mappings(bool mended) {
    Twice twice = mapped_twice();
    filled((float *)twice.one, s);
    if (mended) after(t, s);
    added(y, (float *)twice.two, t);
}
// One mapping goes away while work uses the other.
static void one_mapping_goes(bool) {
    DRIVER(cuMemUnmap);
    for (bool first : {true, false}) {
        Twice twice = mapped_twice();
        filled((float *)(first ? twice.two : twice.one), s);
        DO(p_cuMemUnmap(first ? twice.one : twice.two, 2 << 20));
    }
}
// What is left of two mappings is still the same memory.
static void mapping_that_is_left(bool mended) {
    DRIVER(cuMemUnmap);
    Twice twice = mapped_twice();
    filled((float *)twice.two, s);
    DO(p_cuMemUnmap(twice.one, 2 << 20));
    if (mended) after(t, s);
    added(y, (float *)twice.two, t);
}
static void pool_exported(bool mended) {
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    props.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t pool;
    CHECK(cudaMemPoolCreate(&pool, &props));
    float *p;
    CHECK(cudaMallocFromPoolAsync((void **)&p, BYTES, pool, s));
    filled(p, s);
    if (mended) after(t, s);
    added(y, p, t);
    CHECK(cudaDeviceSynchronize());
}

// Another process stands between two streams of this one.
static void through_another_process(bool) {
    int down[2], up[2];
    if (pipe(down) || pipe(up)) exit(1);
    pid_t child = fork();
    struct { cudaIpcEventHandle_t event; cudaIpcMemHandle_t memory; } sent, answer;
    if (child == 0) {
        close(down[1]); // or the end of the parent's side is never seen
        if (read(down[0], &sent, sizeof sent) != sizeof sent) _exit(1);
        cudaEvent_t theirs, ours;
        void *memory;
        cudaStream_t mine;
        CHECK(cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&ours, cudaEventDisableTiming | cudaEventInterprocess));
        CHECK(cudaIpcOpenEventHandle(&theirs, sent.event));
        CHECK(cudaIpcOpenMemHandle(&memory, sent.memory, cudaIpcMemLazyEnablePeerAccess));
        CHECK(cudaStreamWaitEvent(mine, theirs, 0));
        filled((float *)memory, mine);
        CHECK(cudaEventRecord(ours, mine));
        CHECK(cudaIpcGetEventHandle(&answer.event, ours));
        if (write(up[1], &answer, sizeof answer) != sizeof answer) _exit(1);
        char end;
        (void)!read(down[0], &end, 1); // until the parent is done
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaIpcCloseMemHandle(memory));
        exit(0);
    }
    cudaEvent_t ours, theirs;
    float *memory;
    cudaStream_t one, two;
    CHECK(cudaMalloc(&memory, BYTES));
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&ours, cudaEventDisableTiming | cudaEventInterprocess));
    filled(memory, one);
    CHECK(cudaEventRecord(ours, one));
    CHECK(cudaIpcGetEventHandle(&sent.event, ours));
    CHECK(cudaIpcGetMemHandle(&sent.memory, memory));
    if (write(down[1], &sent, sizeof sent) != sizeof sent || read(up[0], &answer, sizeof answer) != sizeof answer) exit(1);
    CHECK(cudaIpcOpenEventHandle(&theirs, answer.event));
    CHECK(cudaStreamWaitEvent(two, theirs, 0));
    filled(memory, two);
    CHECK(cudaStreamSynchronize(two));
    CHECK(cudaEventDestroy(theirs));
    close(down[1]);
    int status = 0;
    waitpid(child, &status, 0);
    if (status) exit(1);
}

// This process fills memory that another one reads: by the host's word that it is full, or by an event of both.
static void through_another(bool mended, bool by_event) {
    int down[2], up[2];
    if (pipe(down) || pipe(up)) exit(1);
    pid_t child = fork();
    struct { cudaIpcEventHandle_t event; cudaIpcMemHandle_t memory; } sent;
    cudaStream_t mine;
    cudaEvent_t full;
    float *memory, *sum;
    char end = 0;
    if (child == 0) {
        close(down[1]);
        if (read(down[0], &sent, sizeof sent) != sizeof sent) _exit(1);
        CHECK(cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking));
        CHECK(cudaMalloc(&sum, BYTES));
        CHECK(cudaIpcOpenEventHandle(&full, sent.event));
        CHECK(cudaIpcOpenMemHandle((void **)&memory, sent.memory, cudaIpcMemLazyEnablePeerAccess));
        if (by_event) CHECK(cudaStreamWaitEvent(mine, full, 0));
        added(sum, memory, mine);
        CHECK(cudaStreamSynchronize(mine));
        CHECK(cudaIpcCloseMemHandle(memory));
        if (write(up[1], &end, 1) != 1) _exit(1);
        exit(0);
    }
    CHECK(cudaMalloc(&memory, BYTES));
    CHECK(cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&full, cudaEventDisableTiming | cudaEventInterprocess));
    if (by_event && !mended) CHECK(cudaEventRecord(full, mine));
    filled(memory, mine);
    if (by_event && mended) CHECK(cudaEventRecord(full, mine));
    CHECK(cudaIpcGetEventHandle(&sent.event, full));
    CHECK(cudaIpcGetMemHandle(&sent.memory, memory));
    if (!by_event && mended) CHECK(cudaStreamSynchronize(mine));
    if (write(down[1], &sent, sizeof sent) != sizeof sent || read(up[0], &end, 1) != 1) exit(1);
    int status = 0;
    waitpid(child, &status, 0);
    if (status) exit(1);
}
static void through_anothers_host(bool mended) { through_another(mended, false); }
static void through_anothers_event(bool mended) { through_another(mended, true); }

static struct Case {
    const char *name;
    void (*run)(bool);
    bool has_race = true, own_start = false;
} cases[] = {
    {"legacy_wait_never", legacy_wait_never},
    {"child_graph", child_graph},
    {"conditional_body", conditional_body},
    {"cloned", cloned},
    {"exec_event_node", exec_event_node},
    {"exec_child_params", exec_child_params},
    {"exec_updated", exec_updated},
    {"exec_updated_then_changed", exec_updated_then_changed},
    {"disabled_node", disabled_node},
    {"capture_to_graph", capture_to_graph},
    {"capture_dependencies_cut", capture_dependencies_cut},
    {"programmatic_edge", programmatic_edge},
    {"memory_operation_node", memory_operation_node},
    {"green_context_record", green_context_record},
    {"green_context_wait", green_context_wait},
    {"green_context_and_device", green_context_and_device},
    {"batch_overlaps", batch_overlaps},
    {"batch_source_order", batch_source_order},
    {"sync_memops", sync_memops},
    {"array_freed", array_freed},
    {"stream_handle_reused", stream_handle_reused},
    {"event_handle_reused", event_handle_reused},
    {"two_mappings", two_mappings},
    {"one_mapping_goes", one_mapping_goes, false},
    {"mapping_that_is_left", mapping_that_is_left},
    {"pool_exported", pool_exported},
    {"through_another_process", through_another_process, false, true},
    {"through_anothers_host", through_anothers_host, true, true},
    {"through_anothers_event", through_anothers_event, true, true},
};

static void set_up() {
    for (float **p : {&x, &y, &z}) {
        CHECK(cudaMalloc(p, BYTES));
        CHECK(cudaMemset(*p, 0, BYTES));
    }
    for (cudaStream_t *n : {&s, &t}) CHECK(cudaStreamCreateWithFlags(n, cudaStreamNonBlocking));
    for (cudaStream_t *n : {&b, &c}) CHECK(cudaStreamCreate(n));
    for (cudaEvent_t *n : {&e, &f}) CHECK(cudaEventCreateWithFlags(n, cudaEventDisableTiming));
    CHECK(cudaDeviceSynchronize());
}

int main(int argc, char **argv) {
    std::string wanted = argc > 1 ? argv[1] : "--list";
    for (auto &it : cases)
        for (bool mended : {false, true}) {
            if (!mended && !it.has_race) continue;
            std::string name = std::string(it.name) + (it.has_race && mended ? "_mended" : "");
            if (wanted == "--list") printf("%s %s\n", name.c_str(), mended ? "clean" : "race");
            if (wanted != name) continue;
            if (!it.own_start) set_up();
            it.run(mended);
            CHECK(cudaDeviceSynchronize());
            printf("%s done\n", name.c_str());
            return 0;
        }
    return wanted == "--list" ? 0 : 2;
}
