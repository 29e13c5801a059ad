// Host functions of graphs that tell by a flag that what comes before them is over, and readers of results who have
// seen the flag: by where the work is, each way of making the graph, and each reader. Each case uses memory of a size
// that no other has. For each of them, the program prints the size, whether that is a race, and the case.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <condition_variable>
#include <cuda_runtime.h>
#include <mutex>
#include <thread>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), exit(1);               \
    } while (0)

enum Make { ADDED, CAPTURED, CHILD, WORK_IN_CHILD, FUNCTION_IN_CHILD, MAKES };
static const char *const makes[] = {"added", "captured", "in a child graph", "work in a child graph", "function in a child graph"};
// Where the work is whose result is read. AFAR: before the function, with a node between. FORK: before it, and before
// other work. JOIN: before it, beside other work. BESIDE: neither before nor behind it. BEHIND: behind it. GATE: behind
// it, and the function waits for the reader. HURRY: behind it, and nobody waits (the function may have returned or not, so
// that only "threads" has a verdict). SECOND: before another function, which tells nothing (a race that is not told from
// one where it does).
enum Place { CHAIN, AFAR, FORK, JOIN, BESIDE, BEHIND, GATE, HURRY, SECOND, PLACES };
static const char *const places[] = {"chain", "afar", "fork", "join", "beside", "behind", "gate", "hurry", "second"};
// Who reads: the main thread, a function of the same graph beside all others, a function of another stream.
enum Reader { MAIN, NODE, STREAM, READERS };
static const char *const readers[] = {"the main thread", "another node", "another stream"};

constexpr int PART = 256;
static cudaStream_t stream, beside, another;
static int cases;
// The word "threads": only what locks between threads decide.
static bool by_threads;
static volatile int sink;

struct Case {
    char *result, *other;
    int place, reader;
    std::atomic<int> told, read;
    std::mutex mutex;
    std::condition_variable change;
    bool touched;
};

__global__ void fill(char *to, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = 1;
}

static bool seen(const std::atomic<int> &flag, int limit) {
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit);
    while (!flag)
        if (std::chrono::steady_clock::now() > end) return false;
        else std::this_thread::yield();
    return true;
}
static void touch(Case *c) {
    // That the function which told has returned is known a little later, on a busy machine later still. Before that, it
    // may wait for the reader (HURRY).
    if (c->place == BEHIND) std::this_thread::sleep_for(std::chrono::milliseconds(250));
    if (c->place == GATE || c->place == HURRY) ((volatile char *)c->result)[64] = 1;
    else for (int i = 0; i < PART; i += 64) sink = c->result[i];
    c->read = 1;
    if (c->place != GATE) return;
    std::lock_guard<std::mutex> lock(c->mutex);
    c->touched = true;
    c->change.notify_all();
}
static void tell(void *data) {
    Case *c = (Case *)data;
    c->told = 1;
    if (c->place != GATE) return;
    std::unique_lock<std::mutex> lock(c->mutex);
    c->change.wait(lock, [=] { return c->touched; });
}
static void nothing(void *) {}
static void read(void *data) {
    Case *c = (Case *)data;
    if (seen(c->told, 2000)) touch(c);
    else puts("a function was told nothing");
}

static cudaGraphNode_t add_fill(cudaGraph_t graph, cudaGraphNode_t after, char *at) {
    cudaGraphNode_t node;
    int n = PART;
    void *arguments[] = {&at, &n};
    cudaKernelNodeParams p = {};
    p.func = (void *)fill, p.gridDim = dim3(1), p.blockDim = dim3(32), p.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&node, graph, &after, after != nullptr, &p));
    return node;
}
static cudaGraphNode_t add_function(cudaGraph_t graph, cudaGraphNode_t after, cudaHostFn_t run, Case *c) {
    cudaGraphNode_t node;
    cudaHostNodeParams p = {run, c};
    CHECK(cudaGraphAddHostNode(&node, graph, &after, after != nullptr, &p));
    return node;
}
// Adds a node to the graph itself or, inside a child graph, as its only one.
template <class Add> static cudaGraphNode_t part(cudaGraph_t graph, cudaGraphNode_t after, bool inside, Add add) {
    if (!inside) return add(graph, after);
    cudaGraph_t child;
    cudaGraphNode_t node;
    CHECK(cudaGraphCreate(&child, 0));
    add(child, nullptr);
    CHECK(cudaGraphAddChildGraphNode(&node, graph, &after, after != nullptr, child));
    CHECK(cudaGraphDestroy(child));
    return node;
}
static void edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
#if CUDART_VERSION >= 13000
    CHECK(cudaGraphAddDependencies(graph, &from, &to, nullptr, 1));
#else
    CHECK(cudaGraphAddDependencies(graph, &from, &to, 1));
#endif
}

static cudaGraph_t build(int make, Case *c) {
    cudaGraph_t graph, inner;
    if (make == CAPTURED) {
        cudaEvent_t begun, forked, joined;
        for (cudaEvent_t *event : {&begun, &forked, &joined}) CHECK(cudaEventCreate(event));
        auto order = [](cudaEvent_t event, cudaStream_t from, cudaStream_t to) {
            CHECK(cudaEventRecord(event, from));
            CHECK(cudaStreamWaitEvent(to, event, 0));
        };
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        order(begun, stream, another);
        order(forked, stream, beside);
        auto work = [](char *at, cudaStream_t on) { fill<<<1, 32, 0, on>>>(at, PART); };
        if (c->place == CHAIN || c->place == AFAR || c->place == FORK) work(c->result, stream);
        if (c->place == AFAR) work(c->other, stream);
        if (c->place == FORK) order(forked, stream, beside), work(c->other, beside);
        if (c->place == JOIN) work(c->result, beside), work(c->other, stream), order(forked, beside, stream);
        if (c->place == BESIDE || c->place == SECOND) work(c->result, beside);
        if (c->place == SECOND) CHECK(cudaLaunchHostFunc(beside, nothing, c));
        CHECK(cudaLaunchHostFunc(stream, tell, c));
        if (c->place == BEHIND || c->place == GATE || c->place == HURRY) work(c->result, stream);
        if (c->reader == NODE) CHECK(cudaLaunchHostFunc(another, read, c));
        order(joined, beside, stream);
        order(begun, another, stream);
        CHECK(cudaStreamEndCapture(stream, &graph));
        return graph;
    }
    CHECK(cudaGraphCreate(&graph, 0));
    inner = graph;
    if (make == CHILD) CHECK(cudaGraphCreate(&inner, 0));
    auto work = [&](cudaGraphNode_t after, char *at) {
        return part(inner, after, make == WORK_IN_CHILD, [&](cudaGraph_t g, cudaGraphNode_t a) { return add_fill(g, a, at); });
    };
    auto function = [&](cudaGraphNode_t after, cudaHostFn_t run) {
        return part(inner, after, make == FUNCTION_IN_CHILD, [&](cudaGraph_t g, cudaGraphNode_t a) { return add_function(g, a, run, c); });
    };
    cudaGraphNode_t last = nullptr, more = nullptr;
    if (c->place < BESIDE) last = work(nullptr, c->result);
    if (c->place == AFAR) last = work(last, c->other);
    if (c->place == FORK) work(last, c->other);
    if (c->place == JOIN) more = work(nullptr, c->other);
    if (c->place == BESIDE) work(nullptr, c->result);
    if (c->place == SECOND) function(work(nullptr, c->result), nothing);
    last = function(last, tell);
    if (more) edge(inner, more, last);
    if (c->place == BEHIND || c->place == GATE || c->place == HURRY) work(last, c->result);
    if (c->reader == NODE) add_function(inner, nullptr, read, c);
    if (make == CHILD) {
        CHECK(cudaGraphAddChildGraphNode(&last, graph, nullptr, 0, inner));
        CHECK(cudaGraphDestroy(inner));
    }
    return graph;
}

template <int M, int P, int R> __attribute__((noinline)) void test() {
    size_t size = 4096 + 64 * ++cases;
    static Case c;
    CHECK(cudaMallocManaged(&c.result, size));
    CHECK(cudaMallocManaged(&c.other, size));
    memset(c.result, 0, size);
    c.place = P, c.reader = R;
    cudaGraph_t graph = build(M, &c);
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphLaunch(exec, stream));
    if (R == STREAM) CHECK(cudaLaunchHostFunc(another, read, &c));
    if (R == MAIN) {
        if (P != HURRY && !(P == GATE && by_threads) && !seen(c.told, 2000)) puts("the main thread was told nothing");
        touch(&c);
    }
    CHECK(cudaDeviceSynchronize());
    if (!c.read) puts("nobody has read");
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaFree(c.result));
    CHECK(cudaFree(c.other));
    bool race = P == BESIDE || P == BEHIND || P == HURRY;
    printf("%zu %s %s, %s, read by %s\n", size, race ? "race" : "silent", makes[M], places[P], readers[R]);
}

template <int M, int P, int R = 0> void all_readers() {
    // Two functions of one graph need not run at the same time, and what comes behind one neither.
    if constexpr (P == GATE || P == HURRY) {
        if (R == MAIN && (P == GATE || by_threads)) test<M, P, R>();
    } else if (!by_threads) {
        test<M, P, R>();
    }
    if constexpr (R + 1 < READERS) all_readers<M, P, R + 1>();
}
template <int M, int P = 0> void all_places() {
    all_readers<M, P>();
    if constexpr (P + 1 < PLACES) all_places<M, P + 1>();
}
template <int M = 0> void all() {
    all_places<M>();
    if constexpr (M + 1 < MAKES) all<M + 1>();
}

int main(int count, char **) {
    by_threads = count > 1;
    for (cudaStream_t *s : {&stream, &beside, &another}) CHECK(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    all();
    puts("done");
    return 0;
}
