// Memory that kernels use where the host has it: the host touches it while work is pending, in every way that a program can, or waits
// first.
//
//   in_place CASE [fixed]     one of the cases at the end of this file; fixed: the host waits, or touches what the work does not
//   in_place --list           their names, and whether they are racy as they are
//
// Bytes that host and device both use hold ones from the beginning, and everybody writes ones, so that the output is always the same.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

static const int n = 16384, half = n / 2;
static cudaStream_t s, t;
static int *p;
static bool fixed;
static volatile long sink;

__managed__ int variable[n];

struct Pair { int scale; int *values; };

__global__ void ones(int *to, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = 1;
}
__global__ void total(const int *from, int count, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && from[i] != 1) *out = 1;
}
__global__ void by_struct(Pair pair, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) pair.values[i] = pair.scale;
}
__global__ void the_variable() {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < half) variable[i] = 1;
}
__global__ void even_members(int *to, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[2 * i] = 1;
}
__global__ void ring(int *data, volatile int *bell) {
    data[0] = 1;
    __threadfence_system();
    *bell = 1;
}
__global__ void count_up(int *counter) { atomicAdd_system(counter, 1); }

static int *managed() {
    int *memory;
    CHECK(cudaMallocManaged(&memory, n * sizeof(int)));
    for (int i = 0; i < n; ++i) memory[i] = 1;
    return memory;
}
static void launch(int *to, int count = half) { ones<<<half / 256, 256, 0, s>>>(to, count); CHECK(cudaGetLastError()); }
static void wait() { if (fixed) CHECK(cudaStreamSynchronize(s)); }
static void read_some(const int *from, int first, int last) {
    long sum = 0;
    for (int i = first; i < last; ++i) sum += ((const volatile int *)from)[i];
    sink = sum;
}

static void host_reads() { p = managed(); launch(p); wait(); read_some(p, 0, n); }
static void host_writes() { p = managed(); launch(p); wait(); ((volatile int *)p)[5] = 1; }
static void host_writes_input() {
    p = managed();
    int *out;
    CHECK(cudaMalloc(&out, sizeof *out));
    total<<<half / 256, 256, 0, s>>>(p, half, out);
    wait();
    ((volatile int *)p)[half - 1] = 1;
}
static void last_element() { p = managed(); launch(p, 1000); sink = ((volatile int *)p)[fixed ? 1000 : 999]; }
static void middle() { p = managed(); launch(p + 4096, 1024); read_some(p, fixed ? 5120 : 5119, 5200); }
static void in_struct() { p = managed(); by_struct<<<half / 256, 256, 0, s>>>(Pair{1, p}, half); wait(); read_some(p, 7, 8); }
static void managed_variable() {
    for (int i = 0; i < n; ++i) variable[i] = 1;
    the_variable<<<half / 256, 256, 0, s>>>();
    wait();
    read_some(variable, 3, 4);
}
static void mapped() {
    int *device;
    CHECK(cudaHostAlloc(&p, n * sizeof(int), cudaHostAllocMapped));
    for (int i = 0; i < n; ++i) p[i] = 1;
    CHECK(cudaHostGetDevicePointer(&device, p, 0));
    launch(device);
    wait();
    read_some(p, 0, 100);
}
static void pinned() {
    CHECK(cudaMallocHost(&p, n * sizeof(int)));
    launch(p);
    wait();
    ((volatile int *)p)[11] = 1;
}
static void registered() {
    p = (int *)malloc(n * sizeof(int) + (1 << 20));
    for (int i = 0; i < n; ++i) p[i] = 1;
    CHECK(cudaHostRegister(p, n * sizeof(int), cudaHostRegisterMapped));
    launch(p, half);
    wait();
    read_some(p, 0, half);
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaHostUnregister(p));
    for (int i = 0; i < n; ++i) if (p[i] != 1) printf("lost\n");
    free(p);
}
static void fill() { p = managed(); CHECK(cudaMemset2DAsync(p, 64, 1, 4, 16, s)); wait(); ((volatile char *)p)[64] = 1; }
static void copy_out() {
    int *device;
    CHECK(cudaMalloc(&device, n * sizeof(int)));
    p = managed();
    CHECK(cudaMemcpyAsync(device, p, half * sizeof(int), cudaMemcpyDefault, s));
    wait();
    ((volatile int *)p)[9] = 1;
}
static void copy_in() {
    int *device;
    CHECK(cudaMalloc(&device, n * sizeof(int)));
    CHECK(cudaMemset(device, 1, n * sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    p = managed();
    CHECK(cudaMemcpyAsync(p, device, half * sizeof(int), cudaMemcpyDefault, s));
    wait();
    read_some(p, 0, 1);
}
static void pinned_copy() {
    int *device;
    CHECK(cudaMalloc(&device, n * sizeof(int)));
    CHECK(cudaMemset(device, 1, n * sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMallocHost(&p, n * sizeof(int)));
    for (int i = 0; i < n; ++i) p[i] = 1;
    CHECK(cudaMemcpyAsync(p, device, half * sizeof(int), cudaMemcpyDefault, s));
    wait();
    read_some(p, 0, 1);
}
static void in_graph() {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    p = managed();
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    launch(p);
    CHECK(cudaStreamEndCapture(s, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, s));
    wait();
    read_some(p, 2, 3);
}
static void wrong_stream() { p = managed(); launch(p); CHECK(cudaStreamSynchronize(fixed ? s : t)); read_some(p, 0, 1); }
static void early_event() {
    cudaEvent_t event;
    CHECK(cudaEventCreate(&event));
    p = managed();
    if (!fixed) CHECK(cudaEventRecord(event, s));
    launch(p);
    if (fixed) CHECK(cudaEventRecord(event, s));
    CHECK(cudaEventSynchronize(event));
    read_some(p, 0, 1);
}
static void CUDART_CB touch_it(void *) { read_some(p, 0, 4); }
static void host_function() {
    p = managed();
    launch(p);
    CHECK(cudaLaunchHostFunc(fixed ? s : t, touch_it, nullptr));
}
static void library_copy() { static int out[n]; p = managed(); launch(p); wait(); memcpy(out, p, sizeof out); sink = out[3]; }
static void library_set() { p = managed(); launch(p); wait(); memset(p, 1, 64); CHECK(cudaStreamSynchronize(s)); launch(p); }
static void system_call() {
    int file = open("/dev/zero", O_RDONLY);
    p = managed();
    launch(p);
    wait();
    if (read(file, p, 512) != 512) printf("read failed\n");
    close(file);
}
static void another_thread() { p = managed(); launch(p); wait(); std::thread([] { read_some(p, 100, 101); }).join(); }
static void beside_first() {
    p = managed();
    launch(p, 512);
    for (int round = 0; round < 3; ++round) for (int i = 520; i < 540; ++i) sink = ((volatile int *)p)[i];
    wait();
    sink = ((volatile int *)p)[3];
}
static void odd_members() {
    p = managed();
    even_members<<<half / 256, 256, 0, s>>>(p, half);
    for (int i = 1; i < 60; i += 2) ((volatile int *)p)[i] = 1;
    if (!fixed) ((volatile int *)p)[58] = 1;
}
static void second_round() {
    p = managed();
    for (int round = 0; round < 3; ++round) {
        launch(p);
        if (fixed || round < 2) CHECK(cudaStreamSynchronize(s));
        read_some(p, 0, 10);
    }
}
static void atomic_counter() {
    p = managed();
    count_up<<<1, 32, 0, s>>>(p);
    if (fixed) ((std::atomic<int> *)p)->fetch_add(1); else ((volatile int *)p)[0] = 33;
}

// Silent, fixed or not.
static void two_readers() {
    int *out;
    CHECK(cudaMalloc(&out, sizeof *out));
    p = managed();
    total<<<half / 256, 256, 0, s>>>(p, half, out);
    read_some(p, 0, n);
}
static void other_half() { p = managed(); launch(p); for (int i = half; i < n; ++i) ((volatile int *)p)[i] = 1; read_some(p, half, n); }
static void another_allocation() {
    int *other = managed();
    p = managed();
    launch(p);
    for (int i = 0; i < n; ++i) other[i] = 1;
}
static void prefetched() {
    cudaMemLocation host = {cudaMemLocationTypeHost, 0};
    p = managed();
    CHECK(cudaMemPrefetchAsync(p, n * sizeof(int), host, 0, s));
    CHECK(cudaMemAdvise(p, n * sizeof(int), cudaMemAdviseSetReadMostly, host));
    read_some(p, 0, n);
}
static void attached() {
    CHECK(cudaMallocManaged(&p, n * sizeof(int), cudaMemAttachHost));
    int *other = managed();
    CHECK(cudaStreamAttachMemAsync(t, p, 0, cudaMemAttachSingle));
    CHECK(cudaStreamSynchronize(t));
    launch(other);
    for (int i = 0; i < n; ++i) p[i] = 1;
}
static void doorbell() {
    int *bell;
    CHECK(cudaHostAlloc(&bell, 64, cudaHostAllocMapped));
    p = managed();
    *bell = 0;
    ring<<<1, 1, 0, s>>>(p, bell);
    while (*(volatile int *)bell == 0) {}
    read_some(p, 0, 1);
}
static void polled() {
    p = managed();
    launch(p);
    while (cudaStreamQuery(s) == cudaErrorNotReady) {}
    read_some(p, 0, n);
}
static void freed_and_made_anew() {
    for (int round = 0; round < 3; ++round) {
        p = managed();
        launch(p);
        CHECK(cudaFree(p));
    }
}
static void forked() {
    p = managed();
    launch(p);
    if (fork() == 0) {
        p[3] = 1;
        _exit(0);
    }
}
// A thread waits in the kernel for bytes beside those of the launch since before the launch.
static void blocked_read() {
    int ends[2];
    p = managed();
    if (pipe(ends)) exit(1);
    static int got;
    std::thread reader([&] { got = (int)read(ends[0], p + half, 512); });
    usleep(20000);
    launch(p);
    usleep(1000);
    static char bytes[512];
    for (int i = 0; i < 128; ++i) ((int *)bytes)[i] = 1;
    if (write(ends[1], bytes, sizeof bytes) != sizeof bytes) printf("write failed\n");
    reader.join();
    if (got != 512) printf("read failed\n");
}
// More pages than a process may have mappings, were each one its own.
static void many_pages() {
    size_t count = (size_t)48 << 20;
    char *memory;
    CHECK(cudaMallocManaged(&memory, count));
    launch((int *)memory);
    for (size_t at = count - 1; at > half * sizeof(int); at -= 4096) {
        ((volatile char *)memory)[at] = 1;
        if (((volatile char *)memory)[at] != 1) printf("lost\n");
    }
}

static const struct { const char *name; void (*run)(); } cases[] = {
    {"host_reads", host_reads}, {"host_writes", host_writes}, {"host_writes_input", host_writes_input},
    {"last_element", last_element}, {"middle", middle}, {"in_struct", in_struct}, {"managed_variable", managed_variable},
    {"mapped", mapped}, {"pinned", pinned}, {"registered", registered}, {"fill", fill}, {"copy_out", copy_out}, {"copy_in", copy_in}, {"pinned_copy", pinned_copy},
    {"in_graph", in_graph}, {"wrong_stream", wrong_stream}, {"early_event", early_event}, {"host_function", host_function},
    {"library_copy", library_copy}, {"library_set", library_set}, {"system_call", system_call}, {"another_thread", another_thread},
    {"beside_first", beside_first}, {"odd_members", odd_members}, {"second_round", second_round}, {"atomic_counter", atomic_counter},
    {"two_readers", two_readers}, {"other_half", other_half}, {"another_allocation", another_allocation}, {"prefetched", prefetched},
    {"attached", attached}, {"doorbell", doorbell}, {"polled", polled}, {"freed_and_made_anew", freed_and_made_anew},
    {"forked", forked}, {"blocked_read", blocked_read}, {"many_pages", many_pages},
};

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    fixed = argc > 2;
    if (!strcmp(argv[1], "--list")) {
        bool racy = true;
        for (auto &c : cases) {
            if (c.run == two_readers) racy = false;
            printf("%s %s\n", c.name, racy ? "race" : "clean");
        }
        return 0;
    }
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    for (auto &c : cases)
        if (!strcmp(c.name, argv[1])) {
            c.run();
            CHECK(cudaDeviceSynchronize());
            printf("done\n");
            return 0;
        }
    return 2;
}
