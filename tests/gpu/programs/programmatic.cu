// Programmatic dependent launch: which kernel begins behind the end of which. A form is a sequence of kernels of one
// stream, named A, B, C and so on, each with an attribute and its steps:
//   O, P     an ordinary launch; one that may overlap the kernel before it (a programmatic edge, in graphs)
//   X        an ordinary launch on another stream, behind an event recorded now
//   w, s     waits (griddepcontrol.wait); in the first warp of each block only
//   t, u, v  triggers (griddepcontrol.launch_dependents); in one thread of each block; in all blocks but the first
//   x        all blocks but the first exit
//   d        sleeps for 400 us
// Between kernels: M a fill, E an event record, W a wait for an event that was over before, H a host function.
//
// Prints a line for each form and way to launch it (stream, capture, edges made by hand from the port "programmatic"
// and from the port "launch completion"), with a column for each pair: "CA e- l+" says that C begins before A has
// ended, and that its threads that wait go on behind A's end. Each answer is of ROUNDS launches: "+" always, "-" never,
// "~" sometimes, "." no thread waits.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#define CHECK(call)                                                                                                    \
    if (cudaError_t error = call) printf("line %d: error %d\n", __LINE__, error), failed = true;

typedef unsigned long long Time;
constexpr int BLOCKS = 4, THREADS = 64, KERNELS = 5, ROUNDS = 5;
struct Times { Time begin, waited, end; };
struct Steps { char step[8]; };
static bool failed;
static Times *times;
static char *filled;

__device__ Time now() {
    Time time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

__device__ Time wait() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    return now();
}

__global__ void work(Times *at, Steps steps) {
    Times mine = {now(), 0, 0};
    for (int i = 0; i < 8 && steps.step[i]; i++) {
        switch (steps.step[i]) {
        case 'w': mine.waited = wait(); break;
        case 's':
            if (threadIdx.x < 32) mine.waited = wait();
            break;
        case 't': asm volatile("griddepcontrol.launch_dependents;"); break;
        case 'u':
            if (threadIdx.x == 0) asm volatile("griddepcontrol.launch_dependents;");
            break;
        case 'v':
            if (blockIdx.x) asm volatile("griddepcontrol.launch_dependents;");
            break;
        case 'x':
            if (blockIdx.x) {
                mine.end = now();
                at[blockIdx.x * blockDim.x + threadIdx.x] = mine;
                return;
            }
            break;
        case 'd':
            for (Time until = now() + 400000; now() < until;) __nanosleep(1000);
        }
    }
    mine.end = now();
    at[blockIdx.x * blockDim.x + threadIdx.x] = mine;
}

struct Kernel { char how; Steps steps; };
enum Way { STREAM, CAPTURE, TRIGGER_EDGES, START_EDGES };
static const char *const ways[] = {"stream", "capture", "edges", "starts"};
static cudaStream_t stream, another;
static cudaEvent_t event, over;

static std::vector<Kernel> parsed(const char *form) {
    std::vector<Kernel> all;
    for (const char *c = form; *c; c++) {
        if (*c == ' ') continue;
        if (strchr("OPXMEWH", *c)) all.push_back({*c, {}});
        else all.back().steps.step[strlen(all.back().steps.step)] = *c;
    }
    return all;
}

static bool is_kernel(const Kernel &kernel) { return strchr("OPX", kernel.how); }

static void CUDART_CB nothing(void *) {}

static void enqueue(const std::vector<Kernel> &all) {
    Times *at = times;
    for (const Kernel &kernel : all) {
        cudaLaunchConfig_t config = {};
        cudaLaunchAttribute attribute;
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        config.gridDim = BLOCKS, config.blockDim = THREADS, config.stream = kernel.how == 'X' ? another : stream;
        config.attrs = &attribute, config.numAttrs = kernel.how == 'P';
        switch (kernel.how) {
        case 'M': CHECK(cudaMemsetAsync(filled, 0, 64, stream)); break;
        case 'E': CHECK(cudaEventRecord(event, stream)); break;
        case 'W': CHECK(cudaStreamWaitEvent(stream, over, 0)); break;
        case 'H': CHECK(cudaLaunchHostFunc(stream, nothing, nullptr)); break;
        case 'X':
            CHECK(cudaEventRecord(event, stream));
            CHECK(cudaStreamWaitEvent(another, event, 0));
        }
        if (is_kernel(kernel)) {
            CHECK(cudaLaunchKernelEx(&config, work, at, kernel.steps));
            at += BLOCKS * THREADS;
        }
        if (kernel.how == 'X') {
            CHECK(cudaEventRecord(event, another));
            CHECK(cudaStreamWaitEvent(stream, event, 0));
        }
    }
}

static cudaGraph_t by_hand(std::vector<Kernel> all, Way way) {
    cudaGraph_t graph;
    cudaGraphNode_t before = nullptr;
    Times *at = times;
    CHECK(cudaGraphCreate(&graph, 0));
    for (Kernel &kernel : all) {
        cudaGraphNode_t node;
        void *arguments[] = {&at, &kernel.steps};
        cudaKernelNodeParams p = {};
        p.func = (void *)work, p.gridDim = dim3(BLOCKS), p.blockDim = dim3(THREADS), p.kernelParams = arguments;
        CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &p));
        cudaGraphEdgeData edge = {};
        if (kernel.how == 'P') {
            edge.type = cudaGraphDependencyTypeProgrammatic;
            edge.from_port = way == START_EDGES ? cudaGraphKernelNodePortLaunchCompletion
                                                : cudaGraphKernelNodePortProgrammatic;
        }
#if CUDART_VERSION >= 13000
        if (before) CHECK(cudaGraphAddDependencies(graph, &before, &node, &edge, 1));
#else
        if (before) CHECK(cudaGraphAddDependencies_v2(graph, &before, &node, &edge, 1));
#endif
        before = node;
        at += BLOCKS * THREADS;
    }
    return graph;
}

static char sum(int ordered, int of) { return of == 0 ? '.' : ordered == of ? '+' : ordered == 0 ? '-' : '~'; }

static void measure(const char *form, Way way) {
    std::vector<Kernel> all = parsed(form);
    int count = std::count_if(all.begin(), all.end(), is_kernel);
    bool has_others = count != (int)all.size() || std::any_of(all.begin(), all.end(), [](const Kernel &k) { return k.how == 'X'; });
    if (has_others && way >= TRIGGER_EDGES) return;
    // An event that was recorded outside can not be waited for in a capture.
    if (way == CAPTURE && strchr(form, 'W')) return;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    if (way == CAPTURE) {
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        enqueue(all);
        CHECK(cudaStreamEndCapture(stream, &graph));
    } else if (way != STREAM) {
        graph = by_hand(all, way);
    }
    if (graph) {
        cudaError_t error = cudaGraphInstantiate(&exec, graph, 0);
        if (error) {
            printf("%-8s %-28s not instantiated: %s\n", ways[way], form, cudaGetErrorName(error));
            cudaGetLastError();
            return;
        }
    }
    int early[KERNELS][KERNELS] = {}, late[KERNELS][KERNELS] = {}, waits[KERNELS] = {};
    for (int round = -1; round < ROUNDS; round++) {
        CHECK(cudaMemset(times, 0, sizeof(Times) * KERNELS * BLOCKS * THREADS));
        CHECK(cudaDeviceSynchronize());
        if (exec) {
            CHECK(cudaGraphLaunch(exec, stream));
        } else {
            enqueue(all);
        }
        CHECK(cudaDeviceSynchronize());
        if (round < 0) continue;
        static Times seen[KERNELS][BLOCKS * THREADS];
        CHECK(cudaMemcpy(seen, times, sizeof seen, cudaMemcpyDeviceToHost));
        Time begin[KERNELS], waited[KERNELS], end[KERNELS];
        for (int k = 0; k < count; k++) {
            begin[k] = waited[k] = ~0ull, end[k] = 0;
            for (const Times &t : seen[k]) {
                begin[k] = std::min(begin[k], t.begin), end[k] = std::max(end[k], t.end);
                if (t.waited) waited[k] = std::min(waited[k], t.waited);
            }
            waits[k] += waited[k] != ~0ull;
            for (int i = 0; i < k; i++) {
                early[k][i] += begin[k] >= end[i];
                late[k][i] += waited[k] != ~0ull && waited[k] >= end[i];
            }
        }
    }
    printf("%-8s %-28s", ways[way], form);
    for (int k = 1; k < count; k++)
        for (int i = k - 1; i >= 0; i--)
            printf("  %c%c e%c l%c", 'A' + k, 'A' + i, sum(early[k][i], ROUNDS), sum(late[k][i], waits[k]));
    printf("\n");
    if (exec) CHECK(cudaGraphExecDestroy(exec));
    if (graph) CHECK(cudaGraphDestroy(graph));
}

int main() {
    CHECK(cudaMalloc(&times, sizeof(Times) * KERNELS * BLOCKS * THREADS));
    CHECK(cudaMalloc(&filled, 64));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&another, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&over, cudaEventDisableTiming));
    CHECK(cudaEventRecord(over, another));
    CHECK(cudaDeviceSynchronize());
    std::vector<std::string> forms;
    // Two kernels: each way to trigger, each way to wait.
    for (const char *a : {"Od", "Otd", "Oud", "Ovd", "Oxd", "Oxtd", "Odt"})
        for (const char *b : {"P", "Pw", "Ps", "O"}) forms.push_back(std::string(a) + " " + b);
    // Three: the second one waits or not, and triggers or not, before or after.
    for (const char *a : {"Od", "Otd"})
        for (const char *b : {"P", "Pt", "Pd", "Ptd", "Pw", "Pwt", "Ptw", "Pwd", "Pwtd", "Ptwd", "Ps", "Pts", "Pst", "Pxw",
                              "O", "Ot", "Otd"})
            for (const char *c : {"P", "Pw", "O"}) forms.push_back(std::string(a) + " " + b + " " + c);
    // Four, and more.
    for (const char *rest : {"Pt Pt P", "Pt Pt Pw", "Pt Pw P", "Pt Pw Pw", "Pt Pwt P", "Pt Ptw P", "Pw Pt P", "Pwt Pt P",
                             "Ptw Pt P", "Ptw Pt Pw", "Ptw Ptw Pw", "P P P", "P O P", "Pt Ot P", "Pt Pt O", "Pw P P",
                             "Pt Pt Pt Pw", "Pt Pt Pt P", "Ptw Ptw Ptw P"})
        forms.push_back(std::string("Otd ") + rest);
    // Other work between, and other streams behind.
    for (const char *rest : {"M P", "E P", "W P", "H P", "M Pw", "E Pw", "P M P", "P E P", "P X", "Pt X", "Pt M O", "Pw X"})
        forms.push_back(std::string("Otd ") + rest);
    for (const std::string &form : forms)
        for (Way way : {STREAM, CAPTURE, TRIGGER_EDGES, START_EDGES}) measure(form.c_str(), way);
    printf(failed ? "something failed\n" : "all forms were measured\n");
    return failed;
}
