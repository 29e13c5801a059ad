// Events in the middle of graphs: five graphs of four works, with a node behind each set of them that
// records an event, or with one in front of each set that waits for an event. Each case looks at
// one of the works: does what comes after the event race with it, or what comes before the event? Each case uses
// memory of a size that no other has, and call stacks of its own. For each of them, the program prints the size,
// whether that is a race, and the case.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <utility>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

constexpr int WORKS = 4, SETS = 1 << WORKS, PART = 256;
// For each work, the works that it comes directly after.
static const int graphs[][WORKS] = {{0, 1, 2, 4}, {0, 1, 1, 6}, {0, 0, 1, 2}, {0, 0, 0, 0}, {0, 0, 3, 2}};
constexpr int GRAPHS = sizeof graphs / sizeof *graphs;
constexpr int CASES = GRAPHS * SETS * WORKS;

enum Make { ADDED, BY_TYPE, CAPTURED, CHILD, SET_AGAIN, UPDATED, MAKES };
static const char *const makes[] = {"added", "added by type", "captured", "in a child graph", "set again", "updated"};
enum Kind { KERNEL, FILL, COPY, KINDS };
static const char *const kinds[] = {"kernel", "fill", "copy"};
enum Waiter { STREAM, HOST, GRAPH, HOST_STORES, TWICE, WAITERS };
static const char *const waiters[] = {"a stream", "the host, and enqueues", "a graph", "the host, and stores", "a stream after two launches"};

static cudaStream_t stream, another;
static char *device;
static bool before[WORKS][WORKS];

__global__ void fill(char *to, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = 1;
}

// The works before each work.
static void close(const int *graph) {
    for (int to = 0; to < WORKS; to++)
        for (int from = 0; from < WORKS; from++) {
            before[from][to] = from < to && graph[to] >> from & 1;
            for (int middle = 0; middle < to; middle++)
                if (graph[to] >> middle & 1) before[from][to] |= before[from][middle];
        }
}

// What is enqueued writes to memory, but for a copy, which reads it.
static void enqueue(int kind, char *at, cudaStream_t to) {
    if (kind == KERNEL) fill<<<1, 32, 0, to>>>(at, PART);
    if (kind == FILL) CHECK(cudaMemsetAsync(at, 1, PART, to));
    if (kind == COPY) CHECK(cudaMemcpyAsync(device, at, PART, cudaMemcpyDefault, to));
}

// A graph that is being made, by one of the ways.
struct Builder {
    int make;
    cudaGraph_t graph, inner;
    void begin() {
        if (make == CAPTURED) CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        else CHECK(cudaGraphCreate(&graph, 0));
        inner = graph;
        if (make == CHILD) CHECK(cudaGraphCreate(&inner, 0));
    }
    void set(cudaGraphNode_t *after, int count) {
        CHECK(cudaStreamUpdateCaptureDependencies(stream, after, nullptr, count, cudaStreamSetCaptureDependencies));
    }
    cudaGraphNode_t captured() {
        cudaStreamCaptureStatus status;
        const cudaGraphNode_t *last;
        size_t count;
        CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &last, nullptr, &count));
        return *last;
    }
    cudaGraphNode_t work(int kind, char *at, cudaGraphNode_t *after, int count) {
        if (make == CAPTURED) return set(after, count), enqueue(kind, at, stream), captured();
        cudaGraphNode_t node;
        int n = PART;
        void *arguments[] = {&at, &n};
        if (kind == KERNEL) {
            cudaKernelNodeParams p = {};
            p.func = (void *)fill, p.gridDim = dim3(1), p.blockDim = dim3(32), p.kernelParams = arguments;
            CHECK(cudaGraphAddKernelNode(&node, inner, after, count, &p));
        }
        if (kind == FILL) {
            cudaMemsetParams p = {};
            p.dst = at, p.value = 1, p.elementSize = 1, p.width = PART, p.height = 1;
            CHECK(cudaGraphAddMemsetNode(&node, inner, after, count, &p));
        }
        if (kind == COPY) CHECK(cudaGraphAddMemcpyNode1D(&node, inner, after, count, device, at, PART, cudaMemcpyDefault));
        return node;
    }
    cudaGraphNode_t event(bool records, cudaEvent_t event, cudaGraphNode_t *after, int count) {
        cudaGraphNode_t node;
        if (make == CAPTURED) {
            set(after, count);
            if (records) CHECK(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
            else CHECK(cudaStreamWaitEvent(stream, event, cudaEventWaitExternal));
            return captured();
        }
        if (make == BY_TYPE) {
            cudaGraphNodeParams p = {};
            p.type = records ? cudaGraphNodeTypeEventRecord : cudaGraphNodeTypeWaitEvent;
            (records ? p.eventRecord.event : p.eventWait.event) = event;
            CHECK(cudaGraphAddNode(&node, inner, after, nullptr, count, &p));
        } else if (records) {
            CHECK(cudaGraphAddEventRecordNode(&node, inner, after, count, event));
        } else {
            CHECK(cudaGraphAddEventWaitNode(&node, inner, after, count, event));
        }
        return node;
    }
    cudaGraph_t end(cudaGraphNode_t *all, int count) {
        if (make == CAPTURED) {
            set(all, count);
            CHECK(cudaStreamEndCapture(stream, &graph));
        }
        if (make == CHILD) {
            cudaGraphNode_t node;
            CHECK(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, inner));
            CHECK(cudaGraphDestroy(inner));
        }
        return graph;
    }
};

// The graph of a case. The event's node is behind the set, or in front of it; one that waits is also behind the
// first work if that is not in the set or behind it.
static cudaGraph_t build(int make, int kind, const int *shape, int set, int work, bool records, char *memory, cudaEvent_t event, cudaGraphNode_t *at) {
    Builder builder{make};
    builder.begin();
    cudaGraphNode_t nodes[WORKS + 1], after[WORKS + 1];
    int wait_at = WORKS;
    for (int i = WORKS; i-- > 0;) if (set >> i & 1) wait_at = i;
    for (int i = 0; i <= WORKS; i++) {
        if (!records && i == wait_at) *at = nodes[WORKS] = builder.event(false, event, nodes, wait_at > 0);
        if (i == WORKS) break;
        int count = 0;
        for (int k = 0; k < i; k++) if (shape[i] >> k & 1) after[count++] = nodes[k];
        if (!records && set >> i & 1) after[count++] = nodes[WORKS];
        nodes[i] = builder.work(i == work ? kind : FILL, i == work ? memory : device + (i + 1) * PART, after, count);
    }
    if (records) {
        int count = 0;
        for (int k = 0; k < WORKS; k++) if (set >> k & 1) after[count++] = nodes[k];
        *at = nodes[WORKS] = builder.event(true, event, after, count);
    }
    return builder.end(nodes, WORKS + 1);
}

static cudaGraphExec_t instantiate(int make, int kind, const int *shape, int set, int work, bool records, char *memory, cudaEvent_t event) {
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    cudaEvent_t old = event;
    if (make == SET_AGAIN || make == UPDATED) CHECK(cudaEventCreate(&old));
    cudaGraph_t graph = build(make, kind, shape, set, work, records, memory, old, &node);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    if (make == SET_AGAIN && records) CHECK(cudaGraphExecEventRecordNodeSetEvent(exec, node, event));
    if (make == SET_AGAIN && !records) CHECK(cudaGraphExecEventWaitNodeSetEvent(exec, node, event));
    if (make == UPDATED) {
        cudaGraph_t other = build(make, kind, shape, set, work, records, memory, event, &node);
        cudaGraphExecUpdateResultInfo info;
        CHECK(cudaGraphExecUpdate(exec, other, &info));
        CHECK(cudaGraphDestroy(other));
    }
    CHECK(cudaGraphDestroy(graph));
    return exec;
}

static void one(int number, bool records) {
    const int *shape = graphs[number / SETS / WORKS];
    int set = number / WORKS % SETS, work = number % WORKS, kind = number / 2 % KINDS, make = (number + number / WORKS) % MAKES;
    int waiter = number / 3 % WAITERS;
    close(shape);
    if (records && waiter == HOST_STORES) kind = COPY;
    size_t size = 4096 + 64 * (1 + number + records * CASES);
    char *memory;
    if (kind == COPY) CHECK(cudaMallocHost(&memory, size));
    else CHECK(cudaMalloc(&memory, size));
    if (kind == COPY) memset(memory, 0, size);
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    bool ordered = false;
    cudaGraphExec_t exec = instantiate(make, kind, shape, set, work, records, memory, event), second = nullptr;
    if (records) {
        for (int k = 0; k < WORKS; k++) ordered |= set >> k & 1 && (k == work || before[work][k]);
        for (int k = 0; k < (waiter == TWICE ? 2 : 1); k++) CHECK(cudaGraphLaunch(exec, stream));
        if (waiter == HOST || waiter == HOST_STORES) CHECK(cudaEventSynchronize(event));
        if (waiter == STREAM || waiter == TWICE) CHECK(cudaStreamWaitEvent(another, event, 0));
        if (waiter == HOST_STORES) {
            memset(memory, 2, PART);
        } else if (waiter == GRAPH) {
            cudaGraph_t graph;
            cudaGraphNode_t wait;
            CHECK(cudaGraphCreate(&graph, 0));
            CHECK(cudaGraphAddEventWaitNode(&wait, graph, nullptr, 0, event));
            Builder{ADDED, graph, graph}.work(FILL, memory, &wait, 1);
            Builder{ADDED, graph, graph}.work(FILL, device + 6 * PART, nullptr, 0);
            CHECK(cudaGraphInstantiate(&second, graph, 0));
            CHECK(cudaGraphDestroy(graph));
            CHECK(cudaGraphLaunch(second, another));
        } else {
            enqueue(FILL, memory, another);
        }
    } else {
        for (int k = 0; k < WORKS; k++) ordered |= set >> k & 1 && (k == work || before[k][work]);
        enqueue(FILL, memory, another);
        CHECK(cudaEventRecord(event, another));
        CHECK(cudaGraphLaunch(exec, stream));
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphExecDestroy(exec));
    if (second) CHECK(cudaGraphExecDestroy(second));
    CHECK(cudaEventDestroy(event));
    if (kind == COPY) CHECK(cudaFreeHost(memory));
    else CHECK(cudaFree(memory));
    printf("%zu %s graph %d, set %d, work %d, %s, %s, %s\n", size, ordered ? "silent" : "race", number / SETS / WORKS, set, work, makes[make], kinds[kind], records ? waiters[waiter] : "waits");
}

// Call stacks of its own for each case.
template <int N> __attribute__((noinline)) void test(bool records) {
    one(N, records);
    asm volatile("" ::: "memory");
}
template <int... N> void all(std::integer_sequence<int, N...>) {
    (test<N>(true), ...);
    (test<N>(false), ...);
}

int main() {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&another, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&device, 8 * PART));
    all(std::make_integer_sequence<int, CASES>());
    puts("done");
    return 0;
}
