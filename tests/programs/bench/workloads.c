/* The driver calls of a step of real programs, in their numbers and kinds, without their work: what an operation of theirs costs can be
 * measured by anyone, without a GPU. The mixes are those of nine workloads on an H100 (docs/measurements/costs.md) and of a server that
 * launches graphs. Each call comes from one of many places, below as many frames as in the program.
 *   workloads NAME STEPS [cold|lines]   prints the median nanoseconds of a step's calls, their number and the page faults of a step
 * With `cold` foreign work comes before each call, which is not timed: 2 MiB of data and 512 KiB of code. With `lines` these are 64 KiB
 * each, which empties the first caches that valgrind simulates and takes it a thirtieth of the time. */
#define MINI_IMPLEMENTS
#include "../common.h"
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#define POINTER(name, arguments) static CUresult(*p_##name) arguments;
MINI_API(POINTER)

/* Calls of a step. `pairs`: an event is created, recorded, waited for and destroyed. `parameter`: bytes of a launch's last parameter. */
struct mix {
    const char *name;
    int launches, parameters, parameter, pairs, records, waits, queries, fills, copies, uploads, upload_kib, downloads, graphs, depth, threads;
};
static const struct mix mixes[] = {
    {"hf_llama", .launches = 1130, .parameters = 6, .parameter = 208, .records = 20, .waits = 20, .fills = 60, .copies = 28, .uploads = 1, .upload_kib = 32, .depth = 26, .threads = 2},
    {"kv_offload", .launches = 16, .parameters = 4, .parameter = 96, .records = 7, .waits = 7, .uploads = 32, .upload_kib = 1024, .downloads = 4, .copies = 4, .depth = 22, .threads = 1},
    {"cupy_pipeline", .launches = 3, .parameters = 3, .pairs = 1, .records = 1, .waits = 1, .uploads = 1, .upload_kib = 4096, .depth = 12, .threads = 1},
    {"jax_train", .launches = 36, .parameters = 5, .records = 8, .waits = 6, .queries = 6, .copies = 2, .fills = 2, .depth = 40, .threads = 2},
    {"rnn_ctc_fft", .launches = 1690, .parameters = 8, .parameter = 64, .pairs = 820, .records = 50, .fills = 410, .depth = 30, .threads = 2},
    {"triton_tma", .launches = 2, .parameters = 2, .parameter = 384, .depth = 10, .threads = 1},
    {"batch_p2p", .launches = 3, .parameters = 1, .parameter = 4096, .pairs = 2, .records = 4, .waits = 4, .queries = 6, .depth = 34, .threads = 2},
    {"async_reduce", .launches = 8, .parameters = 1, .parameter = 4096, .records = 8, .waits = 8, .queries = 8, .depth = 34, .threads = 2},
    {"symmetric", .launches = 12, .parameters = 5, .parameter = 64, .fills = 1, .copies = 1, .depth = 24, .threads = 1},
    {"graph_server", .graphs = 3, .records = 2, .waits = 1, .queries = 4, .uploads = 1, .upload_kib = 16, .downloads = 1, .depth = 18, .threads = 1},
};
enum { KERNELS = 24, STREAMS = 4, EVENTS = 32, PLACES = 160 };

static const struct mix *mix;
static CUfunction kernels[KERNELS];
static CUstream streams[STREAMS];
static CUevent events[EVENTS];
static CUgraphExec graph;
static CUdeviceptr memory;
static char *pinned;
static size_t pinned_bytes;
static const size_t device_bytes = 64 << 20;
static char large[4096];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}
static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The kinds of calls; `n` counts those of a kind. */
typedef void call(unsigned n);
static CUstream stream(unsigned n) { return streams[n % STREAMS]; }
static void launch(unsigned n) {
    CUdeviceptr at[8];
    void *parameters[9];
    for (int i = 0; i < 8; i++) at[i] = memory + (n * 8 + i) % 1024 * 512, parameters[i] = &at[i];
    parameters[mix->parameters] = large;
    CHECK(p_cuLaunchKernel(kernels[n % KERNELS], 1 + n % 7, 1, 1, 128, 1, 1, 0, stream(n / 3), parameters, 0));
}
static void pair(unsigned n) {
    CUevent event;
    CHECK(p_cuEventCreate(&event, 2));
    CHECK(p_cuEventRecord(event, stream(n)));
    CHECK(p_cuStreamWaitEvent(stream(n + 1), event, 0));
    CHECK(p_cuEventDestroy_v2(event));
}
static void record(unsigned n) { CHECK(p_cuEventRecord(events[n % EVENTS], stream(n))); }
static void wait(unsigned n) { CHECK(p_cuStreamWaitEvent(stream(n + 1), events[n % EVENTS], 0)); }
static void query(unsigned n) { CHECK(p_cuEventQuery(events[n % EVENTS])); }
static void fill(unsigned n) { CHECK(p_cuMemsetD8Async(memory + n % 512 * 4096, 0, 256, stream(n))); }
static void copy(unsigned n) { CHECK(p_cuMemcpyDtoDAsync_v2(memory + n % 64 * 8192, memory + (16 << 20), 64, stream(n))); }
static void upload(unsigned n) {
    size_t bytes = (size_t)mix->upload_kib << 10, at = n * bytes;
    CHECK(p_cuMemcpyHtoDAsync_v2(memory + at % device_bytes, pinned + at % pinned_bytes, bytes, stream(n)));
}
static void download(unsigned n) { CHECK(p_cuMemcpyDtoHAsync_v2(pinned + pinned_bytes, memory, 4096, stream(n))); }
static void graphs(unsigned n) { CHECK(p_cuGraphLaunch(graph, stream(n))); }

/* Frames of a program. Which of them are on the stack says the place that calls. */
typedef void frame(int depth, unsigned place, call *what, unsigned n);
static frame *const frames[16];
#define FRAME(k)                                                                                                      \
    __attribute__((noinline)) static void frame##k(int depth, unsigned place, call *what, unsigned n) {               \
        volatile char room[16 + 24 * k];                                                                              \
        room[0] = depth;                                                                                              \
        if (depth > 0) frames[(place + depth * (place % 5 + 1)) % 16](depth - 1, place, what, n);                     \
        else what(n);                                                                                                 \
        room[1] = room[0];                                                                                            \
    }
FRAME(0) FRAME(1) FRAME(2) FRAME(3) FRAME(4) FRAME(5) FRAME(6) FRAME(7)
FRAME(8) FRAME(9) FRAME(10) FRAME(11) FRAME(12) FRAME(13) FRAME(14) FRAME(15)
static frame *const frames[16] = {frame0, frame1, frame2, frame3, frame4, frame5, frame6, frame7,
                                  frame8, frame9, frame10, frame11, frame12, frame13, frame14, frame15};

/* A jump on every line of 512 KiB of code: what the caches and the branch predictor knew of anybody's code is gone. */
__attribute__((noinline)) static void foreign_code(void) {
#if defined(__x86_64__)
    __asm__ volatile(".balign 64\n.rept 8192\njmp 1f\n.balign 64\n1:\n.endr\n");
#endif
}
__attribute__((noinline)) static void foreign_code_of_64_kib(void) {
#if defined(__x86_64__)
    __asm__ volatile(".balign 64\n.rept 1024\njmp 1f\n.balign 64\n1:\n.endr\n");
#endif
}
static volatile char foreign_data[2 << 20];

static struct { call *what; unsigned n; } *order;
static unsigned calls, per_step;

/* The kinds are mixed as evenly as their numbers allow. */
static void arrange(void) {
    struct { int times; call *what; unsigned made; } kinds[] = {
        {mix->launches, launch}, {mix->pairs, pair}, {mix->records, record}, {mix->waits, wait}, {mix->queries, query},
        {mix->fills, fill}, {mix->copies, copy}, {mix->uploads, upload}, {mix->downloads, download}, {mix->graphs, graphs}};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    for (int k = 0; k < KINDS; k++) calls += kinds[k].times;
    per_step = calls + 3 * mix->pairs;
    order = calloc(calls, sizeof *order);
    for (unsigned at = 0; at < calls; at++) {
        int next = -1;
        double most = 0;
        for (int k = 0; k < KINDS; k++) {
            double due = (at + 1.0) * kinds[k].times / calls - kinds[k].made;
            if (due > most) most = due, next = k;
        }
        order[at].what = kinds[next].what, order[at].n = kinds[next].made++;
    }
}

/* The calls of a step from one to another, and the nanoseconds that they take. */
/* `cold`: bytes of foreign data. */
struct part { unsigned step, from, to; double took; unsigned cold; };
static void *part(void *of) {
    struct part *p = of;
    CUcontext context;
    CHECK(p_cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(p_cuCtxSetCurrent(context));
    p->took = 0;
    for (unsigned at = p->from; at < p->to; at++) {
        if (p->cold) {
            for (unsigned i = 0; i < p->cold; i += 64) foreign_data[i]++;
            p->cold == sizeof foreign_data ? foreign_code() : foreign_code_of_64_kib();
            now();
        }
        double start = now();
        frames[at % 16](mix->depth, at * 7 % PLACES, order[at].what, p->step * calls + order[at].n);
        p->took += now() - start;
    }
    return 0;
}

/* A thread that lives on, as a framework's second one does. */
static struct part second;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int asked, done;
static void *follow(void *unused) {
    for (int turn = 1;; turn++) {
        pthread_mutex_lock(&mutex);
        while (asked < turn) pthread_cond_wait(&changed, &mutex);
        pthread_mutex_unlock(&mutex);
        part(&second);
        pthread_mutex_lock(&mutex);
        done = turn;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}
static void follow_once(void) {
    pthread_mutex_lock(&mutex);
    asked++;
    pthread_cond_broadcast(&changed);
    while (done < asked) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void prepare(void) {
    CUcontext context;
    CUmodule module;
    char image[1 << 14], name[96];
    int len = snprintf(image, sizeof image, ".version 7.0\n.target sm_52\n.address_size 64\n");
    CHECK(p_cuInit(0));
    CHECK(p_cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(p_cuCtxSetCurrent(context));
    for (int pass = 0; pass < 2; pass++) {
        if (pass) CHECK(p_cuModuleLoadData(&module, image));
        for (int k = 0; k < KERNELS; k++) {
            int at = snprintf(name, sizeof name, "k%d", k);
            for (int i = 0; i < mix->parameters; i++) at += snprintf(name + at, sizeof name - at, "_8");
            if (mix->parameter) snprintf(name + at, sizeof name - at, "_%d", mix->parameter);
            if (pass) CHECK(p_cuModuleGetFunction(&kernels[k], module, name));
            else len += snprintf(image + len, sizeof image - len, ".visible .entry %s(.param .u64 a) { ret; }\n", name);
        }
    }
    for (int i = 0; i < STREAMS; i++) CHECK(p_cuStreamCreate(&streams[i], 1));
    for (int i = 0; i < EVENTS; i++) {
        CHECK(p_cuEventCreate(&events[i], 2));
        CHECK(p_cuEventRecord(events[i], streams[0]));
    }
    CHECK(p_cuMemAlloc_v2(&memory, device_bytes));
    CHECK(p_cuMemsetD8Async(memory, 1, device_bytes, streams[0]));
    pinned_bytes = (size_t)(mix->uploads > 0 ? mix->uploads : 1) * mix->upload_kib << 10;
    void *host;
    CHECK(p_cuMemHostAlloc(&host, pinned_bytes + (1 << 16), 0));
    pinned = host;
    memset(pinned, 1, pinned_bytes + (1 << 16));
    /* PyTorch has small pieces of pinned memory too. */
    CHECK(p_cuMemHostAlloc(&host, 512, 0));
    if (mix->graphs) {
        CUgraph made;
        CUgraphNode node;
        CUfunction f;
        void *parameters[] = {&memory};
        CHECK(p_cuGraphCreate(&made, 0));
        CHECK(p_cuModuleGetFunction(&f, module, "node_8"));
        CUkernelNode kernel = {.f = f, .gx = 1, .gy = 1, .gz = 1, .bx = 32, .by = 1, .bz = 1, .params = parameters};
        for (int i = 0; i < 8; i++) CHECK(p_cuGraphAddKernelNode_v2(&node, made, 0, 0, &kernel));
        CHECK(p_cuGraphInstantiateWithFlags(&graph, made, 0));
    }
}

int main(int argc, char **argv) {
    REQUIRE(argc > 2);
    for (unsigned k = 0; k < sizeof mixes / sizeof *mixes; k++)
        if (!strcmp(mixes[k].name, argv[1])) mix = &mixes[k];
    REQUIRE(mix);
    unsigned steps = atoi(argv[2]), warm = 2;
    const char *foreign = argc > 3 ? argv[3] : "";
    unsigned cold = !strcmp(foreign, "cold") ? sizeof foreign_data : !strcmp(foreign, "lines") ? 64 << 10 : 0;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    REQUIRE(driver);
#define LOOK(name, arguments) p_##name = dlsym(driver, #name);
    MINI_API(LOOK)
    prepare();
    arrange();
    double *times = calloc(steps, sizeof *times);
    pthread_t thread;
    if (mix->threads > 1) pthread_create(&thread, 0, follow, 0);
    struct rusage before, after;
    for (unsigned step = 0; step < steps + warm; step++) {
        if (step == warm) getrusage(RUSAGE_SELF, &before);
        unsigned middle = mix->threads > 1 ? calls / 2 : calls;
        struct part first = {step, 0, middle, 0, cold};
        second = (struct part){step, middle, calls, 0, cold};
        part(&first);
        if (middle < calls) follow_once();
        double start = now();
        for (int i = 0; i < STREAMS; i++) CHECK(p_cuStreamSynchronize(streams[i]));
        double took = first.took + second.took + now() - start;
        if (step >= warm) times[step - warm] = took;
    }
    getrusage(RUSAGE_SELF, &after);
    qsort(times, steps, sizeof *times, ascending);
    printf("{\"step\": %.0f, \"calls\": %u, \"faults\": %.2f}\n", times[steps / 2], per_step + STREAMS,
           (double)(after.ru_minflt - before.ru_minflt) / steps);
    return 0;
}
