// What event nodes in the middle of a graph order. A is in front of the event's node, B beside it, C behind it;
// W is work of another stream. Kernels note when they begin and end. Prints 0 or 1 for A, B and C:
//   - which of them have ended when the host has waited for the event of a record node;
//   - behind which of them W begins, on a stream that waits for that event;
//   - which of them begin behind W, if a wait node waits for an event that is recorded behind it;
//   - the same, if the event is recorded behind W after the launch, while the graph has not come to its wait node.
#include <cstdio>

#define CHECK(call)                                                                                                    \
    if (cudaError_t error = call) printf("line %d: error %d\n", __LINE__, error);

typedef unsigned long long Time;
struct Times { volatile Time begin, end; };
enum { A, B, C, W };
constexpr Time SHORT = 1000000, LONG = 400000000;
static Times *times;
static cudaStream_t stream, another;
static cudaEvent_t event;

__global__ void work(Times *at, Time ns) {
    Time first, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(first));
    at->begin = first;
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - first < ns);
    at->end = now;
    __threadfence_system();
}

static cudaGraphNode_t add(cudaGraph_t graph, int which, Time ns, cudaGraphNode_t *behind, int count) {
    cudaGraphNode_t node;
    Times *at = times + which;
    void *arguments[] = {&at, &ns};
    cudaKernelNodeParams p = {};
    p.func = (void *)work, p.gridDim = p.blockDim = dim3(1), p.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&node, graph, behind, count, &p));
    return node;
}

static bool after(int later, int first) { return times[first].end && times[later].begin >= times[first].end; }

static void work_and_record(Time ns) {
    work<<<1, 1, 0, another>>>(times + W, ns);
    CHECK(cudaEventRecord(event, another));
}

int main() {
    CHECK(cudaMallocHost(&times, 4 * sizeof *times));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&another, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    // The kernel is loaded before anything waits.
    work<<<1, 1, 0, stream>>>(times, SHORT);
    CHECK(cudaDeviceSynchronize());
    enum { RECORD, WAIT, RECORDED_LATE, QUESTIONS };
    for (int question = RECORD; question < QUESTIONS; question++) {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        CHECK(cudaGraphCreate(&graph, 0));
        cudaGraphNode_t a = add(graph, A, question == RECORDED_LATE ? LONG : SHORT, nullptr, 0), node;
        add(graph, B, question == RECORD ? LONG : SHORT, nullptr, 0);
        if (question == RECORD) {
            CHECK(cudaGraphAddEventRecordNode(&node, graph, &a, 1, event));
        } else {
            CHECK(cudaGraphAddEventWaitNode(&node, graph, &a, 1, event));
        }
        add(graph, C, question == RECORD ? LONG : SHORT, &node, 1);
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
        for (int i = A; i <= W; i++) times[i].begin = times[i].end = 0;
        if (question == WAIT) work_and_record(LONG);
        if (question == RECORDED_LATE) {
            CHECK(cudaEventRecord(event, another));
            CHECK(cudaStreamSynchronize(another));
        }
        CHECK(cudaGraphLaunch(exec, stream));
        if (question == RECORD) {
            CHECK(cudaStreamWaitEvent(another, event, 0));
            work<<<1, 1, 0, another>>>(times + W, SHORT);
            CHECK(cudaEventSynchronize(event));
            printf("ended before the host: %d %d %d\n", times[A].end != 0, times[B].end != 0, times[C].end != 0);
        }
        if (question == RECORDED_LATE) work_and_record(3 * LONG);
        CHECK(cudaDeviceSynchronize());
        if (question == RECORD) {
            printf("W begins behind: %d %d %d\n", after(W, A), after(W, B), after(W, C));
        } else {
            const char *when = question == WAIT ? "before" : "after";
            printf("recorded %s the launch, behind W begin: %d %d %d\n", when, after(A, W), after(B, W), after(C, W));
        }
    }
    return 0;
}
