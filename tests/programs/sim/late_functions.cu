// Host functions and what the program does beside them. Each case has a pinned buffer of its own
// size: a copy of stream `a` fills it, a host function behind the copy rewrites it or tells the
// host something, and stream `b` reads it. Prints the size, "race" or "clean", and the names.
#include <cuda_runtime.h>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <linux/futex.h>
#include <mutex>
#include <semaphore.h>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error = (call);                                                                \
        if (error != cudaSuccess) {                                                                \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                         \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

enum Way { FUNCTION, CALLBACK, NODE };
static const char *WAYS[] = {"function", "callback", "node"};

__global__ void sum(const int *in, int *out, int count) {
    int s = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) s += in[i];
    out[threadIdx.x] = s;
}

static cudaStream_t a, b, other;
static cudaEvent_t event;
static int *source, *target, *sums;
static size_t size = 1 << 14;

// What a host function does.
struct Task {
    bool rewrites;
    int *buffer;
    int count;
    std::promise<void> promise;
    std::atomic<int> flag{0};
    int word = 0;
    std::mutex mutex;
    std::condition_variable condition;
    bool told = false;
    sem_t semaphore;
    int pipe[2];

    void run() {
        if (rewrites)
            for (int i = 0; i < count; i++) buffer[i] = i + 3;
        promise.set_value();
        {
            std::lock_guard<std::mutex> lock(mutex);
            told = true;
        }
        condition.notify_all();
        sem_post(&semaphore);
        if (write(pipe[1], "x", 1) != 1) abort();
        __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
        flag.store(1, std::memory_order_release);
    }
};
static void task(void *data) { ((Task *)data)->run(); }
static void callback(cudaStream_t, cudaError_t, void *data) { ((Task *)data)->run(); }

static void launch(cudaGraph_t graph) {
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, a));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
}

// Puts the copy and the function behind it into stream `a`; `between` comes between the two, but of
// a graph with both before it.
template <Way way, class F> static void enqueue(Task &t, F between) {
    if (way == NODE) {
        cudaGraph_t graph;
        cudaGraphNode_t copy, host;
        CHECK(cudaGraphCreate(&graph, 0));
        CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, t.buffer, source, t.count * 4, cudaMemcpyDeviceToHost));
        cudaHostNodeParams params = {task, &t};
        CHECK(cudaGraphAddHostNode(&host, graph, &copy, 1, &params));
        between();
        launch(graph);
        return;
    }
    CHECK(cudaMemcpyAsync(t.buffer, source, t.count * 4, cudaMemcpyDeviceToHost, a));
    between();
    if (way == FUNCTION) CHECK(cudaLaunchHostFunc(a, task, &t));
    else CHECK(cudaStreamAddCallback(a, callback, &t, 0));
}

// The same, but the copy is never in the graph: its function tells of what was before the graph.
template <Way way> static void enqueue_telling(Task &t) {
    if (way != NODE) return enqueue<way>(t, [] {});
    CHECK(cudaMemcpyAsync(t.buffer, source, t.count * 4, cudaMemcpyDeviceToHost, a));
    cudaGraph_t graph;
    cudaGraphNode_t host;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaHostNodeParams params = {task, &t};
    CHECK(cudaGraphAddHostNode(&host, graph, nullptr, 0, &params));
    launch(graph);
}

template <bool by_kernel> static void read_in_b(Task &t) {
    if (by_kernel) sum<<<1, 32, 0, b>>>(t.buffer, sums, t.count);
    else CHECK(cudaMemcpyAsync(target, t.buffer, t.count * 4, cudaMemcpyHostToDevice, b));
}

static void rewrite(Task &t) {
    for (int i = 0; i < t.count; i++) t.buffer[i] = i;
}

// Waits until the function has told the host that it runs, in one of these ways.
static const char *TELLS[] = {"promise", "flag", "flag-yield", "flag-sleep", "condition", "semaphore", "pipe", "futex", "flag-beside-calls"};
static void listen(Task &t, int how) {
    switch (how) {
    case 0: t.promise.get_future().get(); break;
    case 1: while (!t.flag.load(std::memory_order_acquire)) {} break;
    case 2: while (!t.flag.load(std::memory_order_acquire)) std::this_thread::yield(); break;
    case 3: while (!t.flag.load(std::memory_order_acquire)) usleep(200); break;
    case 4: {
        std::unique_lock<std::mutex> lock(t.mutex);
        t.condition.wait(lock, [&] { return t.told; });
        break;
    }
    case 5: while (sem_wait(&t.semaphore)) {} break;
    case 6: {
        char c;
        if (read(t.pipe[0], &c, 1) != 1) abort();
        break;
    }
    case 7:
        while (!__atomic_load_n(&t.word, __ATOMIC_ACQUIRE)) syscall(SYS_futex, &t.word, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
        break;
    default: while (!t.flag.load(std::memory_order_acquire)) cudaStreamQuery(other);
    }
    // The function may still be telling.
    while (!t.flag.load(std::memory_order_acquire)) std::this_thread::yield();
}

template <class F> static void test(const char *verdict, Way way, bool by_kernel, const std::string &name, bool rewrites, F body) {
    Task t;
    size += 256;
    t.rewrites = rewrites;
    t.count = (int)(size / 4);
    CHECK(cudaMallocHost(&t.buffer, size));
    sem_init(&t.semaphore, 0, 0);
    if (pipe(t.pipe)) abort();
    CHECK(cudaDeviceSynchronize());
    body(t);
    CHECK(cudaDeviceSynchronize());
    close(t.pipe[0]);
    close(t.pipe[1]);
    sem_destroy(&t.semaphore);
    CHECK(cudaFreeHost(t.buffer));
    printf("%zu %s %s %s %s\n", size, verdict, WAYS[way], by_kernel ? "kernel" : "copy", name.c_str());
}

// Each pair of a way and a reader has code of its own: findings are told apart by where the calls
// are.
template <Way way, bool by_kernel> static void cases() {
    auto nothing = [] {};
    auto record = [] { CHECK(cudaEventRecord(event, a)); };
    auto wait = [] { CHECK(cudaStreamWaitEvent(b, event, 0)); };
    auto racy = [&](const char *name, auto body) { test("race", way, by_kernel, name, true, body); };
    auto clean = [&](const char *name, auto body) { test("clean", way, by_kernel, name, true, body); };
    racy("neighbour", [&](Task &t) {
        enqueue<way>(t, nothing);
        read_in_b<by_kernel>(t);
    });
    racy("record-first", [&](Task &t) {
        enqueue<way>(t, record);
        wait();
        read_in_b<by_kernel>(t);
    });
    racy("asked-once", [&](Task &t) {
        enqueue<way>(t, nothing);
        cudaStreamQuery(a);
        read_in_b<by_kernel>(t);
    });
    racy("other-waited", [&](Task &t) {
        enqueue<way>(t, nothing);
        CHECK(cudaMemsetAsync(sums, 0, 128, other));
        CHECK(cudaStreamSynchronize(other));
        read_in_b<by_kernel>(t);
    });
    clean("event", [&](Task &t) {
        enqueue<way>(t, nothing);
        record();
        wait();
        read_in_b<by_kernel>(t);
    });
    clean("synchronised", [&](Task &t) {
        enqueue<way>(t, nothing);
        CHECK(cudaStreamSynchronize(a));
        read_in_b<by_kernel>(t);
    });
    clean("event-synchronised", [&](Task &t) {
        enqueue<way>(t, nothing);
        record();
        CHECK(cudaEventSynchronize(event));
        rewrite(t);
        read_in_b<by_kernel>(t);
    });
    clean("asked-until-done", [&](Task &t) {
        enqueue<way>(t, nothing);
        while (cudaStreamQuery(a) == cudaErrorNotReady) {}
        rewrite(t);
        read_in_b<by_kernel>(t);
    });
    clean("event-asked", [&](Task &t) {
        enqueue<way>(t, nothing);
        record();
        while (cudaEventQuery(event) == cudaErrorNotReady) std::this_thread::yield();
        read_in_b<by_kernel>(t);
    });
}

template <Way way, bool by_kernel> static void told(int how) {
    test("clean", way, by_kernel, TELLS[how], false, [&](Task &t) {
        enqueue_telling<way>(t);
        listen(t, how);
        rewrite(t);
        read_in_b<by_kernel>(t);
    });
    // A thread of its own enqueues, another one listens.
    test("clean", way, !by_kernel, std::string(TELLS[how]) + " from a thread", false, [&](Task &t) {
        std::thread([&] { enqueue_telling<way>(t); }).join();
        listen(t, how);
        rewrite(t);
        read_in_b<!by_kernel>(t);
    });
}

int main() {
    CHECK(cudaMalloc(&source, 1 << 20));
    CHECK(cudaMalloc(&target, 1 << 20));
    CHECK(cudaMalloc(&sums, 128));
    CHECK(cudaMemset(source, 0, 1 << 20));
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaDeviceSynchronize());
    cases<FUNCTION, false>();
    cases<FUNCTION, true>();
    cases<CALLBACK, false>();
    cases<CALLBACK, true>();
    cases<NODE, false>();
    cases<NODE, true>();
    for (int how = 0; how < 9; how++) {
        told<FUNCTION, false>(how);
        told<CALLBACK, true>(how);
        told<NODE, false>(how);
    }
    puts("done");
    return 0;
}
